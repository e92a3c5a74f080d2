"""Windows by their names alone (wlr-foreign-toplevel-management): which there are, and which has the focus.

That is what compositors other than sway may tell. Where a window is, nobody tells there.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.core.geometry import Region
from agent.desktop.protocol.windows import Layer, Window, WindowId, WindowKind
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


class ToplevelWindows:
    """See `Windows`; whatever would need to know where a window is tells nothing, or raises EnvironmentLacksError.

    Args:
        path: of the compositor's socket.
        pointer: where our pointer is.
    """

    def __init__(self, path: str, pointer: Pointer) -> None:
        self._pointer = pointer
        self._known: dict[int, _Toplevel] = {}  # by their objects, in the order in which they came
        self._used: list[int] = []  # those that got the focus, the last one at the end
        self._connection = connection = Connection(path)
        try:
            self._manager = connection.bind(TOPLEVELS, 3, self._of_manager)
            self._seat = connection.bind("wl_seat", 1)
            connection.roundtrip()
        except BaseException:
            connection.close()
            raise

    def windows(self) -> list[Window]:
        """See `Windows.windows`."""
        return [_window(number, one) for number, one in self._read().items()]

    def window(self, identifier: WindowId) -> Window | None:
        """See `Windows.window`."""
        return next((one for one in self.windows() if one.id == identifier), None)

    def active(self) -> Window | None:
        """See `Windows.active`."""
        return next((_window(number, one) for number, one in self._read().items() if _ACTIVATED in one.states), None)

    def stacking(self) -> list[WindowId]:
        """See `Windows.stacking`: those that had the focus since this was opened last, in that order."""
        known = self._read()
        return sorted(known, key=lambda number: self._used.index(number) if number in self._used else -1)

    def at(self, x: int, y: int) -> Window | None:  # noqa: ARG002 -- the protocol's
        """See `Windows.at`: not told."""
        return None

    def region(self, identifier: WindowId) -> Region | None:  # noqa: ARG002 -- the protocol's
        """See `Windows.region`: not told."""
        return None

    def visible(self, identifiers: frozenset[WindowId]) -> list[Region]:
        """See `Windows.visible`: not told, and what must not be seen must not be taken for unseen."""
        if identifiers:
            raise EnvironmentLacksError("This desktop does not tell where a window is, so none can be hidden.")
        return []

    def layers(self) -> list[Layer]:
        """See `Windows.layers`: not told."""
        return []

    def layers_at(self, points: Sequence[tuple[int, int]]) -> list[WindowId | None]:
        """See `Windows.layers_at`: not told."""
        return [None for _ in points]

    def is_ordinary(self, identifier: WindowId) -> bool:
        """See `Windows.is_ordinary`."""
        return any(one == identifier and _MINIMIZED not in told.states for one, told in self._read().items())

    def kind(self, identifier: WindowId) -> WindowKind:
        """See `Windows.kind`: a window that belongs to another one is its dialog."""
        return "dialog" if any(one == identifier and told.parent for one, told in self._read().items()) else ""

    def pointer(self) -> tuple[int, int]:
        """See `Windows.pointer`: where our own was put last, as no other is told."""
        return self._pointer.at

    def activate(self, identifier: WindowId) -> bool:
        """See `Windows.activate`."""
        number = next((one for one in self._read() if one == identifier), None)
        if number is None:
            return False
        self._connection.request(number, _ACTIVATE, "o", self._seat)
        self._connection.roundtrip()
        return True

    def of_terminal(self, environ: Mapping[str, str]) -> Window | None:  # noqa: ARG002 -- the protocol's
        """See `Windows.of_terminal`: nothing of the kind is told on Wayland."""
        return None

    def close(self) -> None:
        """See `Windows.close`."""
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
