"""The windows of an X11 desktop, as its window manager lists them (EWMH)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from agent.core.geometry import Region
from agent.desktop.protocol.windows import Layer, Window, WindowId, WindowKind, Windows
from agent.desktop.x11.connection import (
    ancestry,
    client_of,
    describe,
    open_display,
    read_property,
    tells_loss,
    text_of,
    unless_gone,
    window_of,
    window_types,
)
from agent.desktop.x11.layers import Layers, VisibleParts, region_of
from foundation.errors import EnvironmentLacksError

#: The source of our requests for the window manager: a pager, that is the person (EWMH).
_PAGER = 2


@tells_loss
class X11Windows(Windows):
    """The windows of the X server that DISPLAY names."""

    def __init__(self) -> None:
        self._display = open_display()
        self._root = self._display.screen().root
        self._parts: VisibleParts | None = None
        self._layers = Layers(self._display)

    def windows(self) -> list[Window]:
        return [window for identifier in self._ids("_NET_CLIENT_LIST") if (window := self.window(identifier))]

    def active(self) -> Window | None:
        identifiers = self._ids("_NET_ACTIVE_WINDOW")
        return self.window(identifiers[0]) if identifiers and identifiers[0] else None

    def stacking(self) -> list[WindowId]:
        return [*self._ids("_NET_CLIENT_LIST_STACKING")]

    def at(self, x: int, y: int) -> Window | None:
        self._look()
        [found] = self._layers.at([(x, y)])
        known = self._ids("_NET_CLIENT_LIST")
        return None if found is None else self.window(found) if found in known else self._helper(found, known)

    def region(self, identifier: WindowId) -> Region | None:
        return region_of(self._display, identifier)

    def layers(self) -> list[Layer]:
        return self._look()

    def layers_at(self, points: Sequence[tuple[int, int]]) -> list[WindowId | None]:
        return self._layers.at(points)

    def is_ordinary(self, identifier: WindowId) -> bool:
        from Xlib import X

        with unless_gone():
            if window_of(self._display, identifier).get_attributes().map_state == X.IsViewable:
                kinds = window_types(self._display, identifier)
                return not kinds or bool(kinds & {"NORMAL", "DIALOG"})
        return False  # minimised, on another workspace, or closed

    def kind(self, identifier: WindowId) -> WindowKind:
        kinds, owner = window_types(self._display, identifier), self._property(identifier, "WM_TRANSIENT_FOR")
        if "DESKTOP" in kinds:
            return "backdrop"
        return "dialog" if "DIALOG" in kinds or (owner and owner[0]) else ""

    def pointer(self) -> tuple[int, int]:
        at = self._root.query_pointer()
        return at.root_x, at.root_y

    def _helper(self, identifier: Any, known: list[int]) -> Window | None:
        """Describe an unmanaged window (a menu, an old dock), or another window of its program if it has no class."""
        own = self.window(identifier)
        if own is not None and own.app:
            return own
        client = client_of(self._display, identifier)
        owner = next((one for one in known if client_of(self._display, one) == client), None)
        return own if owner is None else self.window(owner)

    def activate(self, identifier: WindowId) -> bool:
        from Xlib import X

        return self._ask(identifier, "_NET_ACTIVE_WINDOW", _PAGER, X.CurrentTime)

    def place(self, identifier: WindowId, region: Region) -> bool:
        # EWMH: gravity 10 is static, so that place and size are without the frame; bits 8 to 11 mark the given values.
        flags = 10 | 0b1111 << 8 | _PAGER << 12
        return self._ask(
            identifier, "_NET_MOVERESIZE_WINDOW", flags, region.left, region.top, region.width, region.height
        )

    def dismiss(self, identifier: WindowId) -> bool:
        from Xlib import X

        return self._ask(identifier, "_NET_CLOSE_WINDOW", X.CurrentTime, _PAGER)

    def _ask(self, identifier: WindowId, message_type: str, *data: int) -> bool:
        """Ask the window manager for something about a window; False if the window is gone."""
        from Xlib import X
        from Xlib.protocol import event

        if identifier not in self._ids("_NET_CLIENT_LIST"):
            return False
        message = event.ClientMessage(
            window=window_of(self._display, identifier),
            client_type=self._display.intern_atom(message_type),
            data=(32, [*data, 0, 0, 0][:5]),
        )
        self._root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
        self._display.sync()
        return True

    def window(self, identifier: WindowId) -> Window | None:
        return describe(self._display, identifier)

    def visible(self, identifiers: frozenset[WindowId]) -> list[Region]:
        if self._parts is None or self._parts.of != identifiers:
            self._parts = VisibleParts(self._display, identifiers, lambda: self._look(identifiers))
        return self._parts.visible()

    def of_terminal(self, environ: Mapping[str, str]) -> Window | None:
        """Return the window that a terminal names in WINDOWID."""
        window_id = environ.get("WINDOWID", "")
        return self._around(int(window_id)) if window_id.isdigit() else None

    @unless_gone()
    def _around(self, identifier: int) -> Window | None:
        """Return the top-level window that contains a window or is it."""
        known = self._ids("_NET_CLIENT_LIST")
        return next((self.window(one) for one in ancestry(self._display, identifier) if one in known), None)

    def told_bus(self) -> str:
        """Return the address of the accessibility bus that this display announces; "" if none."""
        return text_of(self._property(self._root.id, "AT_SPI_BUS"))

    def close(self) -> None:
        with suppress(Exception):  # the server may be gone already
            self._display.close()

    def _look(self, besides: frozenset[WindowId] = frozenset()) -> list[Layer]:
        return self._layers.look({*self._ids("_NET_CLIENT_LIST"), *besides})  # type: ignore[arg-type]

    def _ids(self, name: str) -> list[int]:
        return [int(identifier) for identifier in self._property(self._root.id, name) or ()]

    def _property(self, identifier: Any, name: str) -> Any:
        return read_property(self._display, identifier, name)


def open_windows() -> X11Windows | None:
    """Open a connection to the windows of DISPLAY; None if that fails."""
    with suppress(EnvironmentLacksError):
        return X11Windows()
    return None


def same_display(one: str, other: str) -> bool:
    """Whether two values of DISPLAY name the same server, such as :0, :0.0 and unix:0."""

    def plain(display: str) -> str:
        host, _, number = display.rpartition(":")
        return f"{'' if host == 'unix' else host}:{number.split('.')[0]}"

    return bool(one) and bool(other) and plain(one) == plain(other)
