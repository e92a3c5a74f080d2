"""What Linux desktops share under every display system: the witness, the elements, and the translation of PIDs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from agent.core.geometry import Region
from agent.desktop.programs import host_pid
from agent.desktop.protocol.clipboard import Clipboard, ClipboardWatch
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.windows import Windows
from agent.desktop.protocol.witness import Witness
from agent.desktop.trees.elements import AtspiElements
from agent.desktop.trees.switch import buses, session_bus


class LinuxDesktop(ABC):
    """The base of every desktop on Linux."""

    monitors: list[Region]
    _environ: Mapping[str, str]

    @abstractmethod
    def open_windows(self) -> Windows | None: ...

    @abstractmethod
    def _open_clipboard(self) -> Clipboard:
        """Open the clipboard for the witness."""

    def _accessibility_bus(self, windows: Windows) -> str:  # noqa: ARG002 -- only X11 has one
        """Return the address of the accessibility bus that the display announces; "" if it announces none."""
        return ""

    def open_witness(self, environ: Mapping[str, str], without: Sequence[Path] = ()) -> Witness | None:
        from agent.desktop.changes.witness import LinuxWitness

        return LinuxWitness(environ, self.open_windows, ClipboardWatch(self._open_clipboard()), without)

    def open_elements(self) -> Elements | None:
        """Without windows, elements are unknown too."""
        windows = self.open_windows()
        if windows is None:
            return None
        find_bus = partial(buses, session_bus(self._environ), self._accessibility_bus(windows))
        return AtspiElements(find_bus, windows, self.monitors, partial(host_pid, environ=self._environ))
