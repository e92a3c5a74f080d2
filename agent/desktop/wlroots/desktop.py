"""The desktop of the Wayland compositor that WAYLAND_DISPLAY names."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property, partial
from pathlib import Path

from agent.desktop.apps.launcher import Launcher
from agent.desktop.input.hand import InputHand
from agent.desktop.programs import number_outside
from agent.desktop.protocol.clipboard import ClipboardWatch
from agent.desktop.protocol.desktop import Abilities, Applications, TakeoverWatch, TextEntry, parse_chord
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.hand import Hand
from agent.desktop.protocol.windows import Windows
from agent.desktop.protocol.witness import Witness
from agent.desktop.trees.elements import AtspiElements
from agent.desktop.trees.switch import buses, session_bus
from agent.desktop.wayland.pointer import Pointer
from agent.desktop.wayland.seat_watch import NOTIFIERS, SeatWatch
from agent.desktop.wayland.wire import Connection, socket_of
from agent.desktop.wlroots import sway
from agent.desktop.wlroots.clipboard import WlrootsClipboard
from agent.desktop.wlroots.copying import missing_for_copying
from agent.desktop.wlroots.input import KEYBOARDS, POINTERS, WlrootsInput
from agent.desktop.wlroots.screen import WlrootsScreen
from agent.desktop.wlroots.stop_key import SwayStopKey
from agent.desktop.wlroots.text import WlrootsTextEntry
from agent.desktop.wlroots.toplevels import TOPLEVELS, ToplevelWindows
from agent.desktop.wlroots.windows import SwayWindows
from agent.safety.stop import StopSwitch

#: What a compositor must offer to be worked with, besides a way of copying its screen.
NEEDED = (POINTERS, KEYBOARDS, "wl_shm", "wl_seat")
#: By what of it, and of what copying needs, the screen is touched; by all other it is seen.
FOR_TOUCHING = frozenset({POINTERS, KEYBOARDS, "wl_seat"})
_CORNER = "On Wayland, the pointer in a corner of the screen does not stop a run."
_PANELS = "Panels, notifications and open menus are not told here: a click there counts as one on what lies below."


def missing_on(path: str) -> list[str]:
    """Which of the needed interfaces the compositor at a socket does not offer. Raises EnvironmentLacksError."""
    with closing(Connection(path)) as connection:
        return [*missing_for_copying(connection), *(one for one in NEEDED if not connection.has(one))]


class WlrootsDesktop:
    """See `Desktop`, and for its arguments and errors `OpenDesktop`."""

    def __init__(self, stop: StopSwitch, monitor: int | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._stop = stop
        self._environ = os.environ if environ is None else environ
        self._path = socket_of(os.environ)
        self.name = os.environ.get("WAYLAND_DISPLAY", "")
        self.screen = WlrootsScreen(self._path, monitor)
        self.monitors, self.home = self.screen.monitors, self.screen.home
        self._pointer = Pointer(self.home.rounded())
        self._watches = ExitStack()
        self.abilities = self._abilities()
        self.applications: Applications = Launcher(environ, self.open_windows)

    def _abilities(self) -> Abilities:
        with closing(Connection(self._path)) as connection:
            tells_idle = any(connection.has(name) for name, *_ in NOTIFIERS)
            self._has_names = connection.has(TOPLEVELS)
        is_sway = bool(sway.socket_of(os.environ))
        remarks = (_PANELS,) if is_sway else ()
        return Abilities(
            windows=is_sway,
            names=self._has_names,
            takeover=tells_idle,
            stop_key=is_sway,
            remarks=(*remarks, _CORNER),
        )

    @cached_property
    def _input(self) -> WlrootsInput:
        return WlrootsInput(self._path, self._pointer)

    @cached_property
    def text_entry(self) -> TextEntry:
        """See `Desktop.text_entry`."""
        return WlrootsTextEntry(lambda: self._input, self.open_windows)

    @cached_property
    def hand(self) -> Hand:
        """See `Desktop.hand`."""
        return InputHand(self._stop, self._input, self.text_entry, self.applications, self.home)

    def open_windows(self) -> Windows | None:
        """See `Desktop.open_windows`."""
        opened = sway.open_sway()
        if opened is not None:
            return SwayWindows(opened, self._pointer)
        return ToplevelWindows(self._path, self._pointer) if self._has_names else None

    def open_witness(self, environ: Mapping[str, str], without: Sequence[Path] = ()) -> Witness | None:
        """See `Desktop.open_witness`."""
        from agent.desktop.evidence.witness import LinuxWitness

        clipboard = ClipboardWatch(WlrootsClipboard(self._path))
        return LinuxWitness(environ, self.open_windows, clipboard, without)

    def open_elements(self) -> Elements | None:
        """See `Desktop.open_elements`."""
        windows = self.open_windows() if self.abilities.windows else None
        if windows is None:
            return None
        find_bus = partial(buses, session_bus(self._environ))
        return AtspiElements(find_bus, windows, self.monitors, self._number_outside)

    def _number_outside(self, pid: int) -> int:
        return number_outside(pid, self._environ)

    def shows(self, environ: Mapping[str, str]) -> bool:
        """See `Desktop.shows`."""
        return socket_of(environ) == self._path

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:
        """See `Desktop.watch`."""
        parse_chord(stop_key)
        self._watches.callback(SeatWatch(self._path, self._stop, takeover).close)
        if not self.abilities.stop_key:
            return ""
        key = SwayStopKey(self._stop, stop_key)
        self._watches.callback(key.close)
        return key.remark

    def check_input(self) -> str:
        """See `Desktop.check_input`."""
        with closing(WlrootsInput(self._path, self._pointer)):
            return "a pointer and a keyboard of our own"

    def close(self) -> None:
        """See `Desktop.close`."""
        self._watches.close()
