"""The windows of wlroots compositors.

On sway they come from its IPC socket (sway-ipc(7)), which also binds the stop key. Other compositors report names but
no positions (wlr-foreign-toplevel-management).

i3ipc 2.2 speaks sway's protocol too, but its last release was in 2020, and our client takes only 60 lines.
"""

import json
import os
import select
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from typing_extensions import override

from agent.core.geometry import Region
from agent.desktop.linux.xkb import keysym_of
from agent.desktop.protocol.desktop import parse_chord
from agent.desktop.protocol.windows import Layer, Window, WindowId, WindowKind, Windows
from agent.desktop.wayland.desktop import Pointer
from agent.desktop.wayland.stacked import StackedWindow, StackedWindows
from agent.desktop.wayland.wire import Arguments, Connection
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

RUN_COMMAND, SUBSCRIBE, GET_TREE = 0, 2, 4
_MAGIC = b"i3-ipc"
_HEADER = struct.Struct("=6sII")
#: This bit marks events.
_EVENT = 1 << 31
_TIMEOUT = 3.0
_REASON = "the stop key was pressed"
_POLL = 0.2
#: sway's names of modifiers.
_MODIFIERS = {"ctrl": "Ctrl", "alt": "Mod1", "shift": "Shift", "super": "Mod4"}


class Sway:
    """A connection to sway, used from one thread. Raises EnvironmentLacksError if sway is gone."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_TIMEOUT)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise _gone(error) from error

    def ask(self, kind: int, payload: str = "") -> Any:
        """Send a request and return the reply; on a connection that has subscribed, it may be an event."""
        data = payload.encode()
        try:
            self._socket.sendall(_HEADER.pack(_MAGIC, len(data), kind) + data)
            return self._message()[1]
        except (OSError, ValueError) as error:
            raise _gone(error) from error

    def event(self, seconds: float) -> Any:
        """Return the next event within some seconds, or None."""
        if not select.select([self._socket], [], [], seconds)[0]:
            return None
        try:
            kind, body = self._message()
        except (OSError, ValueError) as error:
            raise _gone(error) from error
        return body if kind & _EVENT else None

    def close(self) -> None:
        """Disconnect. Never raises."""
        self._socket.close()

    def _message(self) -> tuple[int, Any]:
        magic, length, kind = _HEADER.unpack(self._exactly(_HEADER.size))
        if magic != _MAGIC:
            raise ValueError("not sway")
        return kind, json.loads(self._exactly(length))

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            more = self._socket.recv(length - len(data))
            if not more:
                raise ConnectionResetError("sway hung up")
            data += more
        return data


def _gone(error: Exception) -> EnvironmentLacksError:
    return EnvironmentLacksError(f"sway went away ({error}).", "Is the session still running?")


class SwayWindows(StackedWindows):
    """The windows in sway's tree. It does not contain panels and notifications (layer shell) or open menus."""

    def __init__(self, sway: Sway, pointer: Pointer) -> None:
        self._sway = sway
        self._pointer = pointer

    @override
    def read(self) -> list[StackedWindow]:
        # A fullscreen window is above all others on its monitor.
        found = [_described(node, floating=floating) for node, floating in _leaves(self._sway.ask(GET_TREE))]
        found.sort(key=lambda one: one[0])
        return [window for _, window in found]

    @override
    def pointer(self) -> tuple[int, int]:
        return self._pointer.at

    @override
    def bring(self, identifier: WindowId) -> bool:
        done = self._sway.ask(RUN_COMMAND, f"[con_id={int(str(identifier))}] focus")
        return bool(done) and bool(done[0].get("success"))

    @override
    def close(self) -> None:
        self._sway.close()


def _leaves(node: Mapping[str, Any], *, floating: bool = False) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield the windows below a node, and whether each floats."""
    if "pid" in node and not node.get("nodes"):  # pid is 0 inside another container
        yield node, floating
    for child in node.get("nodes", ()):
        yield from _leaves(child, floating=floating)
    for child in node.get("floating_nodes", ()):  # most recently used last
        yield from _leaves(child, floating=True)


def _described(node: Mapping[str, Any], *, floating: bool) -> tuple[tuple[bool, bool, bool], StackedWindow]:
    """Return a window and its sort key. Floating windows are dialogs: sway floats others only on request."""
    frame, inner, geometry = node["rect"], node["window_rect"], node.get("geometry", {})
    title_bar = node.get("deco_rect", {}).get("height", 0)  # above the frame, except for floating windows
    outer = Region(frame["x"], frame["y"] - title_bar, max(1, frame["width"]), max(1, frame["height"] + title_bar))
    left, top = frame["x"] + inner["x"], frame["y"] + inner["y"]
    box = Region(left, top, max(1, inner["width"]), max(1, inner["height"]))
    properties = node.get("window_properties") or {}
    app = node.get("app_id") or properties.get("class") or ""
    native = node.get("shell") != "xwayland"
    window = Window(int(node["id"]), str(node.get("name") or ""), str(app), int(node["pid"]) or None)
    surface = (left - geometry.get("x", 0), top - geometry.get("y", 0)) if native else None
    layer = Layer(window, box, outer, client=window.pid, surface=surface)
    visible = bool(node.get("visible"))
    one = StackedWindow(layer, visible, bool(node.get("focused")), "dialog" if floating else "", int(node["id"]))
    return (visible, bool(node.get("fullscreen_mode")), floating), one


def open_windows(pointer: Pointer | None = None) -> SwayWindows | None:
    """Connect to the windows of this process's sway; None without sway. A caller that moves the pointer passes it."""
    path = os.environ.get("SWAYSOCK")
    with suppress(EnvironmentLacksError):
        return SwayWindows(Sway(path), pointer or Pointer((0, 0))) if path else None
    return None


class SwayStopKey:
    """Sets the stop switch when the chord is pressed, until closed. The chord "none" disables it. Raises UsageError."""

    def __init__(self, stop: StopSwitch, chord: str) -> None:
        self.remark = ""
        self._stop = stop
        self._closed = threading.Event()
        modifiers, key = parse_chord(chord)
        if not key:
            return
        self._keys = "+".join([*(_MODIFIERS[one] for one in modifiers), keysym_of(key)])
        self._command = f"nop mai-agent stop {os.getpid()}"  # no effect by itself; sway reports the binding
        try:
            sway = Sway(os.environ.get("SWAYSOCK", ""))
            done = sway.ask(RUN_COMMAND, f"bindsym --no-warn {self._keys} {self._command}")
            if not (done and done[0].get("success")):
                self.remark = f"The stop key {chord} cannot be used here: choose another with the setting stop_key."
                return
            sway.ask(SUBSCRIBE, json.dumps(["binding"]))
        except EnvironmentLacksError as error:
            self.remark = f"The stop key {chord} cannot be watched ({error})."
            return
        threading.Thread(target=self._watch, args=(sway,), name="stop key", daemon=True).start()

    def close(self) -> None:
        """Release the chord; does not wait."""
        self._closed.set()

    def _watch(self, sway: Sway) -> None:
        with closing(sway), suppress(EnvironmentLacksError):  # the seat watch reports a lost compositor
            while not self._closed.is_set() and not self._stop.stopped:
                event = sway.event(_POLL)
                if event is not None and event.get("binding", {}).get("command") == self._command:
                    self._stop.stop(_REASON)
            sway.ask(RUN_COMMAND, f"unbindsym {self._keys}")


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
            case 7:
                toplevel.parent = arguments.number()
