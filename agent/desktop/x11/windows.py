"""The windows of an X11 desktop, as its window manager lists them (EWMH), and the stack of what is visible.

Requests about the stack are sent together and answered in one round trip. One by one, ten windows take 30 ms.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from agent.core.geometry import Region, without
from agent.desktop.protocol.windows import Layer, Window, WindowId, WindowKind, Windows
from agent.desktop.x11.connection import (
    ancestry,
    client_of,
    describe,
    open_display,
    outermost,
    read_property,
    tells_loss,
    text_of,
    unless_gone,
    window_of,
    window_types,
)
from foundation.errors import EnvironmentLacksError

_LONGEST_TITLE = 256  # in units of four bytes
#: Types of helpers that hide what is below them. Others (overlays, notification bubbles) may be transparent.
_COVERING = {"MENU", "DROPDOWN_MENU", "POPUP_MENU", "COMBO", "TOOLTIP", "DND"}


class Layers:
    """Reads the window stack, and caches what cannot change about a window."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._lower = display.display
        self._root = display.screen().root
        self._outermost: dict[int, int] = {}  # managed window -> the child of the root that contains it
        self._of: dict[int, int] = {}  # child of the root -> the managed window in it
        self._known: dict[int, tuple[Window, frozenset[str]]] = {}  # what does not change about a window

    def look(self, clients: set[int]) -> list[Layer]:
        """Return the visible layers, the topmost first. `clients` are the windows that the window manager manages."""
        from Xlib.protocol import request

        stack = [int(child.id) for child in self._root.query_tree().children]
        existing = {*stack}
        self._outermost = {client: outer for client, outer in self._outermost.items() if outer in existing}
        for client in clients - self._outermost.keys():
            if (outer := outermost(self._display, client)) is not None:
                self._outermost[client] = outer
        self._of = {outer: client for client, outer in self._outermost.items() if client in clients}
        send = self._send
        asked = [
            (outer, send(request.GetWindowAttributes, window=outer), send(request.GetGeometry, drawable=outer))
            for outer in reversed(stack)
        ]
        boxes = [(outer, _shown(attributes, geometry)) for outer, attributes, geometry in asked]
        shown = [(outer, box) for outer, box in boxes if box is not None]
        inner = [self._of.get(outer, outer) for outer, _ in shown]
        self._known = {one: known for one in inner if (known := self._known.get(one) or self._meet(one))}
        asked_more = [(outer, box, self._ask(self._of.get(outer, outer))) for outer, box in shown]
        layers = (self._layer(outer, box, answers) for outer, box, answers in asked_more)
        return [layer for layer in layers if layer is not None]

    def at(self, points: Sequence[tuple[int, int]]) -> list[WindowId | None]:
        """Return the window that gets a click at each point. The server considers shapes and pass-through windows."""
        from Xlib.protocol import request

        root = self._root.id
        asked = [self._send(request.TranslateCoords, src_wid=root, dst_wid=root, src_x=x, src_y=y) for x, y in points]
        for one in asked:
            one.reply()
        outer = [int(getattr(one.child, "id", one.child)) for one in asked]
        return [self._of.get(identifier, identifier) or None for identifier in outer]

    def _ask(self, inner: int) -> list[Any]:
        """Request a window's geometry, position, title and shadow, without waiting for the replies."""
        from Xlib import X
        from Xlib.protocol import request

        return [
            self._send(request.GetGeometry, drawable=inner),
            self._send(request.TranslateCoords, src_wid=inner, dst_wid=self._root.id, src_x=0, src_y=0),
            *(
                self._send(
                    request.GetProperty, delete=0, window=inner, property=self._display.intern_atom(name),
                    type=X.AnyPropertyType, long_offset=0, long_length=length,
                )
                for name, length in (("_NET_WM_NAME", _LONGEST_TITLE), ("_GTK_FRAME_EXTENTS", 4))
            ),
        ]  # fmt: skip

    def _send(self, request: Any, **fields: Any) -> Any:
        """Send a request without waiting for its reply."""
        return request(display=self._lower, defer=1, **fields)

    @unless_gone()
    def _layer(self, outer: int, box: Region, answers: list[Any]) -> Layer | None:
        for answer in answers:
            answer.reply()
        size, corner, title, shadow = answers
        inner = self._of.get(outer, outer)
        window, kinds = self._known[inner]
        content = Region(corner.x, corner.y, max(1, size.width), max(1, size.height))
        form, extents = shadow.value or (0, ())
        if form == 32 and len(extents) == 4:
            left, right, top, bottom = map(int, extents)
            width, height = max(1, content.width - left - right), max(1, content.height - top - bottom)
            content = Region(content.left + left, content.top + top, width, height)
            box = content if inner == outer else box
        form, text = title.value or (0, b"")
        if form == 8:
            window = replace(window, title=text if isinstance(text, str) else bytes(text).decode("utf-8", "replace"))
        client = client_of(self._display, inner)
        return Layer(window, content, box, outer not in self._of, "DESKTOP" in kinds, "TOOLTIP" in kinds, client, kinds)

    def _meet(self, inner: int) -> tuple[Window, frozenset[str]]:
        window = describe(self._display, inner) or Window(inner, "", "", None)
        return window, frozenset(window_types(self._display, inner))


@unless_gone()
def _shown(attributes: Any, geometry: Any) -> Region | None:
    """Return the region of a child of the root; None if it is not visible."""
    from Xlib import X

    attributes.reply()
    geometry.reply()
    if attributes.map_state != X.IsViewable or attributes.win_class != X.InputOutput:
        return None
    border = 2 * geometry.border_width
    width, height = geometry.width + border, geometry.height + border
    return Region(geometry.x, geometry.y, width, height) if width > 1 and height > 1 else None


class VisibleParts:
    """The visible parts of some windows. X events report when they change, so a query costs one round trip.

    No other code may read the events of `display`. `look` returns the layers, including these windows.
    """

    def __init__(self, display: Any, of: frozenset[Any], look: Callable[[], list[Layer]]) -> None:
        from Xlib import X

        self.of = of
        self._display = display
        self._look = look
        display.screen().root.change_attributes(event_mask=X.SubstructureNotifyMask | X.PropertyChangeMask)
        self._visible: list[Region] | None = None

    def visible(self) -> list[Region]:
        """Return the parts of the windows that nothing covers."""
        self._display.sync()
        while self._display.pending_events():
            self._display.next_event()
            self._visible = None
        if self._visible is None:
            visible: list[Region] = []
            for layer in reversed(self._look()):  # from the bottom up: later layers cover earlier ones
                if layer.window.id in self.of:
                    visible.append(layer.outer)
                elif visible:
                    for cover in self._covers(layer):
                        visible = [rest for region in visible for rest in without(region, cover)]
            self._visible = visible  # keep only a complete look: a partial one would show our window
        return self._visible

    def _covers(self, layer: Layer) -> list[Region]:
        """Return the parts of a layer that hide what is below it."""
        if layer.helper:
            ours = layer.client in {client_of(self._display, own) for own in self.of}  # a menu of one of these windows
            return [layer.outer] if layer.kinds & _COVERING and not ours else []
        window = layer.window.id
        frame = outermost(self._display, window)
        if frame is None or read_property(self._display, frame, "_NET_WM_WINDOW_OPACITY"):
            return []
        opaque = read_property(self._display, window, "_NET_WM_OPAQUE_REGION") if frame == window else None
        at = region_of(self._display, window) if opaque else None
        if opaque and at is not None:
            parts = zip(*[iter(opaque)] * 4, strict=False)
            return [Region(at.left + x, at.top + y, w, h) for x, y, w, h in parts if w and h]
        return [layer.outer]


@unless_gone()
def region_of(display: Any, identifier: Any) -> Region | None:
    """Return a window's region, including a shadow that it draws itself; None if it has closed meanwhile."""
    handle = window_of(display, identifier)
    size, corner = handle.get_geometry(), handle.translate_coords(display.screen().root, 0, 0)
    return Region(-corner.x, -corner.y, max(1, size.width), max(1, size.height))


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

    def announced_bus(self) -> str:
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
