"""A session in which a desktop allows capture and input.

`consent.py` opens a session of the portal with the user's consent. Mutter's own D-Bus interfaces need no consent. They
are used only for the disposable compositors of tests and sandboxes.

Its parts belong together: the pointer moves on the captured monitor. All of them end at once: when the user presses
"stop sharing", when the desktop goes away, and when this process ends.
"""

import queue
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jeepney import DBusAddress
from typing_extensions import override

from agent.core.geometry import DesktopPoint, Region, Viewport
from agent.desktop.linux.bus import AwaitedSignal, Bus, BusError
from agent.desktop.protocol.desktop import number_of
from foundation.errors import EnvironmentLacksError

#: The interface for input, and the one for the clipboard if it is separate.
REMOTE, CLIPBOARD = "RemoteDesktop", "Clipboard"


@dataclass(frozen=True, slots=True)
class Stream:
    """The stream of one shared monitor."""

    node: int  # PipeWire node
    region: Region  # in desktop units
    handle: int | str  # identifies it in input calls
    mapping: str = ""  # identifies it in libei; "" if unknown


class Session(ABC):
    """Input, frames and clipboard of a session. Every method but `close` raises BusError. Usable from any thread."""

    monitors: Sequence[Region]  # all known monitors, in desktop units
    stream: Stream  # the monitor that is captured and controlled
    viewport: Viewport  # of the last frame; the only thing that relates pixels of frames to desktop units
    in_pixels: bool  # whether the pointer's calls count in pixels of frames, not in the desktop's logical units
    #: Whether the pointer's calls reject points beyond the stream's size in desktop units, even if its frames are
    #: larger.
    unscaled_only = False
    has_clipboard = True
    #: D-Bus types of the stream's handle, a pressed state, and a key; and an option's name.
    handle_type: str
    down_type: str
    key_type: str
    mime_types: str

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], object]] = []
        self.has_ended = False  # not by us
        self._closed = False
        self.is_lost = False  # ended because the program that opened it is gone
        self.clipboard: tuple[list[str], bool] = ([], False)  # the present MIME types, and whether we own the content
        #: What applications request of our content: the MIME type, and the transfer's serial number.
        self.clipboard_requests: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()

    @abstractmethod
    def call(self, interface: str, member: str, signature: str = "", *body: Any) -> tuple[Any, ...]:
        """Call a method of the session."""

    @abstractmethod
    def _notify(self, member: str, signature: str, *body: Any) -> None:
        """Send an input event."""

    def _end(self) -> None:  # noqa: B027 -- Mutter ends the session when the connection closes
        """Tell the desktop to end the session."""

    @abstractmethod
    def pipewire(self) -> int:
        """Open a connection to PipeWire that carries the streams; the caller closes it."""

    def eis(self) -> int | None:
        """Open a connection for libei; None if there is none. Afterwards, the input calls below are rejected."""
        with suppress(BusError):  # since GNOME 45, and version 2 of the portal
            return self.file(REMOTE, "ConnectToEIS", "a{sv}", {})
        return None

    def move(self, point: DesktopPoint) -> None:
        """Move the pointer."""
        view, x, y = self.viewport, point.x, point.y
        if self.in_pixels:
            at = view.desktop_to_capture(point)
            x, y = at.x, at.y
        else:
            x, y = x - view.region.left, y - view.region.top
        self._notify("PointerMotionAbsolute", f"{self.handle_type}dd", self.stream.handle, float(x), float(y))

    def button(self, code: int, *, down: bool) -> None:
        """Press or release a button, by Linux button code."""
        self._notify("PointerButton", f"i{self.down_type}", code, down)

    def key(self, code: int, *, down: bool) -> None:
        """Press or release a key, by Linux key code."""
        self._notify("KeyboardKeycode", f"{self.key_type}{self.down_type}", code, down)

    def scroll(self, dx: int, dy: int) -> None:
        """Turn the wheel; down and to the right are positive."""
        for axis, steps in enumerate((dy, dx)):
            if steps:
                self._notify("PointerAxisDiscrete", "ui", axis, steps)

    def clipboard_changed(self, options: Mapping[str, Any]) -> None:
        """Handle a change of the clipboard's content, in Mutter's or the portal's format."""
        plain = {name.replace("_", "-"): value for name, (_, value) in options.items()}
        kinds = plain.get("mime-types", ())
        if isinstance(kinds, tuple):  # the list is wrapped in a tuple
            kinds = kinds[0] if kinds else ()
        self.clipboard = [str(one) for one in kinds], bool(plain.get("session-is-owner"))

    def on_closed(self, listener: Callable[[], object]) -> None:
        """Call `listener` once when the session ends, unless we end it; immediately if it has already ended."""
        with self._lock:
            self._listeners.append(listener)
            ended = self.has_ended
        if ended:
            listener()

    def ended(self, _: tuple[Any, ...] = ()) -> None:
        """Handle the end of the session by the desktop."""
        with self._lock:
            if self.has_ended or self._closed:
                return
            self.has_ended = True
            listeners = list(self._listeners)
        for listener in listeners:
            with suppress(Exception):
                listener()

    def lost(self) -> None:
        """Handle the loss of the program that opened the session."""
        with self._lock:
            self.is_lost = self.is_lost or not self.has_ended
        self.ended()

    def close(self) -> None:
        """End the session; keys and buttons that are down are released. Never raises; safe to call twice."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            with suppress(BusError):
                self._end()
            self._bus.close()

    def file(self, interface: str, member: str, signature: str, *body: Any) -> int:
        """Call a method that returns a file descriptor, which the caller closes."""
        return int(self.call(interface, member, signature, *body)[0].to_raw_fd())


MUTTER = "org.gnome.Mutter.RemoteDesktop"
_CAST = "org.gnome.Mutter.ScreenCast"
_DISPLAYS = DBusAddress("/org/gnome/Mutter/DisplayConfig", *["org.gnome.Mutter.DisplayConfig"] * 2)
#: org.gnome.Mutter.DisplayConfig: layout mode in which monitor positions count in pixels, whatever the scale.
_PHYSICAL = 2
_HIDDEN = 0  # cursor mode: captures do not show the pointer
#: Timeout in seconds for the stream; the slowest seen took 0.1 s.
_STREAM = 10.0


def open_mutter(environ: Mapping[str, str], monitor: int | None) -> "MutterSession":
    """Open a session for one monitor. Raises EnvironmentLacksError, and UsageError: there is no such monitor."""
    try:
        with ExitStack() as begun:  # closes the bus if the session cannot be opened
            session = MutterSession(begun.enter_context(Bus(environ)), environ, monitor)
            begun.pop_all()
        return session
    except BusError as error:
        raise EnvironmentLacksError(f"This compositor cannot be used ({error}).", "Is it a GNOME Shell?") from error


class MutterSession(Session):
    """A session of Mutter's RemoteDesktop and ScreenCast interfaces."""

    in_pixels = True
    handle_type, down_type, key_type, mime_types = "s", "b", "u", "mime-types"

    def __init__(self, bus: Bus, environ: Mapping[str, str], monitor: int | None) -> None:
        super().__init__(bus)
        self._environ = environ
        (path,) = bus.call(_root(MUTTER), "CreateSession")
        self._session = DBusAddress(path, MUTTER, f"{MUTTER}.Session")
        connectors, regions = _monitors(bus)
        chosen = number_of(regions, monitor)
        options = {"remote-desktop-session-id": ("s", bus.property(self._session, "SessionId"))}
        (cast,) = bus.call(_root(_CAST), "CreateSession", "a{sv}", options)
        casting = DBusAddress(cast, _CAST, f"{_CAST}.Session")
        cursor = {"cursor-mode": ("u", _HIDDEN)}
        (handle,) = bus.call(casting, "RecordMonitor", "sa{sv}", connectors[chosen], cursor)
        stream = DBusAddress(handle, _CAST, f"{_CAST}.Stream")
        added = AwaitedSignal(bus, _CAST, stream, "PipeWireStreamAdded")
        bus.on_lost(MUTTER, self.lost)
        for member, listener in (
            ("Closed", self.ended),
            ("SelectionOwnerChanged", lambda body: self.clipboard_changed(body[0])),
            ("SelectionTransfer", self.clipboard_requests.put),
        ):
            bus.listen(MUTTER, self._session, member, listener)
        bus.call(self._session, "Start")
        bus.call(self._session, "EnableClipboard", "a{sv}", {})
        node = added.wait(_STREAM)
        if node is None:
            raise BusError("the compositor captures nothing")
        parameters = bus.property(stream, "Parameters")
        regions[chosen] = reported_region(parameters) or regions[chosen]
        self.monitors = regions
        self.stream = Stream(node[0], regions[chosen], handle, str(parameters.get("mapping-id", ("s", ""))[1]))

    @override
    def pipewire(self) -> int:
        folder = self._environ.get("PIPEWIRE_RUNTIME_DIR") or self._environ.get("XDG_RUNTIME_DIR") or "/nowhere"
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.connect(str(Path(folder, "pipewire-0")))
        except OSError as error:
            opened.close()
            raise BusError(f"PipeWire does not run: {error.strerror}") from error
        return opened.detach()

    def _notify(self, member: str, signature: str, *body: Any) -> None:
        self.call(REMOTE, f"Notify{member}", signature, *body)

    def call(self, interface: str, member: str, signature: str = "", *body: Any) -> tuple[Any, ...]:  # noqa: ARG002
        return self._bus.call(self._session, member, signature, *body)


def _root(name: str) -> DBusAddress:
    return DBusAddress(f"/{name.replace('.', '/')}", name, name)


def reported_region(properties: Mapping[str, Any]) -> Region | None:
    """Return the region of a stream's monitor, or None if the stream's properties do not contain it."""
    position, size = (properties.get(name, ("", None))[1] for name in ("position", "size"))
    if not size or min(size) < 1:
        return None
    return Region(*(position or (0, 0)), *size)


def _monitors(bus: Bus) -> tuple[list[str], list[Region]]:
    """Return the connectors and the regions of all active monitors."""
    _, monitors, logical, properties = bus.call(_DISPLAYS, "GetCurrentState")
    modes = {
        monitor[0][0]: mode for monitor in monitors for mode in monitor[1] if mode[6].get("is-current", ("b", False))[1]
    }
    in_pixels = properties.get("layout-mode", ("u", 1))[1] == _PHYSICAL
    connectors, regions = [], []
    for x, y, scale, transform, _, shown, _ in logical:
        mode = modes.get(shown[0][0]) if shown else None
        if mode is None:
            continue
        width, height = mode[1:3] if transform % 2 == 0 else mode[2:0:-1]
        by = 1.0 if in_pixels else scale
        connectors.append(shown[0][0])
        regions.append(Region(x, y, round(width / by), round(height / by)))
    if not regions:
        raise EnvironmentLacksError("No monitor is switched on.", "Switch one on.")
    return connectors, regions
