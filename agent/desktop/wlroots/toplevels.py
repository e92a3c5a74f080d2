"""Windows by name only (wlr-foreign-toplevel-management): which windows exist, and which has the focus.

Compositors other than sway report at most this; they do not report window positions.
"""

import struct
from dataclasses import dataclass

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
    title: str = ""
    app: str = ""
    states: frozenset[int] = frozenset()
    parent: int = 0


class ToplevelWindows(Windows):
    """Windows without positions."""

    def __init__(self, path: str, pointer: Pointer) -> None:
        self._pointer = pointer
        self._known: dict[int, _Toplevel] = {}  # by object ID, in the order of opening
        self._used: list[int] = []  # windows that got the focus, most recent last
        self._connection = connection = Connection(path)
        try:
            self._manager = connection.bind(TOPLEVELS, 3, self._of_manager)
            self._seat = connection.bind("wl_seat", 1)
            connection.roundtrip()
        except BaseException:
            connection.close()
            raise

    def windows(self) -> list[Window]:
        return [_window(number, one) for number, one in self._read().items()]

    def active(self) -> Window | None:
        return next((_window(number, one) for number, one in self._read().items() if _ACTIVATED in one.states), None)

    def stacking(self) -> list[WindowId]:
        """Sort by the last focus since this connection was opened."""
        known = self._read()
        return sorted(known, key=lambda number: self._used.index(number) if number in self._used else -1)

    def visible(self, identifiers: frozenset[WindowId]) -> list[Region]:
        """Raise EnvironmentLacksError: a window to hide must not count as invisible."""
        if identifiers:
            raise EnvironmentLacksError("This desktop does not tell where a window is, so none can be hidden.")
        return []

    def is_ordinary(self, identifier: WindowId) -> bool:
        return any(one == identifier and _MINIMIZED not in told.states for one, told in self._read().items())

    def kind(self, identifier: WindowId) -> WindowKind:
        """A window with a parent counts as a dialog."""
        return "dialog" if any(one == identifier and told.parent for one, told in self._read().items()) else ""

    def pointer(self) -> tuple[int, int]:
        """Returns where we moved it last, because the real position is not reported."""
        return self._pointer.at

    def activate(self, identifier: WindowId) -> bool:
        number = next((one for one in self._read() if one == identifier), None)
        if number is None:
            return False
        self._connection.request(number, _ACTIVATE, "o", self._seat)
        self._connection.roundtrip()
        return True

    def close(self) -> None:
        self._connection.close()

    def _read(self) -> dict[int, _Toplevel]:
        self._connection.roundtrip()
        return self._known

    def _of_manager(self, opcode: int, arguments: Arguments) -> None:
        if opcode != 0:
            return
        number, told = arguments.number(), _Toplevel()
        self._known[number] = told
        self._connection.hear(number, lambda kind, more: self._heard(number, told, kind, more))

    def _heard(self, number: int, told: _Toplevel, opcode: int, arguments: Arguments) -> None:
        match opcode:
            case 0:
                told.title = arguments.text()
            case 1:
                told.app = arguments.text()
            case 4:
                data = arguments.data()
                before, told.states = told.states, frozenset(struct.unpack(f"={len(data) // 4}I", data))
                if _ACTIVATED in told.states - before:
                    self._used = [one for one in self._used if one != number] + [number]
            case 6:
                self._known.pop(number, None)
                self._used = [one for one in self._used if one != number]
                self._connection.request(number, _DESTROY)
                self._connection.forget(number)
            case 7:
                told.parent = arguments.number()


def _window(number: int, told: _Toplevel) -> Window:
    return Window(number, told.title, told.app, None)
