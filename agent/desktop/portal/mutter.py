"""Opens a session by Mutter's own D-Bus interfaces, which ask nobody.

For compositors that are thrown away, of tests and of sandboxes, only: never for a session that a person sits at, whose
consent the portal asks for.
"""

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jeepney import DBusAddress

from agent.core.geometry import Region
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.bus import Answer, SessionBus
from agent.desktop.portal.session import AXES, Axis, BaseSession, Stream, Units
from agent.desktop.trees.switch import session_bus
from agent.desktop.wayland.outputs import number_of
from foundation.errors import EnvironmentLacksError

REMOTE = "org.gnome.Mutter.RemoteDesktop"
_CAST = "org.gnome.Mutter.ScreenCast"
_DISPLAY_CONFIG = "org.gnome.Mutter.DisplayConfig"
_DISPLAYS = DBusAddress("/org/gnome/Mutter/DisplayConfig", _DISPLAY_CONFIG, _DISPLAY_CONFIG)
_HIDDEN = 0  # the pointer, in what is captured
#: Seconds until the stream is there; the slowest seen took 0.1.
_STREAM = 10.0


def missing_on(environ: Mapping[str, str]) -> str:
    """What is missing for this way, as a sentence; "" where it is there."""
    try:
        bus = SessionBus(session_bus(environ))
    except BusError as error:
        return f"This compositor cannot be asked: {error}."
    try:
        return "" if bus.owned(REMOTE) and bus.owned(_CAST) else "This compositor is no GNOME Shell."
    except BusError as error:
        return f"This compositor cannot be asked: {error}."
    finally:
        bus.close()


def open_mutter(environ: Mapping[str, str], monitor: int | None) -> "MutterSession":
    """A session with one monitor; see `wayland.outputs.number_of`.

    Raises:
        EnvironmentLacksError: this compositor has no such interfaces.
        UsageError: there is no such monitor.
    """
    try:
        bus = SessionBus(session_bus(environ))
        try:
            return MutterSession(bus, environ, monitor)
        except BaseException:
            bus.close()
            raise
    except BusError as error:
        raise EnvironmentLacksError(f"This compositor cannot be used ({error}).", "Is it a GNOME Shell?") from error


class MutterSession(BaseSession):
    """See `Session`."""

    units: Units = "pixels"
    unscaled_only = False
    has_clipboard = True

    def __init__(self, bus: SessionBus, environ: Mapping[str, str], monitor: int | None) -> None:
        super().__init__(bus)
        self._environ = environ
        (path,) = bus.call(DBusAddress(f"/{REMOTE.replace('.', '/')}", REMOTE, REMOTE), "CreateSession")
        self._session = DBusAddress(path, REMOTE, f"{REMOTE}.Session")
        connectors, regions = _monitors(bus)
        chosen = number_of(regions, monitor)
        options = {"remote-desktop-session-id": ("s", bus.property(self._session, "SessionId"))}
        (cast,) = bus.call(DBusAddress(f"/{_CAST.replace('.', '/')}", _CAST, _CAST), "CreateSession", "a{sv}", options)
        address = DBusAddress(cast, _CAST, f"{_CAST}.Session")
        (stream,) = bus.call(
            address, "RecordMonitor", "sa{sv}", connectors[chosen], {"cursor-mode": ("u", _HIDDEN)}
        )  # fmt: skip
        added = Answer(bus, _CAST, stream, f"{_CAST}.Stream", "PipeWireStreamAdded")
        bus.listen(REMOTE, path, self._session.interface, "Closed", self.ended)
        bus.on_lost(REMOTE, self.lost)
        bus.listen(
            REMOTE, path, self._session.interface, "SelectionOwnerChanged", lambda told: self.clipboard_changed(told[0])
        )  # fmt: skip
        bus.listen(
            REMOTE, path, self._session.interface, "SelectionTransfer", lambda told: self.clipboard_wanted(*told)
        )  # fmt: skip
        bus.call(self._session, "Start")
        bus.call(self._session, "EnableClipboard", "a{sv}", {})
        if not added.wait(_STREAM):
            raise BusError("the compositor captures nothing")
        told = bus.property(DBusAddress(stream, _CAST, f"{_CAST}.Stream"), "Parameters")
        regions[chosen] = region_told(told) or regions[chosen]
        self.monitors: Sequence[Region] = regions
        self.stream = Stream(added.body[0], regions[chosen], stream, str(told.get("mapping-id", ("s", ""))[1]))

    def move(self, x: float, y: float) -> None:
        """See `Session.move`."""
        self._notify("PointerMotionAbsolute", "sdd", self.stream.handle, float(x), float(y))

    def button(self, code: int, *, down: bool) -> None:
        """See `Session.button`."""
        self._notify("PointerButton", "ib", code, down)

    def key(self, code: int, *, down: bool) -> None:
        """See `Session.key`."""
        self._notify("KeyboardKeycode", "ub", code, down)

    def wheel(self, axis: Axis, steps: int) -> None:
        """See `Session.wheel`."""
        self._notify("PointerAxisDiscrete", "ui", AXES[axis], steps)

    def pipewire(self) -> int:
        """See `Session.pipewire`."""
        folder = self._environ.get("PIPEWIRE_RUNTIME_DIR") or self._environ.get("XDG_RUNTIME_DIR") or "/nowhere"
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.connect(str(Path(folder, "pipewire-0")))
        except OSError as error:
            opened.close()
            raise BusError(f"PipeWire does not run: {error.strerror}") from error
        return opened.detach()

    def eis(self) -> int | None:
        """See `Session.eis`: since GNOME 45."""
        with suppress(BusError):
            return int(self._call("ConnectToEIS", "a{sv}", {})[0].to_raw_fd())
        return None

    def give_clipboard(self, kinds: Sequence[str]) -> None:
        """See `Session.give_clipboard`."""
        self._call("SetSelection", "a{sv}", {"mime-types": ("as", list(kinds))})

    def read_clipboard(self, kind: str) -> int:
        """See `Session.read_clipboard`."""
        return int(self._call("SelectionRead", "s", kind)[0].to_raw_fd())

    def write_clipboard(self, serial: int) -> int:
        """See `Session.write_clipboard`."""
        return int(self._call("SelectionWrite", "u", serial)[0].to_raw_fd())

    def clipboard_written(self, serial: int, *, done: bool) -> None:
        """See `Session.clipboard_written`."""
        self._call("SelectionWriteDone", "ub", serial, done)

    def _notify(self, member: str, signature: str, *body: Any) -> None:
        self._call(f"Notify{member}", signature, *body)

    def _call(self, member: str, signature: str, *body: Any) -> tuple[Any, ...]:
        return self._bus.call(self._session, member, signature, *body)


def region_told(properties: Mapping[str, Any]) -> Region | None:
    """Where a stream's monitor lies by what is told of the stream; None where that is not told."""
    position, size = (properties.get(name, ("", None))[1] for name in ("position", "size"))
    if not size or min(size) < 1:
        return None
    return Region(*(position or (0, 0)), *size)


def _monitors(bus: SessionBus) -> tuple[list[str], list[Region]]:
    """The connectors of all monitors that are on, and where each lies."""
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


#: org.gnome.Mutter.DisplayConfig: monitors lie side by side by their pixels, whatever their scale.
_PHYSICAL = 2
