"""The desktop of the X server that DISPLAY names, with input through pyautogui.

pyautogui connects to the X server when it is imported, and keeps that connection. A helper process releases what a hung
hand holds.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from agent.desktop.linux_desktop import LinuxDesktop
from agent.desktop.portable import PortableDesktop, PyAutoGuiInput, own_name
from agent.desktop.programs import HelperProcess, host_pid
from agent.desktop.protocol.desktop import Abilities, TakeoverWatch, TextEntry
from agent.desktop.protocol.hand import Input, Press
from agent.desktop.protocol.windows import Windows
from agent.desktop.x11.connection import display_lost, open_display
from agent.desktop.x11.selections import X11Clipboard
from agent.desktop.x11.text import X11TextEntry
from agent.desktop.x11.watches import DisplayWatch, StopKey, Takeover, X11InputLog
from agent.desktop.x11.windows import open_windows, same_display
from agent.safety.stop import REASONS, StopSwitch, shared_descriptor
from foundation.errors import EnvironmentLacksError

#: X11's button numbers.
_BUTTON_NUMBERS = {"left": 1, "middle": 2, "right": 3}
#: Bits of the pointer state: ShiftMask, ControlMask, Mod1Mask and Mod4Mask (the same in every layout), buttons.
_HELD = {
    "shift": 1, "ctrl": 1 << 2, "alt": 1 << 3, "super": 1 << 6,
    "the left button": 1 << 8, "the middle button": 1 << 9, "the right button": 1 << 10,
}  # fmt: skip
#: Seconds until a process that hung receives a stop after it resumes.
_STOP_ARRIVES = 0.3


class Releaser(HelperProcess):
    """Controls `releaser_process.py`."""

    def __init__(self, stop: StopSwitch) -> None:
        shared = shared_descriptor()
        super().__init__(
            Path(__file__).with_name("releaser_process.py"),
            str(-1 if shared is None else shared),
            ",".join(str(int(number)) for number in REASONS),
            files=() if shared is None else (shared,),
        )
        stop.on_stop(lambda: self.tell("stop"))


class X11Input(PyAutoGuiInput):
    """Mouse and keyboard of X11. Raises EnvironmentLacksError if the display accepts no input."""

    def __init__(self, stop: StopSwitch) -> None:
        open_display().close()  # raises a more precise error than pyautogui
        super().__init__()
        client = _connected(self._gui.platformModule)
        self._stop = stop
        self._releaser = Releaser(stop)
        self._releaser.tell(f"client {client}")

    def held(self) -> list[str]:
        mask = self._gui.platformModule._display.screen().root.query_pointer().mask
        return [name for name, bit in _HELD.items() if mask & bit]

    def press(self, press: Press) -> None:
        self._releaser.tell(f"+ {press.kind} {self._code(press)}")
        super().press(press)

    def release(self, presses: Sequence[Press]) -> None:
        """Release everything in one round trip to the server; pyautogui needs several."""
        from Xlib import X
        from Xlib.ext import xtest

        display = self._gui.platformModule._display
        for press in presses:
            xtest.fake_input(display, X.KeyRelease if press.kind == "key" else X.ButtonRelease, self._code(press))
        display.sync()
        for press in presses:
            self._releaser.tell(f"- {press.kind} {self._code(press)}")

    def _code(self, press: Press) -> int:
        if press.kind == "button":
            return _BUTTON_NUMBERS[press.name]
        return int(self._gui.platformModule.keyboardMapping[own_name(press.name)])

    def set_busy(self, busy: bool) -> None:
        self._releaser.tell("busy" if busy else "idle")

    def lost(self, error: Exception) -> EnvironmentLacksError:
        # If this whole process hung during a stop, the releaser has closed the hand's connection. The stop then reaches
        # this process only now, so wait for it.
        self._stop.sleep(_STOP_ARRIVES)
        return display_lost(error)

    def close(self) -> None:
        self._releaser.close()


_WAYLAND = "This is a Wayland session: only X11 applications can be seen and used, the rest of the screen is black."


def _connected(platform: Any) -> int:
    """Reconnect pyautogui if its connection is closed or leads to another display. Return one of its resources."""
    try:
        if platform._display.get_display_name() != os.environ.get("DISPLAY"):
            platform._display = open_display()
        platform._display.sync()
    except Exception:  # python3-xlib raises any of a dozen exceptions for a lost connection
        platform._display = open_display()
    context = platform._display.screen().root.create_gc()
    platform._display.sync()
    return int(context.id)


class X11Desktop(LinuxDesktop, PortableDesktop):
    """A desktop of X11."""

    def __init__(self, stop: StopSwitch, monitor: int | None = None, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(stop, monitor, environ)
        self._environ = os.environ if environ is None else environ
        self.name = os.environ.get("DISPLAY", "")
        self.abilities = Abilities(remarks=(_WAYLAND,) if os.environ.get("WAYLAND_DISPLAY") else ())
        self._watches = ExitStack()
        self._clipboard = X11Clipboard()

    @cached_property
    def text_entry(self) -> TextEntry:
        return X11TextEntry(partial(host_pid, environ=self._environ))

    def _input(self) -> Input:
        return X11Input(self._stop)

    def open_windows(self) -> Windows | None:
        return open_windows()

    def open_input_log(self) -> X11InputLog:
        return X11InputLog()

    def shows(self, environ: Mapping[str, str]) -> bool:
        return same_display(environ.get("DISPLAY", ""), self.name)

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:
        key = StopKey(self._stop, stop_key)
        self._watches.callback(key.close)
        self._watches.callback(DisplayWatch(self._stop).close)
        if takeover is not None:
            self._watches.callback(Takeover(takeover).close)
        return key.remark

    def close(self) -> None:
        self._watches.close()
