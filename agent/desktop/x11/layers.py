"""What an X11 desktop shows, one over the other: windows in their frames, and helpers without.

Questions are sent together and answered in one round trip: asked one by one, ten windows take 30 ms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.core.geometry import Region
from agent.desktop.protocol.windows import Layer, Window, WindowId
from agent.desktop.x11.connection import client_of, unless_gone, window_of, window_types

_LONGEST_TITLE = 256  # in words of four bytes


@dataclass(frozen=True, slots=True)
class _Known:
    """What stays of a window."""

    window: Window
    kinds: frozenset[str]


class Layers:
    """Reads the stack; what cannot change of a window is remembered.

    Args:
        display: a connection.
        describe: the title, class and process of a window.
    """

    def __init__(self, display: Any, describe: Callable[[int], Window | None]) -> None:
        self._display = display
        self._lower = display.display
        self._root = display.screen().root
        self._describe = describe
        self._outermost: dict[int, int] = {}  # of a window that is cared for, the child of the root that it is in
        self._of: dict[int, int] = {}  # of a child of the root, the window in it
        self._known: dict[int, _Known] = {}

    def look(self, clients: set[int]) -> list[Layer]:
        """What is shown, the top-most first; `clients` are those that the window manager cares for."""
        from Xlib.protocol import request

        stack = [int(child.id) for child in self._root.query_tree().children]
        there = {*stack}
        self._outermost = {client: outer for client, outer in self._outermost.items() if outer in there}
        for client in clients - self._outermost.keys():
            if (outer := self._outer(client)) is not None:
                self._outermost[client] = outer
        self._of = {outer: client for client, outer in self._outermost.items() if client in clients}
        asked = [
            (
                outer,
                request.GetWindowAttributes(display=self._lower, defer=1, window=outer),
                request.GetGeometry(display=self._lower, defer=1, drawable=outer),
            )
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
        """The window of the layer that gets a click at each point; the server knows shapes and what lets through."""
        from Xlib.protocol import request

        root = self._root.id
        asked = [
            request.TranslateCoords(display=self._lower, defer=1, src_wid=root, dst_wid=root, src_x=x, src_y=y)
            for x, y in points
        ]
        for one in asked:
            one.reply()
        outer = [int(getattr(one.child, "id", one.child)) for one in asked]
        return [self._of.get(identifier, identifier) or None for identifier in outer]

    def _ask(self, inner: int) -> list[Any]:
        """Where a window's contents are, its title, and its shadow."""
        from Xlib import X
        from Xlib.protocol import request

        title, shadow = (self._display.intern_atom(name) for name in ("_NET_WM_NAME", "_GTK_FRAME_EXTENTS"))

        def read(name: int, length: int) -> Any:
            return request.GetProperty(
                display=self._lower, defer=1, delete=0, window=inner, property=name, type=X.AnyPropertyType,
                long_offset=0, long_length=length,
            )  # fmt: skip

        return [
            request.GetGeometry(display=self._lower, defer=1, drawable=inner),
            request.TranslateCoords(
                display=self._lower, defer=1, src_wid=inner, dst_wid=self._root.id, src_x=0, src_y=0
            ),
            read(title, _LONGEST_TITLE),
            read(shadow, 4),
        ]

    @unless_gone()
    def _layer(self, outer: int, box: Region, answers: list[Any]) -> Layer | None:
        for answer in answers:
            answer.reply()
        size, corner, title, shadow = answers
        inner = self._of.get(outer, outer)
        known = self._known[inner]
        content = Region(corner.x, corner.y, max(1, size.width), max(1, size.height))
        form, extents = shadow.value or (0, ())
        if form == 32 and len(extents) == 4:
            left, right, top, bottom = map(int, extents)
            width, height = max(1, content.width - left - right), max(1, content.height - top - bottom)
            content = Region(content.left + left, content.top + top, width, height)
            box = content if inner == outer else box
        window = known.window
        form, text = title.value or (0, b"")
        if form == 8:
            window = replace(window, title=text if isinstance(text, str) else bytes(text).decode("utf-8", "replace"))
        client = client_of(self._display, inner)
        helper, kinds = outer not in self._of, known.kinds
        return Layer(window, content, box, helper, "DESKTOP" in kinds, "TOOLTIP" in kinds, client, kinds)

    def _meet(self, inner: int) -> _Known:
        """What stays of a window that is seen for the first time."""
        window = self._describe(inner) or Window(inner, "", "", None)
        return _Known(window, frozenset(window_types(self._display, inner)))

    @unless_gone()
    def _outer(self, client: int) -> int | None:
        handle = window_of(self._display, client)
        while (parent := handle.query_tree().parent) and parent.id != self._root.id:
            handle = parent
        return int(handle.id)


@unless_gone()
def _shown(attributes: Any, geometry: Any) -> Region | None:
    """Where a child of the root is; None if it cannot be seen."""
    from Xlib import X

    attributes.reply()
    geometry.reply()
    if attributes.map_state != X.IsViewable or attributes.win_class != X.InputOutput:
        return None
    border = 2 * geometry.border_width
    width, height = geometry.width + border, geometry.height + border
    return Region(geometry.x, geometry.y, width, height) if width > 1 and height > 1 else None
