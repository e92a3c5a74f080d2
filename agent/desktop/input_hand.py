"""The hand that touches a desktop: what each action is in single events, on any system's input."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from agent.actions import (
    Action,
    Button,
    Click,
    Drag,
    HoldKeys,
    LongPress,
    Move,
    OpenApp,
    PressKeys,
    Scroll,
    TypeText,
    describe,
)
from agent.desktop.base import Applications, TextEntry
from agent.desktop.hand import ActionFailedError, Rest
from agent.desktop.input import CornerError, Input, Press
from agent.geometry import DesktopPoint
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, StoppedError

_CORNER = "the pointer was moved into a corner of the screen"
#: A drag shorter than about 0.1 s sends one motion event, which applications miss (GTK and Tk, seen under Xvfb).
_DRAG_SECONDS = 0.4
_DRAG_STEPS = 20
#: Between the presses of a double click; well under every desktop's limit (400 to 500 ms).
_BETWEEN_CLICKS = 0.06
#: Toolkits arm a button when the pointer enters it: give them a moment before the press.
_AFTER_MOVE = 0.02
#: A person who holds a key or button may be about to let go of it.
_PERSON_LETS_GO = 1.0


class InputHand:
    """Moves the real pointer and presses real keys; `stop` is checked before every single event.

    The wheel turns at `home` when an action names no point.
    """

    touches = True

    def __init__(
        self, stop: StopSwitch, source: Input, text: TextEntry, applications: Applications, home: DesktopPoint
    ) -> None:
        self._stop = stop
        self._input = source
        self._text = text
        self._applications = applications
        self._home = home
        self._down: list[Press] = []
        self.rest = Rest()

    def perform(self, action: Action[DesktopPoint]) -> str:
        """Carry the action out; see `Hand.perform`."""
        self._stop.check()
        self.rest.busy = True
        self._input.set_busy(True)
        try:
            if not isinstance(action, OpenApp):
                self._wait_for_person()
            return self._perform(action) or describe(action)
        except CornerError as error:
            self._stop.stop(_CORNER)
            raise StoppedError(f"Stopped: {_CORNER}.") from error
        except (ActionFailedError, StoppedError, EnvironmentLacksError):
            raise
        except Exception as error:
            raise self._input.lost(error) from error
        finally:
            self.release_all()
            self._input.set_busy(False)
            self.rest.since, self.rest.busy = time.monotonic(), False

    def _perform(self, action: Action[DesktopPoint]) -> str | None:
        match action:
            case Click(point, button, count, held):
                with self._keys_held(held):
                    self._click(point, button, count)
            case LongPress(point, seconds):
                self._move(point)
                with self._held(Press("button", "left")):
                    self._stop.sleep(seconds)
            case Move(point):
                self._move(point)
            case Drag(start, end, held):
                with self._keys_held(held):
                    self._drag(start, end)
            case Scroll(point, dx, dy, held):
                with self._keys_held(held):
                    self._scroll(point or self._home, dx, dy)
            case TypeText(text):
                self._text.enter(text, self._press, self._stop.check)
            case PressKeys(keys):
                self._press(keys)
            case HoldKeys(keys, seconds):
                with self._keys_held(keys):
                    self._stop.sleep(seconds)
            case OpenApp(name, application):
                return self._applications.open(name, self._stop, application)
            case _:
                raise ActionFailedError(f"a hand cannot {describe(action)}")
        return None

    def _wait_for_person(self) -> None:
        """Wait until nobody holds a key that would make another action of this one. Raises ActionFailedError."""
        deadline = time.monotonic() + _PERSON_LETS_GO
        while held := self._input.held():
            if time.monotonic() >= deadline:
                raise ActionFailedError(f"the person holds down {' and '.join(held)}: wait, and look again")
            self._stop.sleep(0.02)

    def _click(self, point: DesktopPoint, button: Button, count: int) -> None:
        self._move(point)
        for number in range(count):
            if number:
                self._stop.sleep(_BETWEEN_CLICKS)
            with self._held(Press("button", button)):
                pass

    def _drag(self, start: DesktopPoint | None, end: DesktopPoint) -> None:
        if start is not None:
            self._move(start)
        from_x, from_y = self._input.position()
        to_x, to_y = end.rounded()
        with self._held(Press("button", "left")):
            self._stop.sleep(0.05)
            for step in range(1, _DRAG_STEPS + 1):
                share = step / _DRAG_STEPS
                self._input.move(round(from_x + (to_x - from_x) * share), round(from_y + (to_y - from_y) * share))
                self._stop.sleep(_DRAG_SECONDS / _DRAG_STEPS)
            self._stop.sleep(0.05)  # drop targets look at where the pointer rests

    def _scroll(self, point: DesktopPoint, dx: int, dy: int) -> None:
        self._move(point)
        for notch in [(0, 1 if dy > 0 else -1)] * abs(dy) + [(1 if dx > 0 else -1, 0)] * abs(dx):
            self._stop.check()
            self._input.scroll(*notch)

    def _press(self, keys: tuple[str, ...]) -> None:
        with self._keys_held(keys):
            pass

    def _move(self, point: DesktopPoint) -> None:
        self._stop.check()
        self._input.move(*point.rounded())
        self._stop.sleep(_AFTER_MOVE)

    @contextmanager
    def _held(self, *presses: Press) -> Iterator[None]:
        first = len(self._down)
        try:
            for press in presses:
                self._stop.check()
                self._down.append(press)
                self._input.press(press)
            yield
        finally:
            self._let_go(first)

    def _keys_held(self, keys: tuple[str, ...]) -> AbstractContextManager[None]:
        for key in keys:
            if not self._input.has_key(key):
                raise ActionFailedError(f"this keyboard has no key {key!r}: use type for text")
        return self._held(*(Press("key", key) for key in keys))

    def _let_go(self, first: int) -> None:
        """Release what was pressed last, down to the `first` one."""
        if self._down[first:]:
            self._input.release(self._down[first:][::-1])
            del self._down[first:]

    def release_all(self) -> None:
        """Release every key and button that this hand still holds; never raises."""
        with suppress(Exception):
            self._let_go(0)
        self._down.clear()

    def close(self) -> None:
        """Release everything."""
        self.release_all()
        self._input.close()
