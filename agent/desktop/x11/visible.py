"""Which parts of windows can be seen on an X11 desktop."""

from typing import Any

from agent.core.geometry import Region, without
from agent.desktop.x11.connection import client_of, read_property, unless_gone, window_of, window_types

#: Helpers that really hide what is under them; others (overlays, bubbles of the desktop) may be seen through.
_COVERING = {"MENU", "DROPDOWN_MENU", "POPUP_MENU", "COMBO", "TOOLTIP", "DND"}


class VisibleParts:
    """Where some windows can be seen, kept up to date by the X server's own events: looking costs one round trip.

    Args:
        display: a connection of which nobody else reads the events.
        of: the windows.
    """

    def __init__(self, display: Any, of: frozenset[Any]) -> None:
        from Xlib import X

        self.of = of
        self._display = display
        self._root = display.screen().root
        self._root.change_attributes(event_mask=X.SubstructureNotifyMask | X.PropertyChangeMask)
        self._visible: list[Region] | None = None
        self._frames: dict[int, int] = {}

    def visible(self) -> list[Region]:
        """The parts of them that nothing covers."""
        self._display.sync()
        while self._display.pending_events():
            event = self._display.next_event()
            if type(event).__name__ in ("ReparentNotify", "DestroyNotify"):
                self._frames.clear()
            self._visible = None
        if self._visible is None:
            self._visible = self._look()
        return self._visible

    def _look(self) -> list[Region]:
        stack = [child.id for child in self._root.query_tree().children]
        clients = {*(self._property(self._root.id, "_NET_CLIENT_LIST") or ()), *self.of}
        of_frame = {self._frame(client): client for client in clients}
        ours = {frame for frame, client in of_frame.items() if client in self.of}
        seen: list[Region] = []
        for identifier in stack:  # from the lowest up: what comes later covers what was there
            box = self._box(identifier)
            if box is None:
                continue
            if identifier in ours:
                seen.append(box)
            elif seen:
                for cover in self._covers(identifier, box, of_frame.get(identifier)):
                    seen = [rest for region in seen for rest in without(region, cover)]
        return seen

    def _covers(self, identifier: int, box: Region, client: int | None) -> list[Region]:
        """The part of a window that hides what is under it."""
        if client is None:
            return [box] if self._is_menu(identifier) else []
        if self._property(identifier, "_NET_WM_WINDOW_OPACITY"):
            return []
        opaque, shadow = self._property(client, "_NET_WM_OPAQUE_REGION"), self._property(client, "_GTK_FRAME_EXTENTS")
        if client == identifier and opaque:
            parts = zip(*[iter(opaque)] * 4, strict=False)
            return [Region(box.left + x, box.top + y, w, h) for x, y, w, h in parts if w and h]
        if shadow and len(shadow) == 4:
            left, right, top, bottom = shadow
            width, height = box.width - left - right, box.height - top - bottom
            return [Region(box.left + left, box.top + top, width, height)] if width > 0 and height > 0 else []
        return [box]

    def _is_menu(self, identifier: int) -> bool:
        if client_of(self._display, identifier) in {client_of(self._display, own) for own in self.of}:
            return False  # a menu of one of them is part of it
        return bool(window_types(self._display, identifier) & _COVERING)

    def _frame(self, client: int) -> int:
        """The child of the root that a window is in."""
        if client not in self._frames:
            self._frames[client] = self._outermost(client) or client
        return self._frames[client]

    @unless_gone()
    def _outermost(self, client: int) -> int | None:
        handle = window_of(self._display, client)
        while (parent := handle.query_tree().parent) and parent.id != self._root.id:
            handle = parent
        return int(handle.id)

    @unless_gone()
    def _box(self, identifier: int) -> Region | None:
        """Where a child of the root is; None if it cannot be seen."""
        from Xlib import X

        handle = window_of(self._display, identifier)
        attributes = handle.get_attributes()
        if attributes.map_state != X.IsViewable or attributes.win_class != X.InputOutput:
            return None
        at = handle.get_geometry()
        return Region(at.x, at.y, at.width + 2 * at.border_width, at.height + 2 * at.border_width)

    def _property(self, identifier: int, name: str) -> Any:
        return read_property(self._display, identifier, name)
