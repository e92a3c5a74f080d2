"""Finds the window that receives typed text, and what kind of program shows it."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.desktop.protocol.windows import Window
from agent.desktop.x11.connection import (
    ancestry,
    client_of,
    describe,
    outermost,
    read_property,
    text_of,
    unless_gone,
    window_of,
    window_types,
    with_focus,
)

#: Bytes that are read of a process's memory map and environment; browsers have 1 MB.
_MOST_READ = 4_000_000
_LIBRARY = re.compile(r"/([^/\s]+\.so)\b")
_INPUT_METHODS = re.compile(r"\b(?:GTK_IM_MODULE|QT_IM_MODULE|XMODIFIERS)=(?:@im=)?(\w+)")
_PLAIN_METHODS = {"", "none", "xim", "simple", "compose", "local", "wayland"}


@dataclass(frozen=True, slots=True)
class Receiver:
    """The window that had the keyboard focus when it was read."""

    focus: int  # the X window that gets keys
    client: int  # the client that created it
    window: Window  # the child of the root that contains it; its PID is in the PID namespace of its program
    desktop: bool = False  # whether it is the desktop itself


@dataclass(frozen=True, slots=True)
class Program:
    """What is known about the process that shows a window; empty if the process may not be inspected."""

    libraries: frozenset[str] = frozenset()  # the names of the loaded libraries
    composes: bool = False  # whether its environment names an input method, which may change what keys mean

    @classmethod
    def of(cls, pid: int) -> "Program":
        """Inspect a process, by its PID in our namespace."""
        set_up = _INPUT_METHODS.findall(_read(pid, "environ").replace("\0", " "))
        composes = any(method.lower() not in _PLAIN_METHODS for method in set_up)
        return cls(frozenset(_LIBRARY.findall(_read(pid, "maps"))), composes)


def find_receiver(display: Any) -> Receiver | None:
    """Return the window that has the focus; None if no particular window has it."""
    focus = with_focus(display)
    return None if focus is None or focus.id == display.screen().root.id else _described(display, int(focus.id))


def is_managed(display: Any) -> bool:
    """Whether a window manager runs (EWMH), which focuses windows. Without one, the focus follows the pointer."""
    return bool(read_property(display, display.screen().root.id, "_NET_SUPPORTING_WM_CHECK"))


def is_tk(display: Any, receiver: Receiver) -> bool:
    """Whether Tk shows a window. Tk programs are registered on the root window, for Tk's `send`."""
    registered = text_of(read_property(display, display.screen().root.id, "InterpRegistry"))
    matches = (re.match(r"[0-9a-f]+", entry) for entry in registered.split("\0"))
    windows = [int(found[0], 16) for found in matches if found]
    # A killed program stays registered, and its identifiers are reused by another program.
    theirs = [one for one in windows if client_of(display, one) == receiver.client]
    return any(read_property(display, one, "TK_APPLICATION") for one in theirs)


def has_focus(display: Any, receiver: Receiver) -> bool:
    """Whether the window still has the focus. A program may move the focus within one window."""
    focus = with_focus(display)
    return focus is not None and (focus.id == receiver.focus or outermost(display, focus.id) == receiver.window.id)


@unless_gone()
def _described(display: Any, focus: int) -> Receiver | None:
    """Describe the focused window, from its own properties and those of the windows around it."""
    around = list(ancestry(display, focus))
    windows = [found for one in around if (found := describe(display, one)) is not None]
    app, title = (next((text for one in windows if (text := getattr(one, name))), "") for name in ("app", "title"))
    pid = next((one.pid for one in windows if one.pid), None)
    cared_for = any(read_property(display, one, "WM_STATE") is not None for one in around)
    if not cared_for and not _is_on_screen(display, around[-1]):
        return None  # window managers focus an invisible window if no other has the focus
    desktop = any("DESKTOP" in window_types(display, one) for one in around)
    return Receiver(focus, client_of(display, focus), Window(around[-1], title, app, pid), desktop)


def _is_on_screen(display: Any, identifier: int) -> bool:
    size, screen = window_of(display, identifier).get_geometry(), display.screen()
    inside = size.x < screen.width_in_pixels and size.y < screen.height_in_pixels
    return bool(inside and size.x + size.width > 0 and size.y + size.height > 0)


def _read(pid: int, name: str) -> str:
    """Read a file of a process in /proc; "" if that is not allowed or there is no such process."""
    try:
        with Path("/proc", str(pid), name).open("rb") as file:
            return os.fsdecode(file.read(_MOST_READ))
    except OSError:
        return ""


class Ping:
    """Sends a ping that toolkits answer when they process their events (_NET_WM_PING in the EWMH).

    No other code may read the events of `display`. `focus` is a window of the application.
    """

    def __init__(self, display: Any, focus: int) -> None:
        self._display = display
        self._atom = display.intern_atom("_NET_WM_PING")
        self._window = self._answering(focus)
        if self._window is not None:
            self._send(self._window)

    def is_waited_for(self) -> bool:
        """Whether the application supports pings and has not answered yet."""
        from Xlib import X

        while self._window is not None and self._display.pending_events():
            event = self._display.next_event()
            if event.type == X.ClientMessage and event.data[0] == 32 and event.data[1][0] == self._atom:
                self._window = None
        return self._window is not None

    @unless_gone()
    def _answering(self, focus: int) -> int | None:
        """Return the window around the focus that supports pings; None if there is none."""
        supported = (
            one
            for one in ancestry(self._display, focus)
            if self._atom in (read_property(self._display, one, "WM_PROTOCOLS") or ())
        )
        return next(supported, None)

    @unless_gone()
    def _send(self, identifier: int) -> None:
        from Xlib import X
        from Xlib.protocol import event

        self._display.screen().root.change_attributes(event_mask=X.SubstructureNotifyMask)
        window, protocols = window_of(self._display, identifier), self._display.intern_atom("WM_PROTOCOLS")
        data = (32, [self._atom, X.CurrentTime, identifier, 0, 0])
        window.send_event(event.ClientMessage(window=window, client_type=protocols, data=data), event_mask=0)
        self._display.sync()
