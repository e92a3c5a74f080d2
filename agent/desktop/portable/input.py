"""Input through pyautogui, and text through the clipboard with pyperclip.

pyautogui has not been maintained since 2023. It exits the program if tkinter is missing, silently ignores unknown keys
and pauses 0.1 s after every call; this module works around all of that.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from agent.desktop.input.pressed_notes import PressedNotes
from agent.desktop.protocol.hand import CornerError, Press
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError

#: Canonical key names (agent.core.keys) for which pyautogui uses other names.
_PYAUTOGUI_NAMES: dict[str, str] = load_config("keys.toml")["pyautogui"] | {
    "super": "command" if sys.platform == "darwin" else "winleft",
}

#: One wheel notch in the units of pyautogui's scroll: a click on X11, WHEEL_DELTA on Windows, about 10 lines on macOS.
_NOTCH = {"win32": 120, "darwin": 10}.get(sys.platform, 1)

_PASTE = ("super", "v") if sys.platform == "darwin" else ("ctrl", "v")


class PyAutoGuiInput:
    """Mouse and keyboard through pyautogui. Raises EnvironmentLacksError if the desktop accepts no input."""

    def __init__(self, desktop: str = sys.platform) -> None:
        self._gui = import_pyautogui()
        self._notes = PressedNotes(desktop)

    def position(self) -> tuple[int, int]:
        x, y = self._gui.position()
        return int(x), int(y)

    def move(self, x: int, y: int) -> None:
        with self._corner_told():
            self._gui.moveTo(x, y)

    def held(self) -> list[str]:
        return []

    def has_key(self, name: str) -> bool:
        return self._gui.platformModule.keyboardMapping.get(own_name(name)) is not None

    def press(self, press: Press) -> None:
        self._notes.press(press)
        with self._corner_told():
            if press.kind == "key":
                self._gui.keyDown(own_name(press.name))
            else:
                self._gui.mouseDown(button=press.name)

    def release(self, presses: Sequence[Press]) -> None:
        """Release without pyautogui's public functions, which fail while the pointer is in a corner."""
        for press in presses:
            if press.kind == "key":
                self._gui.platformModule._keyUp(own_name(press.name))
            else:
                self._gui.platformModule._mouseUp(*self._gui.position(), press.name)
        self._notes.release(presses)

    def release_left_over(self) -> None:
        """Release what crashed processes of ours left pressed."""
        if left := self._notes.take_left_over():
            with suppress(Exception):  # this keyboard may lack the key
                self.release(left)

    def scroll(self, dx: int, dy: int) -> None:
        with self._corner_told():
            if dy:
                self._gui.vscroll(-dy * _NOTCH)
            if dx:
                self._gui.hscroll(dx * _NOTCH)

    def set_busy(self, busy: bool) -> None: ...

    def lost(self, error: Exception) -> EnvironmentLacksError:
        return EnvironmentLacksError(f"This desktop takes no more input ({error!r}).", "Is it locked?")

    def close(self) -> None:
        self._notes.close()

    @contextmanager
    def _corner_told(self) -> Iterator[None]:
        try:
            yield
        except self._gui.FailSafeException as error:
            raise CornerError from error


def own_name(key: str) -> str:
    """Return pyautogui's name of a key."""
    return _PYAUTOGUI_NAMES.get(key, key)


def import_pyautogui() -> Any:
    """Import and configure pyautogui. Raises EnvironmentLacksError if the desktop accepts no input."""
    # mouseinfo exits the whole program if tkinter is missing; pyautogui works without it.
    sys.modules.setdefault("mouseinfo", None)  # type: ignore[arg-type]  # None blocks an import
    try:
        import pyautogui
    except BaseException as error:  # KeyError, Xlib errors or SystemExit, depending on what is missing
        if isinstance(error, KeyboardInterrupt):
            raise
        sys.modules.pop("pyautogui", None)
        raise EnvironmentLacksError(
            f"This desktop takes no input ({' '.join(str(error).split()) or error!r}).", "May this program control it?"
        ) from error
    pyautogui.PAUSE = 0
    pyautogui.FAILSAFE = True
    return pyautogui


class PyperclipTextEntry:
    """Pastes text, then restores the clipboard's old text."""

    def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
        import pyperclip

        check_stop()
        body = text.rstrip("\n")
        if body:
            before = pyperclip.paste()
            try:
                pyperclip.copy(body)
                press(_PASTE)
                time.sleep(0.3)  # these systems do not report when the text was fetched
            finally:
                pyperclip.copy(before)
        for _ in text[len(body) :]:
            press(("enter",))
