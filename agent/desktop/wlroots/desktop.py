"""The desktop of the compositor that WAYLAND_DISPLAY names, through wlroots' protocols."""

import os
from collections.abc import Mapping
from contextlib import closing
from functools import cached_property

from typing_extensions import override

from agent.desktop.protocol.desktop import Abilities, TakeoverWatch, TextEntry, parse_chord
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.windows import Windows
from agent.desktop.wayland.desktop import NO_CORNER, Pointer, SeatWatch, WaylandDesktop
from agent.desktop.wayland.selection import WlrootsClipboard
from agent.desktop.wayland.wire import Connection
from agent.desktop.wlroots.input import KEYBOARDS, POINTERS, WlrootsInput, WlrootsTextEntry
from agent.desktop.wlroots.screen import SCREENCOPY, WlrootsScreen
from agent.desktop.wlroots.windows import TOPLEVELS, SwayStopKey, ToplevelWindows, open_windows
from agent.safety.stop import StopSwitch

#: Interfaces that a compositor must offer.
NEEDED = (SCREENCOPY, POINTERS, KEYBOARDS, "wl_shm", "wl_seat")
#: Interfaces of `missing_on` that are needed for input; all others are needed for capture.
FOR_TOUCHING = frozenset({POINTERS, KEYBOARDS, "wl_seat"})
_PANELS = "Panels, notifications and open menus are unknown here: a click on them counts for the window below."


def missing_on(path: str) -> list[str]:
    """Return the needed interfaces that a compositor's socket does not offer. Raises EnvironmentLacksError."""
    with closing(Connection(path)) as connection:
        return [one for one in NEEDED if not connection.has(one)]


class WlrootsDesktop(WaylandDesktop):
    """A desktop with wlroots' protocols. `OpenDesktop` describes arguments and errors."""

    def __init__(self, stop: StopSwitch, monitor: int | None = None, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(stop, environ)
        self.screen = WlrootsScreen(self._path, monitor)
        self.monitors, self.home = self.screen.monitors, self.screen.home
        self._pointer = Pointer(self.home.rounded())
        self._has_names = self._offers(TOPLEVELS)
        is_sway = bool(os.environ.get("SWAYSOCK"))
        self.abilities = Abilities(
            windows=is_sway,
            names=self._has_names,
            takeover=self._tells_idle(),
            stop_key=is_sway,
            remarks=(*((_PANELS,) if is_sway else ()), NO_CORNER),
        )

    @cached_property
    def _input(self) -> WlrootsInput:
        return WlrootsInput(self._path, self._pointer)

    @cached_property
    def text_entry(self) -> TextEntry:  # type: ignore[override]  # cached
        return WlrootsTextEntry(self._input, self.open_windows)

    @override
    def open_windows(self) -> Windows | None:
        found = open_windows(self._pointer)
        return ToplevelWindows(self._path, self._pointer) if found is None and self._has_names else found

    @override
    def open_elements(self) -> Elements | None:
        return super().open_elements() if self.abilities.windows else None

    def _open_clipboard(self) -> WlrootsClipboard:
        return WlrootsClipboard(self._path)

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:
        parse_chord(stop_key)
        self._watches.callback(SeatWatch(self._path, self._stop, takeover).close)
        if not self.abilities.stop_key:
            return ""
        key = SwayStopKey(self._stop, stop_key)
        self._watches.callback(key.close)
        return key.remark

    def check_input(self) -> str:
        with closing(WlrootsInput(self._path, self._pointer)):
            return "a pointer and a keyboard of our own"
