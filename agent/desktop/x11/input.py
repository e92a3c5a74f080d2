"""Input on X11 through pyautogui, with a helper process that releases what a hung hand holds; and the input's state.

pyautogui connects to the X server when it is imported, and keeps that connection.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.desktop.input.helper_process import HelperProcess
from agent.desktop.portable import PyAutoGuiInput, own_name
from agent.desktop.protocol.hand import Press
from agent.desktop.x11.connection import display_lost, open_display
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
        self._stop = stop
        self._releaser = Releaser(stop)
        self._releaser.tell(f"client {_connected(self._gui.platformModule)}")

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
