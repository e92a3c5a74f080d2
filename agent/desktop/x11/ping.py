"""Whether the application of a window answers at all: what hangs may still take later what it was sent."""

from typing import Any

from agent.desktop.x11.connection import read_property, unless_gone, window_of


class Ping:
    """A question that toolkits answer as soon as they look at what they were sent (_NET_WM_PING of the EWMH).

    Args:
        display: a connection of which nobody else reads the events.
        focus: a window of the application.
    """

    def __init__(self, display: Any, focus: int) -> None:
        self._display = display
        self._atom = display.intern_atom("_NET_WM_PING")
        self._window = self._answering(focus)
        if self._window is not None:
            self._send(self._window)

    def is_waited_for(self) -> bool:
        """Whether it takes such questions, and has not answered yet."""
        from Xlib import X

        while self._window is not None and self._display.pending_events():
            event = self._display.next_event()
            if event.type == X.ClientMessage and event.data[0] == 32 and event.data[1][0] == self._atom:
                self._window = None
        return self._window is not None

    @unless_gone()
    def _answering(self, focus: int) -> int | None:
        """The window around that which takes such questions; None for none."""
        handle, root = window_of(self._display, focus), self._display.screen().root.id
        while handle and handle.id != root:
            if self._atom in (read_property(self._display, handle.id, "WM_PROTOCOLS") or ()):
                return int(handle.id)
            handle = handle.query_tree().parent
        return None

    @unless_gone()
    def _send(self, identifier: int) -> None:
        from Xlib import X
        from Xlib.protocol import event

        self._display.screen().root.change_attributes(event_mask=X.SubstructureNotifyMask)
        window, protocols = window_of(self._display, identifier), self._display.intern_atom("WM_PROTOCOLS")
        data = (32, [self._atom, X.CurrentTime, identifier, 0, 0])
        window.send_event(event.ClientMessage(window=window, client_type=protocols, data=data), event_mask=0)
        self._display.sync()
