"""The desktops of macOS and Windows: only screen, mouse, keyboard and clipboard. Not tested there yet."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path

from agent.desktop.apps.launcher import Launcher
from agent.desktop.input.hand import InputHand
from agent.desktop.portable.input import PyAutoGuiInput, PyperclipTextEntry
from agent.desktop.portable.screen import MssScreen
from agent.desktop.protocol.desktop import Abilities, Applications, TakeoverWatch, TextEntry, parse_chord
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.hand import Hand, Input
from agent.desktop.protocol.input_log import InputLog
from agent.desktop.protocol.windows import Windows
from agent.desktop.protocol.witness import Witness
from agent.safety.stop import StopSwitch
from agent.screen.capture import Screen

_CORNER = "The pointer in a corner of the screen stops a run too."


class PortableDesktop:
    """A desktop without window information. `OpenDesktop` describes arguments and errors."""

    name = ""
    abilities = Abilities(windows=False, takeover=False, stop_key=False, remarks=(_CORNER,))

    def __init__(self, stop: StopSwitch, monitor: int | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._stop = stop
        screen = MssScreen(monitor)
        self.screen: Screen = screen
        self.monitors = screen.monitors
        self.home = screen.home
        self.applications: Applications = Launcher(environ, self.open_windows)

    @cached_property
    def text_entry(self) -> TextEntry:
        return PyperclipTextEntry()

    @cached_property
    def hand(self) -> Hand:
        return InputHand(self._stop, self._input(), self.text_entry, self.applications)

    def _input(self) -> Input:
        found = PyAutoGuiInput()
        found.release_left_over()
        return found

    def open_windows(self) -> Windows | None:
        return None

    def open_witness(self, environ: Mapping[str, str], without: Sequence[Path] = ()) -> Witness | None:  # noqa: ARG002 -- the protocol's
        return None

    def open_elements(self) -> Elements | None:
        return None

    def open_input_log(self) -> InputLog | None:
        return None

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
