"""The hand that touches the desktop, with pyautogui.

pyautogui has not been maintained since 2023: it ends the program where tkinter is missing, ignores unknown keys in
silence and pauses 0.1 s after every call. All of that stays inside this module.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

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
from agent.geometry import DesktopPoint
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, StoppedError

# Canonical key names (agent.keys) that pyautogui calls otherwise.
_PYAUTOGUI_NAMES = {
    "page_up": "pageup", "page_down": "pagedown", "caps_lock": "capslock", "num_lock": "numlock",
    "scroll_lock": "scrolllock", "print_screen": "printscreen", "menu": "apps", "altgr": "altright",
    "volume_up": "volumeup", "volume_down": "volumedown", "volume_mute": "volumemute",
    "media_play": "playpause", "media_next": "nexttrack", "media_previous": "prevtrack", "media_stop": "stop",
    "kp_add": "add", "kp_subtract": "subtract", "kp_multiply": "multiply", "kp_divide": "divide",
    "kp_decimal": "decimal", "kp_enter": "enter", "super": "command" if sys.platform == "darwin" else "winleft",
} | {f"kp_{digit}": f"num{digit}" for digit in range(10)}  # fmt: skip

#: One wheel notch in the units of pyautogui's scroll: a click on X11, WHEEL_DELTA on Windows, about 10 lines on macOS.
_NOTCH = {"win32": 120, "darwin": 10}.get(sys.platform, 1)

#: A drag shorter than about 0.1 s sends one motion event, which applications miss (GTK and Tk, seen under Xvfb).
_DRAG_SECONDS = 0.4
_DRAG_STEPS = 20
#: Between the presses of a double click; well under every desktop's limit (400 to 500 ms).
_BETWEEN_CLICKS = 0.06
#: Toolkits arm a button when the pointer enters it: give them a moment before the press.
_AFTER_MOVE = 0.02


class PyAutoGuiHand:
    """Moves the real pointer and presses real keys.

    Args:
        stop: checked before every single event.
        text: how text is entered.
        applications: opens them.
        home: where the wheel turns when an action names no point.

    Raises:
        EnvironmentLacksError: the desktop takes no input.
    """

    touches = True
    #: What pastes in most applications.
    paste: tuple[str, ...] = ("super", "v") if sys.platform == "darwin" else ("ctrl", "v")

    def __init__(self, stop: StopSwitch, text: TextEntry, applications: Applications, home: DesktopPoint) -> None:
        self._stop = stop
        self._text = text
        self._applications = applications
        self._home = home
        self._gui = import_pyautogui()
        self._keys_down: list[str] = []
        self._buttons_down: list[Button] = []
        self.rest = Rest()

    def perform(self, action: Action[DesktopPoint]) -> str:
        """Carry the action out; see `Hand.perform`."""
        self._stop.check()
        self.rest.busy = True
        try:
            return self._perform(action) or describe(action)
        except self._gui.FailSafeException as error:
            self._stop.stop("the pointer was moved into a corner of the screen")
            raise StoppedError("Stopped: the pointer was moved into a corner of the screen.") from error
        except (ActionFailedError, StoppedError, EnvironmentLacksError):
            raise
        except Exception as error:  # pyautogui surfaces what the system says as it comes
            raise self._lost(error) from error
        finally:
            self.release_all()
            self.rest.since, self.rest.busy = time.monotonic(), False

    def _lost(self, error: Exception) -> EnvironmentLacksError:
        """The sentence for a system that took input and does not any more."""
        return EnvironmentLacksError(f"This desktop takes no more input ({error!r}).", "Is it locked?")

    def _perform(self, action: Action[DesktopPoint]) -> str | None:
        match action:
            case Click(point, button, count):
                self._click(point, button, count)
            case LongPress(point, seconds):
                self._move(point)
                with self._button_held("left"):
                    self._stop.sleep(seconds)
            case Move(point):
                self._move(point)
            case Drag(start, end):
                self._drag(start, end)
            case Scroll(point, dx, dy):
                self._scroll(point or self._home, dx, dy)
            case TypeText(text):
                self._type(text)
            case PressKeys(keys):
                with self._keys_held(keys):
                    pass
            case HoldKeys(keys, seconds):
                with self._keys_held(keys):
                    self._stop.sleep(seconds)
            case OpenApp(name):
                return self._applications.open(name, self._stop)
            case _:
                raise ActionFailedError(f"a hand cannot {describe(action)}")
        return None

    def _click(self, point: DesktopPoint, button: Button, count: int) -> None:
        self._move(point)
        for number in range(count):
            if number:
                self._stop.sleep(_BETWEEN_CLICKS)
            with self._button_held(button):
                pass

    def _drag(self, start: DesktopPoint | None, end: DesktopPoint) -> None:
        if start is not None:
            self._move(start)
        from_x, from_y = self._gui.position()
        to_x, to_y = end.rounded()
        with self._button_held("left"):
            self._stop.sleep(0.05)
            for step in range(1, _DRAG_STEPS + 1):
                share = step / _DRAG_STEPS
                self._gui.moveTo(round(from_x + (to_x - from_x) * share), round(from_y + (to_y - from_y) * share))
                self._stop.sleep(_DRAG_SECONDS / _DRAG_STEPS)
            self._stop.sleep(0.05)  # drop targets look at where the pointer rests

    def _scroll(self, point: DesktopPoint, dx: int, dy: int) -> None:
        self._move(point)
        for amount, turn, towards in ((dy, self._gui.vscroll, -1), (dx, self._gui.hscroll, 1)):
            for _ in range(abs(amount)):
                self._stop.check()
                turn(_NOTCH * towards * (1 if amount > 0 else -1))

    def _type(self, text: str) -> None:
        body = text.rstrip("\n")
        if body:
            self._text.enter(body, self._press_paste, self._stop.check)
        # Line ends at the end mean Enter: pasted ones are held back by shells (bracketed paste).
        for _ in range(len(text) - len(body)):
            with self._keys_held(("enter",)):
                pass

    def _press_paste(self) -> None:
        with self._keys_held(self.paste):
            pass

    def _move(self, point: DesktopPoint) -> None:
        self._stop.check()
        self._gui.moveTo(*point.rounded())
        self._stop.sleep(_AFTER_MOVE)

    @contextmanager
    def _button_held(self, button: Button) -> Iterator[None]:
        self._stop.check()
        self._before_press((), (button,))
        self._buttons_down.append(button)
        self._gui.mouseDown(button=button)
        try:
            yield
        finally:
            self._let_go((), (button,))

    @contextmanager
    def _keys_held(self, keys: tuple[str, ...]) -> Iterator[None]:
        names = [self._key_name(key) for key in keys]
        try:
            for name in names:
                self._stop.check()
                self._before_press((name,), ())
                self._keys_down.append(name)
                self._gui.keyDown(name)
            yield
        finally:
            self._let_go([name for name in reversed(names) if name in self._keys_down], ())

    def _before_press(self, keys: Sequence[str], buttons: Sequence[Button]) -> None:
        """Called before these are pressed."""

    def _let_go(self, keys: Sequence[str], buttons: Sequence[Button]) -> None:
        self._release(keys, buttons)
        for name in keys:
            self._keys_down.remove(name)
        for button in buttons:
            self._buttons_down.remove(button)

    def _release(self, keys: Sequence[str], buttons: Sequence[Button]) -> None:
        """Release all of these in one go: pyautogui's own calls refuse in a corner."""
        for name in keys:
            self._gui.platformModule._keyUp(name)
        for button in buttons:
            self._gui.platformModule._mouseUp(*self._gui.position(), button)

    def _key_name(self, key: str) -> str:
        name = _PYAUTOGUI_NAMES.get(key, key)
        if self._gui.platformModule.keyboardMapping.get(name) is None:
            raise ActionFailedError(f"this keyboard has no key {key!r}: use type for text")
        return name

    def release_all(self) -> None:
        """Release every key and button that this hand still holds; never raises."""
        if self._keys_down or self._buttons_down:
            with suppress(Exception):
                self._let_go(self._keys_down[::-1], self._buttons_down[::-1])
        self._keys_down.clear()
        self._buttons_down.clear()

    def close(self) -> None:
        """Release everything."""
        self.release_all()


def import_pyautogui() -> Any:
    """pyautogui, imported and tamed. Raises EnvironmentLacksError when the desktop takes no input."""
    # mouseinfo ends the whole program where tkinter is missing; pyautogui works without it.
    sys.modules.setdefault("mouseinfo", None)  # type: ignore[arg-type]  # None is how an import is barred
    try:
        import pyautogui
    except BaseException as error:  # KeyError, Xlib errors or SystemExit, by what is missing
        if isinstance(error, KeyboardInterrupt):
            raise
        sys.modules.pop("pyautogui", None)
        raise EnvironmentLacksError(
            f"This desktop takes no input ({' '.join(str(error).split()) or error!r}).", "May this program control it?"
        ) from error
    pyautogui.PAUSE = 0
    pyautogui.FAILSAFE = True
    return pyautogui
