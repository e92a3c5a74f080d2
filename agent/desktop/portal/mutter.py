"""Opens a session through Mutter's own D-Bus interfaces, which need no consent.

Only for the disposable compositors of tests and sandboxes. A user's real session must go through the portal.
"""

import socket
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from jeepney import DBusAddress
from typing_extensions import override

from agent.core.geometry import Region
from agent.desktop.linux.bus import AwaitedSignal, Bus, BusError
from agent.desktop.portal.session import REMOTE, Session, Stream, Units
from agent.desktop.protocol.monitors import number_of
from foundation.errors import EnvironmentLacksError

MUTTER = "org.gnome.Mutter.RemoteDesktop"
_CAST = "org.gnome.Mutter.ScreenCast"
_DISPLAYS = DBusAddress("/org/gnome/Mutter/DisplayConfig", *["org.gnome.Mutter.DisplayConfig"] * 2)
#: org.gnome.Mutter.DisplayConfig: layout mode in which monitor positions count in pixels, whatever the scale.
_PHYSICAL = 2
_HIDDEN = 0  # cursor mode: captures do not show the pointer
#: Timeout in seconds for the stream; the slowest seen took 0.1 s.
_STREAM = 10.0


def missing_on(environ: Mapping[str, str]) -> str:
    """Return what is missing for this method, as a sentence; "" if nothing is."""
    try:
        with Bus(environ) as bus:
            return "" if bus.owned(MUTTER) and bus.owned(_CAST) else "This compositor is no GNOME Shell."
    except BusError as error:
        return f"This compositor cannot be asked: {error}."


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

    units: Units = "pixels"
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
            ("SelectionTransfer", lambda body: self.clipboard_wanted(*body)),
        ):
            bus.listen(MUTTER, self._session, member, listener)
        bus.call(self._session, "Start")
        bus.call(self._session, "EnableClipboard", "a{sv}", {})
        if not added.wait(_STREAM):
            raise BusError("the compositor captures nothing")
        parameters = bus.property(stream, "Parameters")
        regions[chosen] = region_told(parameters) or regions[chosen]
        self.monitors = regions
        self.stream = Stream(added.body[0], regions[chosen], handle, str(parameters.get("mapping-id", ("s", ""))[1]))

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

    @override
    def eis(self) -> int | None:
        with suppress(BusError):  # since GNOME 45
            return self._file(REMOTE, "ConnectToEIS", "a{sv}", {})
        return None

    def _notify(self, member: str, signature: str, *body: Any) -> None:
        self._call(REMOTE, f"Notify{member}", signature, *body)

    def _call(self, interface: str, member: str, signature: str = "", *body: Any) -> tuple[Any, ...]:  # noqa: ARG002
        return self._bus.call(self._session, member, signature, *body)

    def _end(self) -> None:
        """Do nothing: Mutter ends the session when the connection closes."""


def _root(name: str) -> DBusAddress:
    return DBusAddress(f"/{name.replace('.', '/')}", name, name)


def region_told(properties: Mapping[str, Any]) -> Region | None:
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
