"""The desktop of the X server that DISPLAY names."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path

from agent.desktop.input.takeover import Takeover
from agent.desktop.portable.desktop import PortableDesktop
from agent.desktop.programs import number_outside
from agent.desktop.protocol.clipboard import ClipboardWatch
from agent.desktop.protocol.desktop import Abilities, TakeoverWatch, TextEntry
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.hand import Input
from agent.desktop.protocol.windows import Windows
from agent.desktop.protocol.witness import Witness
from agent.desktop.trees.elements import AtspiElements
from agent.desktop.trees.switch import buses, session_bus
from agent.desktop.x11.clipboard import X11Clipboard
from agent.desktop.x11.display_watch import DisplayWatch
from agent.desktop.x11.input import X11Input, X11InputState
from agent.desktop.x11.stop_key import StopKey
from agent.desktop.x11.text import X11TextEntry
from agent.desktop.x11.windows import open_windows, same_display
from agent.safety.stop import StopSwitch

_WAYLAND = "This is a Wayland session: only X11 applications can be seen and used, the rest of the screen is black."


class X11Desktop(PortableDesktop):
    """See `Desktop` and `PortableDesktop`."""

    def __init__(self, stop: StopSwitch, monitor: int | None = None, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(stop, monitor, environ)
        self._environ = os.environ if environ is None else environ
        self.name = os.environ.get("DISPLAY", "")
        self.abilities = Abilities(remarks=(_WAYLAND,) if os.environ.get("WAYLAND_DISPLAY") else ())
        self._watches = ExitStack()

    @cached_property
    def text_entry(self) -> TextEntry:
        """See `Desktop.text_entry`."""
        return X11TextEntry(self._number_outside)

    def _input(self) -> Input:
        return X11Input(self._stop)

    def open_windows(self) -> Windows | None:
        """See `Desktop.open_windows`."""
        return open_windows()

    def open_witness(self, environ: Mapping[str, str], without: Sequence[Path] = ()) -> Witness | None:
        """See `Desktop.open_witness`."""
        from agent.desktop.evidence.witness import LinuxWitness

        return LinuxWitness(environ, self.open_windows, ClipboardWatch(X11Clipboard()), without)

    def open_elements(self) -> Elements | None:
        """See `Desktop.open_elements`."""
        windows = open_windows()
        if windows is None:
            return None
        find_bus = partial(buses, session_bus(self._environ), windows.told_bus())
        return AtspiElements(find_bus, windows, self.monitors, self._number_outside)

    def _number_outside(self, pid: int) -> int:
        """The number here of a process whose window or bus tells the one that it has in a sandbox."""
        return number_outside(pid, self._environ)

    def shows(self, environ: Mapping[str, str]) -> bool:
        """See `Desktop.shows`."""
        return same_display(environ.get("DISPLAY", ""), self.name)

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:
        """See `Desktop.watch`."""
        key = StopKey(self._stop, stop_key)
        self._watches.callback(key.close)
        self._watches.callback(DisplayWatch(self._stop).close)
        if takeover is not None:
            self._watches.callback(Takeover(takeover, X11InputState).close)
        return key.remark

    def close(self) -> None:
        """See `Desktop.close`."""
        self._watches.close()
