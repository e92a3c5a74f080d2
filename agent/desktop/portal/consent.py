"""Opens a session through the desktop portal: the person allows it in the desktop's own dialog.

One session for all (RemoteDesktop with ScreenCast and Clipboard in it), so one dialog; and a token that restores what
was allowed the next time, which is good for one time and comes anew with every start.
"""

import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from jeepney import DBusAddress

from agent.core.geometry import Region
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.bus import PATIENCE, Answer, SessionBus
from agent.desktop.portal.mutter import REMOTE as MUTTER
from agent.desktop.portal.mutter import region_told
from agent.desktop.portal.session import AXES, Axis, BaseSession, Stream, Units
from agent.desktop.portal.token import RestoreToken
from agent.desktop.trees.switch import session_bus
from agent.desktop.wayland.outputs import number_of
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

PORTAL = "org.freedesktop.portal.Desktop"
_PATH = "/org/freedesktop/portal/desktop"
_INTERFACE = "org.freedesktop.portal."
_KEYBOARD_AND_POINTER, _MONITORS = 3, 1
_UNTIL_REVOKED = 2
_HIDDEN, _EMBEDDED = 1, 2  # the pointer, in what is captured
_REFUSED = 1
#: Seconds that a person has for the dialog.
_PERSON = 120.0
_POLL = 0.1
#: The backends that know remote desktops, by what desktops call themselves (XDG_CURRENT_DESKTOP).
_BACKENDS = {"GNOME": "xdg-desktop-portal-gnome", "KDE": "xdg-desktop-portal-kde"}


class _EndedError(Exception):
    """The desktop answered a request otherwise than yes; its number for that."""

    def __init__(self, response: int) -> None:
        super().__init__(response)
        self.response = response


def missing_on(environ: Mapping[str, str]) -> str:
    """What is missing for this way, as a sentence; "" where it is there. Raises EnvironmentLacksError: no bus."""
    try:
        bus = SessionBus(session_bus(environ))
    except BusError as error:
        raise EnvironmentLacksError(
            f"The desktop portal cannot be asked: {error}.", "Start from a terminal of that session."
        ) from error
    try:
        return _missing(bus, environ)
    finally:
        bus.close()


def _missing(bus: SessionBus, environ: Mapping[str, str]) -> str:
    with suppress(BusError):
        if not bus.owned(PORTAL, start=True):
            return "The desktop portal is not there: the package xdg-desktop-portal is missing, or does not start."
    try:
        for interface in ("RemoteDesktop", "ScreenCast"):
            bus.property(_address(interface), "version")
    except BusError:
        names = environ.get("XDG_CURRENT_DESKTOP", "")
        backend = next((_BACKENDS[one] for one in names.split(":") if one in _BACKENDS), "")
        if backend:
            return f"The desktop portal has no remote desktop: the package {backend} is missing, or does not start."
        return f"The desktop portal has no remote desktop for this desktop ({names or 'which says no name'})."
    return ""


def open_portal(
    environ: Mapping[str, str],
    monitor: int | None,
    stop: StopSwitch,
    token: RestoreToken | None = None,
    seconds: float = _PERSON,
) -> "PortalSession":
    """A session that the person allows: in a dialog, or by a token of the last time.

    Args:
        environ: of the session.
        monitor: which of the monitors that were allowed, counted from 1; None for the first.
        stop: ends the wait.
        token: where it is kept.
        seconds: that the person has.

    Raises:
        EnvironmentLacksError: it was refused, not answered in time, or cannot be had here.
        UsageError: there is no such monitor among those that were allowed.
        StoppedError: the stop switch was set.
    """
    token = token or RestoreToken()
    try:
        bus = SessionBus(session_bus(environ))
    except BusError as error:
        raise EnvironmentLacksError(f"The desktop portal cannot be asked: {error}.", "Is this a session?") from error
    try:
        missing = _missing(bus, environ)
        if missing:
            raise EnvironmentLacksError(missing, "Install it, and log in again.")
        session = PortalSession(bus, _Asking(bus, stop, seconds), monitor)
        session.start(token)
        return session
    except (BusError, LookupError, TypeError, ValueError) as error:  # the last ones for answers of another shape
        bus.close()
        why = str(error) if isinstance(error, BusError) else "its answer cannot be read"
        raise EnvironmentLacksError(
            f"The desktop portal failed ({why}).", "Log out and in again, or use --sandbox."
        ) from error
    except BaseException:
        bus.close()
        raise


class _Asking:
    """Requests of the portal, which a person may have to answer."""

    def __init__(self, bus: SessionBus, stop: StopSwitch, seconds: float) -> None:
        self._bus = bus
        self._stop = stop
        self._seconds = seconds

    def ask(
        self, interface: str, member: str, signature: str, body: tuple[Any, ...], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Ask, and wait for the answer; its results.

        Raises:
            BusError: there is no such request.
            EnvironmentLacksError: nobody answered in time.
            StoppedError: the stop switch was set.
            _EndedError: the answer is no.
        """
        name = f"mai{uuid.uuid4().hex}"
        # The place of the answer is known before it is asked for (xdg-desktop-portal, Request): none can be missed.
        path = f"{_PATH}/request/{self._bus.name[1:].replace('.', '_')}/{name}"
        answer = Answer(self._bus, PORTAL, path, f"{_INTERFACE}Request", "Response")
        given = {"handle_token": ("s", name), **options}
        self._bus.call(_address(interface), member, f"{signature}a{{sv}}", *body, given, seconds=self._seconds)
        deadline = time.monotonic() + self._seconds
        while not answer.wait(_POLL):
            if self._stop.stopped or time.monotonic() >= deadline:
                with suppress(BusError):
                    self._bus.call(DBusAddress(path, PORTAL, f"{_INTERFACE}Request"), "Close")
                self._stop.check()
                raise EnvironmentLacksError(
                    f"Nobody answered the desktop's question within {self._seconds:.0f} seconds: it asks on the screen "
                    "itself whether mai-agent may see and use it.",
                    "Start again, look at your screen and press Share.",
                )
        code, results = answer.body
        if code:
            raise _EndedError(code)
        return {key: value for key, (_, value) in results.items()}


class PortalSession(BaseSession):
    """See `Session`; `start` comes first."""

    def __init__(self, bus: SessionBus, asking: _Asking, monitor: int | None) -> None:
        super().__init__(bus)
        self._asking = asking
        self._monitor = monitor
        self._handle = ""
        self.has_clipboard = False
        self.monitors: Sequence[Region] = ()
        # GNOME hands on what it is told to Mutter, which counts in pixels of the stream's frames; measured at 100 to
        # 200 %. The portal's own text, and KDE, have logical units, and the portal of GNOME 48 refuses what would lie
        # outside the stream in these: of a scaled monitor, only a part can be reached by calls.
        self.units: Units = "pixels" if bus.owned(MUTTER) else "logical"
        self.unscaled_only = self.units == "pixels"

    def start(self, token: RestoreToken) -> None:
        """Have it allowed. Raises as `open_portal` does."""
        known = token.read()
        try:
            results = self._ask_for(known)
        except _EndedError as ended:
            if not known or ended.response == _REFUSED:
                raise _refused(ended.response) from ended
            token.keep("")  # a token that is worth nothing any more costs a question, not the run
            try:
                results = self._ask_for("")
            except _EndedError as again:
                raise _refused(again.response) from again
        if results.get("devices", 0) & _KEYBOARD_AND_POINTER != _KEYBOARD_AND_POINTER:
            token.keep("")
            raise EnvironmentLacksError(
                "The desktop lets mai-agent see the screen, but not use mouse and keyboard.",
                'Start again, and in the dialog switch on "Allow Remote Interaction" (GNOME) or allow input devices.',
            )
        streams = results.get("streams") or []
        if not streams:
            token.keep("")
            raise EnvironmentLacksError(
                "The desktop shares no monitor with mai-agent.", "Start again, and choose a monitor in the dialog."
            )
        token.keep(str(results.get("restore_token", "")))
        self._bus.on_lost(PORTAL, self.lost)
        self.has_clipboard = bool(results.get("clipboard_enabled"))
        regions = [region_told(properties) or Region(0, 0, 1, 1) for _, properties in streams]
        chosen = number_of(regions, self._monitor)
        node, properties = streams[chosen]
        self.monitors = regions
        self.stream = Stream(node, regions[chosen], node, str(properties.get("mapping_id", ("s", ""))[1]))

    def _ask_for(self, token: str) -> dict[str, Any]:
        """One session; what `Start` says of it."""
        bus, ask = self._bus, self._asking.ask
        name = f"mai{uuid.uuid4().hex}"
        made = ask("RemoteDesktop", "CreateSession", "", (), {"session_handle_token": ("s", name)})
        self._handle = str(made["session_handle"])
        handle = self._handle
        bus.listen(
            PORTAL, handle, f"{_INTERFACE}Session", "Closed",
            lambda _: self.ended() if handle == self._handle else None,
        )  # fmt: skip
        devices = {"types": ("u", _KEYBOARD_AND_POINTER), "persist_mode": ("u", _UNTIL_REVOKED)}
        ask("RemoteDesktop", "SelectDevices", "o", (self._handle,), devices | _named("restore_token", token))
        modes = bus.property(_address("ScreenCast"), "AvailableCursorModes")
        sources = {
            "types": ("u", _MONITORS),
            "multiple": ("b", self._monitor is not None),
            "cursor_mode": ("u", _HIDDEN if modes & _HIDDEN else _EMBEDDED),
        }
        ask("ScreenCast", "SelectSources", "o", (self._handle,), sources)
        with suppress(BusError):  # older portals, and KDE's, have no clipboard
            bus.call(_address("Clipboard"), "RequestClipboard", "oa{sv}", handle, {})
            bus.listen(PORTAL, _PATH, f"{_INTERFACE}Clipboard", "SelectionOwnerChanged", self._owner_changed)
            bus.listen(PORTAL, _PATH, f"{_INTERFACE}Clipboard", "SelectionTransfer", self._transfer)
        return ask("RemoteDesktop", "Start", "os", (self._handle, ""), {})

    def move(self, x: float, y: float) -> None:
        """See `Session.move`."""
        self._notify("PointerMotionAbsolute", "udd", self.stream.handle, float(x), float(y))

    def button(self, code: int, *, down: bool) -> None:
        """See `Session.button`."""
        self._notify("PointerButton", "iu", code, int(down))

    def key(self, code: int, *, down: bool) -> None:
        """See `Session.key`."""
        self._notify("KeyboardKeycode", "iu", code, int(down))

    def wheel(self, axis: Axis, steps: int) -> None:
        """See `Session.wheel`."""
        self._notify("PointerAxisDiscrete", "ui", AXES[axis], steps)

    def pipewire(self) -> int:
        """See `Session.pipewire`."""
        return self._file("ScreenCast", "OpenPipeWireRemote", "a{sv}", {})

    def eis(self) -> int | None:
        """See `Session.eis`: since version 2 of the interface."""
        with suppress(BusError):
            if self._bus.property(_address("RemoteDesktop"), "version") >= 2:
                return self._file("RemoteDesktop", "ConnectToEIS", "a{sv}", {})
        return None

    def give_clipboard(self, kinds: Sequence[str]) -> None:
        """See `Session.give_clipboard`."""
        self._call("Clipboard", "SetSelection", "a{sv}", {"mime_types": ("as", list(kinds))})

    def read_clipboard(self, kind: str) -> int:
        """See `Session.read_clipboard`."""
        return self._file("Clipboard", "SelectionRead", "s", kind)

    def write_clipboard(self, serial: int) -> int:
        """See `Session.write_clipboard`."""
        return self._file("Clipboard", "SelectionWrite", "u", serial)

    def clipboard_written(self, serial: int, *, done: bool) -> None:
        """See `Session.clipboard_written`."""
        self._call("Clipboard", "SelectionWriteDone", "ub", serial, done)

    def _owner_changed(self, told: tuple[Any, ...]) -> None:
        if told[0] == self._handle:
            self.clipboard_changed(told[1])

    def _transfer(self, told: tuple[Any, ...]) -> None:
        if told[0] == self._handle:
            self.clipboard_wanted(*told[1:])

    def _end(self) -> None:
        address = DBusAddress(self._handle, PORTAL, f"{_INTERFACE}Session")
        if self._handle:
            self._bus.call(address, "Close", seconds=PATIENCE / 10)

    def _notify(self, member: str, signature: str, *body: Any) -> None:
        self._call("RemoteDesktop", f"Notify{member}", f"a{{sv}}{signature}", {}, *body)

    def _file(self, interface: str, member: str, signature: str, *body: Any) -> int:
        return int(self._call(interface, member, signature, *body)[0].to_raw_fd())

    def _call(self, interface: str, member: str, signature: str, *body: Any) -> tuple[Any, ...]:
        return self._bus.call(_address(interface), member, f"o{signature}", self._handle, *body)


def _address(interface: str) -> DBusAddress:
    return DBusAddress(_PATH, PORTAL, f"{_INTERFACE}{interface}")


def _named(name: str, text: str) -> dict[str, Any]:
    return {name: ("s", text)} if text else {}


def _refused(response: int) -> EnvironmentLacksError:
    if response == _REFUSED:
        return EnvironmentLacksError(
            "mai-agent may not see and use this desktop: that was refused in the desktop's dialog.",
            "Start again and press Share, or use --sandbox.",
        )
    return EnvironmentLacksError(
        "The desktop ended its question whether mai-agent may see and use it without an answer.",
        "Is the screen locked, or its capture out of order? Log in again, or use --sandbox.",
    )
