"""A desktop of which nothing is known but how it is seen and touched: macOS and Windows. Not run there by us yet."""

from collections.abc import Mapping
from functools import cached_property

from agent.desktop.apps.launcher import Launcher
from agent.desktop.base import Abilities, Applications, TakeoverWatch, TextEntry, parse_chord
from agent.desktop.hand import Hand
from agent.desktop.input import Input
from agent.desktop.input_hand import InputHand
from agent.desktop.portable.input import PyAutoGuiInput, PyperclipTextEntry
from agent.desktop.portable.screen import MssScreen
from agent.desktop.windows import Windows
from agent.geometry import DesktopPoint, Region
from agent.safety.stop import StopSwitch


class PortableDesktop:
    """See `Desktop`.

    Args:
        stop: ends what the hand does.
        monitor: 1 is the first monitor, 2 the second; None is the primary one.
        environ: the environment that applications are started in; None for this process's own.

    Raises:
        EnvironmentLacksError: there is no display, or it may not be read.
        UsageError: there is no such monitor.
    """

    name = ""
    abilities = Abilities(windows=False, takeover=False, stop_key=False)

    def __init__(self, stop: StopSwitch, monitor: int | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._stop = stop
        self.screen = MssScreen(monitor)
        self.applications: Applications = Launcher(environ, self.open_windows)

    @property
    def monitors(self) -> list[Region]:
        """See `Desktop.monitors`."""
        return self.screen.monitors()

    @property
    def home(self) -> DesktopPoint:
        """See `Desktop.home`."""
        return self.screen.home

    @cached_property
    def text_entry(self) -> TextEntry:
        """See `Desktop.text_entry`."""
        return PyperclipTextEntry()

    @cached_property
    def hand(self) -> Hand:
        """See `Desktop.hand`."""
        return InputHand(self._stop, self._input(), self.text_entry, self.applications, self.home)

    def _input(self) -> Input:
        return PyAutoGuiInput()

    def open_windows(self) -> Windows | None:
        """See `Desktop.open_windows`."""
        return None

    def shows(self, environ: Mapping[str, str]) -> bool:  # noqa: ARG002 -- the protocol's
        """See `Desktop.shows`."""
        return True

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:  # noqa: ARG002 -- the protocol's
        """Nothing is watched but the pointer, by pyautogui itself before every movement."""
        parse_chord(stop_key)
        return ""

    def check_input(self) -> str:
        """See `Desktop.check_input`."""
        source = self._input()
        try:
            return "pyautogui, pointer at {},{}".format(*source.position())
        finally:
            source.close()

    def close(self) -> None:
        """See `Desktop.close`."""
