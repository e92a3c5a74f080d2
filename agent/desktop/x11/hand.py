"""The hand on X11: pyautogui's, with a process beside it that releases what a hand that hangs still holds.

pyautogui connects to the X server when it is imported, and keeps that connection.
"""

from collections.abc import Sequence
from typing import Any

from agent.actions import Action, Button
from agent.desktop.base import Applications, TextEntry
from agent.desktop.portable import hand as portable
from agent.desktop.x11.connection import display_lost, no_display, open_display, prepare_xlib
from agent.desktop.x11.releaser import Kind, Releaser
from agent.geometry import DesktopPoint
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

#: X11's numbers.
_BUTTON_NUMBERS: dict[Button, int] = {"left": 1, "middle": 2, "right": 3}
#: Seconds for a stop to be heard once a hung process goes on.
_STOP_ARRIVES = 0.3


class X11Hand(portable.PyAutoGuiHand):
    """See `PyAutoGuiHand`."""

    paste = ("shift", "insert")  # terminals take it too

    def __init__(self, stop: StopSwitch, text: TextEntry, applications: Applications, home: DesktopPoint) -> None:
        import_pyautogui()
        super().__init__(stop, text, applications, home)
        self._releaser = Releaser(stop)
        self._releaser.serve(_connected(self._gui.platformModule))

    def perform(self, action: Action[DesktopPoint]) -> str:
        """Carry the action out; see `Hand.perform`."""
        self._releaser.busy(True)
        try:
            return super().perform(action)
        finally:
            self._releaser.busy(False)

    def _lost(self, error: Exception) -> EnvironmentLacksError:
        # The releaser cuts off a hand that a stop did not reach, because all of us hung: the stop arrives about now.
        self._stop.sleep(_STOP_ARRIVES)
        return display_lost(error)

    def _before_press(self, keys: Sequence[str], buttons: Sequence[Button]) -> None:
        for kind, code in self._codes(keys, buttons):
            self._releaser.down(kind, code)

    def _release(self, keys: Sequence[str], buttons: Sequence[Button]) -> None:
        """Release all of these with one question to the server: pyautogui's calls ask it several times."""
        from Xlib import X
        from Xlib.ext import xtest

        display, codes = self._gui.platformModule._display, self._codes(keys, buttons)
        for kind, code in codes:
            xtest.fake_input(display, X.KeyRelease if kind == "key" else X.ButtonRelease, code)
        display.sync()
        for kind, code in codes:
            self._releaser.up(kind, code)

    def _codes(self, keys: Sequence[str], buttons: Sequence[Button]) -> list[tuple[Kind, int]]:
        numbers = self._gui.platformModule.keyboardMapping
        return [
            *(("key", int(numbers[name])) for name in keys),
            *(("button", _BUTTON_NUMBERS[button]) for button in buttons),
        ]

    def close(self) -> None:
        """Release everything."""
        super().close()
        self._releaser.close()


def import_pyautogui() -> Any:
    """pyautogui on this display. Raises EnvironmentLacksError when that takes no input."""
    prepare_xlib()
    try:
        return portable.import_pyautogui()
    except EnvironmentLacksError as error:
        raise no_display(error.__cause__ or error) from error.__cause__


def _connected(platform: Any) -> int:
    """Make sure that pyautogui's connection lives (a stop may have cut it off); a resource of it, made for that."""
    try:
        platform._display.sync()
    except Exception:  # python3-xlib surfaces a lost connection as any of a dozen exceptions
        platform._display = open_display()
    context = platform._display.screen().root.create_gc()
    platform._display.sync()
    return int(context.id)
