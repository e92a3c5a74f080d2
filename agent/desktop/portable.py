"""Desktops through mss, pyautogui and pyperclip: macOS and Windows (not tested there yet), and the base of X11's.

pyautogui has not been maintained since 2023. It exits the program if tkinter is missing, silently ignores unknown keys
and pauses 0.1 s after every call; this module works around all of that. One mss object stays open for a whole run,
because opening it for every grab costs five times the grab itself. It is used from one thread only. Geometry is read in
one function, because its form changes in mss 11.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agent.core.geometry import Region, Size, Viewport
from agent.desktop.apps.launcher import Launcher
from agent.desktop.input.hand import InputHand
from agent.desktop.protocol.desktop import (
    Abilities,
    Applications,
    Desktop,
    TakeoverWatch,
    TextEntry,
    number_of,
    parse_chord,
)
from agent.desktop.protocol.hand import CornerError, Hand, Input, Press
from agent.safety.stop import StopSwitch
from agent.screen.capture import Frame, Screen
from agent.screen.encode import keep_freed_memory
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError, UsageError

if TYPE_CHECKING:
    from mss import MSS

#: Canonical key names (agent.core.keys) for which pyautogui uses other names.
_PYAUTOGUI_NAMES: dict[str, str] = load_config("keys.toml")["pyautogui"] | {
    "super": "command" if sys.platform == "darwin" else "winleft",
}

#: One wheel notch in the units of pyautogui's scroll: a click on X11, WHEEL_DELTA on Windows, about 10 lines on macOS.
_NOTCH = {"win32": 120, "darwin": 10}.get(sys.platform, 1)

_PASTE = ("super", "v") if sys.platform == "darwin" else ("ctrl", "v")


class PyAutoGuiInput(Input):
    """Mouse and keyboard through pyautogui. Raises EnvironmentLacksError if the desktop accepts no input."""

    def __init__(self) -> None:
        self._gui = import_pyautogui()

    def position(self) -> tuple[int, int]:
        x, y = self._gui.position()
        return int(x), int(y)

    def move(self, x: int, y: int) -> None:
        with self._corner_told():
            self._gui.moveTo(x, y)

    def has_key(self, name: str) -> bool:
        return self._gui.platformModule.keyboardMapping.get(own_name(name)) is not None

    def press(self, press: Press) -> None:
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

    def scroll(self, dx: int, dy: int) -> None:
        with self._corner_told():
            if dy:
                self._gui.vscroll(-dy * _NOTCH)
            if dx:
                self._gui.hscroll(dx * _NOTCH)

    def lost(self, error: Exception) -> EnvironmentLacksError:
        return EnvironmentLacksError(f"This desktop takes no more input ({error!r}).", "Is it locked?")

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


class MssScreen:
    """One monitor of this machine's desktop. `OpenDesktop` describes arguments and errors."""

    def __init__(self, monitor: int | None = None) -> None:
        keep_freed_memory()
        self._mss = _open_mss()
        entries, sides = self._mss.monitors[1:], ("left", "top", "width", "height")
        self.monitors = [Region(*(int(entry[side]) for side in sides)) for entry in entries]
        primary = next((one for one, entry in enumerate(entries) if entry.get("is_primary")), None)
        try:
            self._region = region = self.monitors[number_of(self.monitors, monitor, primary)]
        except UsageError:
            self._mss.close()
            raise
        self.home = region.middle

    def grab(self) -> Frame:
        """Capture the monitor (1.5 ms at 1080p through memory shared with the server, and 1 ms to an RGB image)."""
        from mss.exception import ScreenShotError
        from PIL import Image

        try:
            shot = self._mss.grab(asdict(self._region))
        except (ScreenShotError, OSError, AssertionError) as error:  # mss asserts that the X server answers
            raise EnvironmentLacksError(
                f"The screen can no longer be captured ({str(error) or 'no answer'}).",
                "Is the display still there, and unlocked?",
            ) from error
        # `bgra` would be a copy of `raw`. The scale is the captured size over the requested size; it is never assumed.
        captured = Size(shot.width, shot.height)
        image = Image.frombytes("RGB", (captured.width, captured.height), shot.raw, "raw", "BGRX")
        return Frame(image, Viewport(self._region, captured), time.monotonic())

    def close(self) -> None:
        """Close the capture; safe to call twice, and if the display is gone."""
        from mss.exception import ScreenShotError

        with suppress(ScreenShotError):
            self._mss.close()


def _open_mss() -> "MSS":
    from mss import MSS
    from mss.exception import ScreenShotError

    try:
        capture = MSS()
        if len(capture.monitors) < 2:
            raise ScreenShotError("no monitor is connected")
    except (ScreenShotError, OSError) as error:
        display = os.environ.get("DISPLAY", "")
        raise EnvironmentLacksError(
            f"The display {display!r} cannot be opened ({error}).",
            "Either DISPLAY names no running X server, or this user may not connect to it (a missing X cookie: see "
            "XAUTHORITY). Or run with --sandbox to use a throw-away desktop.",
        ) from error
    return capture


_CORNER = "The pointer in a corner of the screen stops a run too."


class PortableDesktop(Desktop):
    """A desktop without window information. `OpenDesktop` describes arguments and errors."""

    name = ""
    abilities = Abilities(windows=False, takeover=False, stop_key=False, remarks=(_CORNER,))

    def __init__(self, stop: StopSwitch, monitor: int | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._stop = stop
        screen = MssScreen(monitor)
        self.screen: Screen = screen
        self.monitors, self.home = screen.monitors, screen.home
        self.applications: Applications = Launcher(environ, self.open_windows)

    @cached_property
    def text_entry(self) -> TextEntry:
        return PyperclipTextEntry()

    @cached_property
    def hand(self) -> Hand:
        return InputHand(self._stop, self._input(), self.text_entry, self.applications)

    def _input(self) -> Input:
        return PyAutoGuiInput()

    def shows(self, environ: Mapping[str, str]) -> bool:  # noqa: ARG002 -- the protocol's
        return True

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:  # noqa: ARG002 -- the protocol's
        """Start no watch. pyautogui itself checks for the pointer in a corner before every movement."""
        parse_chord(stop_key)
        return ""

    def check_input(self) -> str:
        with closing(self._input()) as source:
            return "pyautogui, pointer at {},{}".format(*source.position())

    def close(self) -> None: ...
