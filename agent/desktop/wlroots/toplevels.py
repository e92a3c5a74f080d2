"""Windows by name only (wlr-foreign-toplevel-management): which windows exist, and which has the focus.

Compositors other than sway report at most this; they do not report window positions.
"""

import struct
from dataclasses import dataclass
from itertools import count

from agent.core.geometry import Region
from agent.desktop.protocol.windows import Window, WindowId, WindowKind, Windows
from agent.desktop.wayland.desktop import Pointer
from agent.desktop.wayland.wire import Arguments, Connection
from foundation.errors import EnvironmentLacksError

TOPLEVELS = "zwlr_foreign_toplevel_manager_v1"
_MINIMIZED, _ACTIVATED = 1, 2
_ACTIVATE, _DESTROY = 4, 7


@dataclass(slots=True)
class _Toplevel:
    number: int  # its object ID
    title: str = ""
    app: str = ""
    states: frozenset[int] = frozenset()
    parent: int = 0
    used: int = 0  # grows with every focus of a window since the connection was opened

    @property
    def window(self) -> Window:
        return Window(self.number, self.title, self.app, None)


class ToplevelWindows(Windows):
    """Windows without positions."""

    def __init__(self, path: str, pointer: Pointer) -> None:
        self._pointer = pointer
        self._known: dict[WindowId, _Toplevel] = {}  # in the order of opening
        self._uses = count(1)
        self._connection = connection = Connection(path)
        try:
            self._manager = connection.bind(TOPLEVELS, 3, self._of_manager)
            self._seat = connection.bind("wl_seat", 1)
            connection.roundtrip()
        except BaseException:
            connection.close()
            raise

    def windows(self) -> list[Window]:
        return [one.window for one in self._read().values()]

    def active(self) -> Window | None:
        return next((one.window for one in self._read().values() if _ACTIVATED in one.states), None)

    def stacking(self) -> list[WindowId]:
        """Sort by the last focus since this connection was opened."""
        return [one.number for one in sorted(self._read().values(), key=lambda one: one.used)]

    def visible(self, identifiers: frozenset[WindowId]) -> list[Region]:
        """Raise EnvironmentLacksError for any window: its place is unknown, and it must not count as invisible."""
        if identifiers:
            raise EnvironmentLacksError("This desktop does not tell where a window is, so none can be hidden.")
        return []

    def is_ordinary(self, identifier: WindowId) -> bool:
        toplevel = self._read().get(identifier)
        return toplevel is not None and _MINIMIZED not in toplevel.states

    def kind(self, identifier: WindowId) -> WindowKind:
        """A window with a parent counts as a dialog."""
        toplevel = self._read().get(identifier)
        return "dialog" if toplevel is not None and toplevel.parent else ""

    def pointer(self) -> tuple[int, int]:
        return self._pointer.at

    def activate(self, identifier: WindowId) -> bool:
        toplevel = self._read().get(identifier)
        if toplevel is not None:
            self._connection.request(toplevel.number, _ACTIVATE, "o", self._seat)
            self._connection.roundtrip()
        return toplevel is not None

    def close(self) -> None:
        self._connection.close()

    def _read(self) -> dict[WindowId, _Toplevel]:
        self._connection.roundtrip()
        return self._known

    def _of_manager(self, opcode: int, arguments: Arguments) -> None:
        if opcode == 0:
            toplevel = _Toplevel(arguments.number())
            self._known[toplevel.number] = toplevel
            self._connection.hear(toplevel.number, lambda kind, more: self._heard(toplevel, kind, more))

    def _heard(self, toplevel: _Toplevel, opcode: int, arguments: Arguments) -> None:
        match opcode:
            case 0:
                toplevel.title = arguments.text()
            case 1:
                toplevel.app = arguments.text()
            case 4:
                data = arguments.data()
                before, toplevel.states = toplevel.states, frozenset(struct.unpack(f"={len(data) // 4}I", data))
                toplevel.used = next(self._uses) if _ACTIVATED in toplevel.states - before else toplevel.used
            case 6:
                self._known.pop(toplevel.number, None)
                self._connection.request(toplevel.number, _DESTROY)
                self._connection.forget(toplevel.number)
            case 7:
                toplevel.parent = arguments.number()
