"""The hand that touches a desktop: translates each action into single input events, on any system's input."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from agent.core.actions import (
    Action,
    Button,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    HoldKeys,
    KeyDown,
    KeyUp,
    LongPress,
    Move,
    OpenApp,
    PressKeys,
    Scroll,
    TypeText,
    VisitPage,
    describe,
)
from agent.core.geometry import DesktopPoint
from agent.core.keys import MODIFIERS
from agent.desktop.protocol.desktop import Applications, TextEntry
from agent.desktop.protocol.hand import ActionFailedError, CornerError, Input, Press, Rest
from agent.safety.held_input import LIFTING
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, StoppedError

_CORNER = "the pointer was moved into a corner of the screen"
#: A drag shorter than about 0.1 s sends one motion event, which applications miss (GTK and Tk, seen under Xvfb).
_DRAG_SECONDS = 0.4
_DRAG_STEPS = 20
#: Seconds between the presses of a double click; well under every desktop's limit (400 to 500 ms).
_BETWEEN_CLICKS = 0.06
#: Seconds between two wheel steps. xfwm4 passes the first on while the next arrive, and the X server then drops a
#: release and a press: of 1,600 scrolls without a pause, 10 lost a step.
_BETWEEN_NOTCHES = 0.01
#: Seconds between pressing and moving, and between arriving and releasing, in a drag.
_GRASP = 0.05
#: Seconds before a press: toolkits arm a button when the pointer enters it, and need a moment for that.
_AFTER_MOVE = 0.02
#: Seconds to wait for a person to release a key or button that they hold.
_PERSON_LETS_GO = 1.0


class InputHand:
    """Moves the real pointer and presses real keys. `stop` is checked before every single event."""

    touches = True

    def __init__(self, stop: StopSwitch, source: Input, text: TextEntry, applications: Applications) -> None:
        self._stop = stop
        self._input = source
        self._text = text
        self._applications = applications
        self._down: list[Press] = []  # in the order of pressing
        self._kept: list[Press] = []  # stay down during several actions, or are pressed again for them
        self._unused: set[Press] = set()  # the modifiers in `_kept` that no action has needed yet
        self.rest = Rest()

    def perform(self, action: Action[DesktopPoint]) -> str:
        self._stop.check()
        self.rest.busy = True
        self._input.set_busy(True)
        done = False
        try:
            if isinstance(action, LIFTING):
                self.lift()
            if not isinstance(action, OpenApp | VisitPage | KeyUp | ButtonUp):
                self._wait_for_person()
            description = self._perform(action) or describe(action)
            done = True
            return description
        except CornerError as error:
            self._stop.stop(_CORNER)
            raise StoppedError(f"Stopped: {_CORNER}.") from error
        except (ActionFailedError, StoppedError, EnvironmentLacksError):
            raise
        except Exception as error:
            raise self._input.lost(error) from error
        finally:
            if not done:
                self.release_all()
            try:
                self._input.set_busy(False)  # some inputs send only now
            finally:
                self.rest.since, self.rest.busy = time.monotonic(), False

    def _perform(self, action: Action[DesktopPoint]) -> str | None:
        match action:
            case Click() | LongPress() | Move() | ButtonDown() | ButtonUp() | Drag() | Scroll():
                with self._keys_held(action.held):
                    return self._point(action)
            case KeyDown(keys):
                self._key_down(keys)
            case KeyUp(keys):
                return self._key_up(keys)
            case TypeText(text):
                self._text.enter(text, self._press, self._stop.check)
            case PressKeys(keys):
                self._press(keys)
            case HoldKeys(keys, seconds):
                with self._keys_held(keys):
                    self._stop.sleep(seconds)
            case OpenApp(name, application):
                return self._applications.open(name, self._stop, application)
            case VisitPage(url):
                return self._applications.visit(url, self._stop)
            case _:
                raise ActionFailedError(f"a hand cannot {describe(action)}")
        return None

    def _point(self, action: Action[DesktopPoint]) -> str | None:
        match action:
            case Click(point, button, count):
                self._move(point)
                for number in range(count):
                    if number:
                        self._stop.sleep(_BETWEEN_CLICKS)
                    with self._held(self._free(button)):
                        pass
            case LongPress(point, seconds):
                self._move(point)
                with self._held(self._free("left")):
                    self._stop.sleep(seconds)
            case Move(point):
                self._go(point)
            case ButtonDown(point, button):
                self._button_down(point, button)
            case ButtonUp(point, button):
                return self._button_up(point, button)
            case Drag(start, end):
                self._move(start)
                with self._held(self._free("left")):
                    self._stop.sleep(_GRASP)
                    self._glide(end)
                    self._stop.sleep(_GRASP)  # drop targets look at where the pointer rests
            case Scroll(point, dx, dy):
                self._move(point)
                for notch in [(0, 1 if dy > 0 else -1)] * abs(dy) + [(1 if dx > 0 else -1, 0)] * abs(dx):
                    self._stop.check()
                    self._input.scroll(*notch)
                    self._stop.sleep(_BETWEEN_NOTCHES)
        return None

    def _wait_for_person(self) -> None:
        """Wait until the person holds no key or button that would change the action. Raises ActionFailedError."""
        deadline = time.monotonic() + _PERSON_LETS_GO
        ours = {one.name if one.kind == "key" else f"the {one.name} button" for one in self._down}
        while held := [one for one in self._input.held() if one not in ours]:
            if time.monotonic() >= deadline:
                raise ActionFailedError(f"the person holds down {' and '.join(held)}: wait, and look again")
            self._stop.sleep(0.02)

    def _free(self, button: Button) -> Press:
        """Return the press of a button. Raises ActionFailedError if the button is down already."""
        press = Press("button", button)
        if press in self._down:
            raise ActionFailedError(f"the {button} button is still held down")
        return press

    def _button_down(self, point: DesktopPoint | None, button: Button) -> None:
        if point is not None:
            self._go(point)
        press = self._free(button)
        self._kept.append(press)
        with self._held(press):
            self._stop.sleep(_GRASP)

    def _button_up(self, point: DesktopPoint | None, button: Button) -> str | None:
        press = Press("button", button)
        if press not in self._down:
            return f"nothing to release: the {button} button is not down"
        if point is not None:
            self._go(point)
            self._stop.sleep(_GRASP)  # drop targets look at where the pointer rests
        self._kept.remove(press)
        self._let_go([press])
        return None

    def _key_down(self, keys: tuple[str, ...]) -> None:
        """Keep keys down. A modifier is pressed only with the first action that it modifies.

        Pressed and released alone, modifiers open menus and launchers (as Alt and Super do).
        """
        presses = self._presses(keys)
        new = [press for press in presses if press not in self._kept]
        self._kept += new
        self._unused |= {press for press in new if press.name in MODIFIERS}
        if any(press.name not in MODIFIERS for press in new):
            with self._held(*presses):
                pass

    def _key_up(self, keys: tuple[str, ...]) -> str | None:
        up = [press for press in self._kept if press.kind == "key" and press.name in keys]
        if not up:
            return f"nothing to release: {'+'.join(keys)} {'is' if len(keys) == 1 else 'are'} not down"
        if self._unused & set(up):
            with self._held(*(press for press in self._kept if press.kind == "key")):
                pass
        self._kept = [press for press in self._kept if press not in up]
        self._let_go(up)
        return None

    def _glide(self, end: DesktopPoint) -> None:
        """Move the pointer in steps, as a drag needs it."""
        from_x, from_y = self._input.position()
        to_x, to_y = end.rounded()
        for step in range(1, _DRAG_STEPS + 1):
            share = step / _DRAG_STEPS
            self._stop.check()
            self._input.move(round(from_x + (to_x - from_x) * share), round(from_y + (to_y - from_y) * share))
            self._stop.sleep(_DRAG_SECONDS / _DRAG_STEPS)

    def _press(self, keys: tuple[str, ...]) -> None:
        with self._keys_held(keys):
            pass

    def _go(self, point: DesktopPoint) -> None:
        if any(press.kind == "button" for press in self._down):
            self._glide(point)
        else:
            self._move(point)

    def _move(self, point: DesktopPoint | None) -> None:
        """Move the pointer to a point; None leaves it where it is."""
        self._stop.check()
        if point is not None:
            self._input.move(*point.rounded())
            self._stop.sleep(_AFTER_MOVE)

    @contextmanager
    def _held(self, *presses: Press) -> Iterator[None]:
        """Press the keys and buttons that are not down yet; afterwards, release those that are not to be kept."""
        pressed: list[Press] = []
        try:
            for press in presses:
                if press in self._down:
                    continue
                self._stop.check()
                self._down.append(press)
                pressed.append(press)
                self._input.press(press)
                self._unused.discard(press)
            yield
        finally:
            self._let_go([press for press in pressed if press not in self._kept])

    def _keys_held(self, keys: tuple[str, ...]) -> AbstractContextManager[None]:
        return self._held(*self._presses(keys))

    def _presses(self, keys: tuple[str, ...]) -> list[Press]:
        for key in keys:
            if not self._input.has_key(key):
                raise ActionFailedError(f"this keyboard has no key {key!r}: use type for text")
        return [Press("key", key) for key in keys]

    def _let_go(self, presses: list[Press]) -> None:
        """Release these, the last pressed first."""
        down = [press for press in self._down if press in presses]
        if down:
            self._input.release(down[::-1])
            self._down = [press for press in self._down if press not in presses]

    def lift(self) -> None:
        with suppress(Exception):
            self._let_go([press for press in self._down if press.kind == "key"])
        self._kept = [press for press in self._kept if press.kind == "button" or press.name in MODIFIERS]

    def release_all(self) -> None:
        with suppress(Exception):
            self._let_go(self._down)
        self._down = []
        self._kept.clear()
        self._unused.clear()

    def close(self) -> None:
        self.release_all()
        self._input.close()


class DryRunHand:
    """The hand of a dry run: it describes actions and holds nothing."""

    touches = False

    def __init__(self) -> None:
        self.rest = Rest()

    def perform(self, action: Action[DesktopPoint]) -> str:
        return f"would {describe(action)}"

    def lift(self) -> None: ...

    def release_all(self) -> None: ...

    def close(self) -> None: ...
