"""Opens a session through the desktop portal: the user allows it in the desktop's own dialog.

One session covers everything (RemoteDesktop with ScreenCast and Clipboard), so there is one dialog. A single-use
restore token, renewed at every start, restores the permission the next time.
"""

import json
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from jeepney import DBusAddress
from typing_extensions import override

from agent.core.geometry import Region
from agent.desktop.linux.bus import TIMEOUT, AwaitedSignal, Bus, BusError
from agent.desktop.portal.session import MUTTER, REMOTE, Session, Stream, reported_region
from agent.desktop.protocol.desktop import number_of
from agent.safety.stop import StopSwitch
from foundation.configs import state_folder
from foundation.errors import EnvironmentLacksError
from foundation.files import read_json_object, write_atomically

PORTAL = "org.freedesktop.portal.Desktop"
_PATH = "/org/freedesktop/portal/desktop"
_INTERFACE = "org.freedesktop.portal."
_KEYBOARD_AND_POINTER, _MONITORS = 3, 1
_UNTIL_REVOKED = 2
_HIDDEN, _EMBEDDED = 1, 2  # cursor modes: captures without and with the pointer
_REFUSED = 1
#: Seconds in which the user can answer the dialog.
_PERSON = 120.0
_POLL = 0.1
#: Seconds for the portal to take a request: it may have to start first. The stop switch is not checked meanwhile.
_STARTING = 10.0
#: The backends with RemoteDesktop, by XDG_CURRENT_DESKTOP.
_BACKENDS = {"GNOME": "xdg-desktop-portal-gnome", "KDE": "xdg-desktop-portal-kde"}


class _EndedError(EnvironmentLacksError):
    """The desktop did not grant a request; `refused` if the user said so."""

    def __init__(self, response: int) -> None:
        self.refused = response == _REFUSED
        if self.refused:
            super().__init__(
                "mai-agent may not see and use this desktop: that was refused in the desktop's dialog.",
                "Start again and press Share, or use --sandbox.",
            )
        else:
            super().__init__(
                "The desktop ended its question whether mai-agent may see and use it without an answer.",
                "Is the screen locked, or its capture out of order? Log in again, or use --sandbox.",
            )


class RestoreToken:
    """The restore token of the last allowed session: single-use, and readable by this user only."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or state_folder() / "portal.json"

    def read(self) -> str:
        """Return the token, or "" if there is none."""
        token = read_json_object(self._path).get("restore_token")
        return token if isinstance(token, str) else ""

    def keep(self, token: str) -> None:
        """Store the token that a start returned; "" deletes it. If storing fails, the user is asked again next time."""
        with suppress(OSError):
            if not token:
                self._path.unlink(missing_ok=True)
                return
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self._path, json.dumps({"restore_token": token}))


def missing_on(environ: Mapping[str, str]) -> str:
    """Return what is missing for this method, as a sentence; "" if nothing is. Raises EnvironmentLacksError: no bus."""
    try:
        bus = Bus(environ)
    except BusError as error:
        raise EnvironmentLacksError(
            f"The desktop portal cannot be asked: {error}.", "Start from a terminal of that session."
        ) from error
    try:
        if not bus.owned(PORTAL, start=True):
            return "The desktop portal is not there: the package xdg-desktop-portal is missing, or does not start."
        for interface in ("RemoteDesktop", "ScreenCast"):
            bus.property(portal_address(interface), "version")
        return ""
    except BusError:
        names = environ.get("XDG_CURRENT_DESKTOP", "")
        backend = next((_BACKENDS[one] for one in names.split(":") if one in _BACKENDS), "")
        if backend:
            return f"The desktop portal has no remote desktop: the package {backend} is missing, or does not start."
        return f"The desktop portal has no remote desktop for this desktop ({names or 'which says no name'})."
    finally:
        bus.close()


def open_portal(
    environ: Mapping[str, str],
    monitor: int | None,
    stop: StopSwitch,
    token: RestoreToken | None = None,
    seconds: float = _PERSON,
) -> "PortalSession":
    """Open a session. The user allows it in a dialog within `seconds`, or has allowed it before (`token`).

    Raises EnvironmentLacksError: it was refused or not answered in time, or the portal cannot be used. UsageError:
    there is no such monitor among the allowed ones. StoppedError: the stop switch was set.
    """
    with ExitStack() as begun:  # closes the bus if the session cannot be opened
        try:
            session = PortalSession(begun.enter_context(Bus(environ)), stop, seconds, monitor)
            session.start(token or RestoreToken())
        except (BusError, LookupError, TypeError, ValueError) as error:  # the last three: the reply is malformed
            why = str(error) if isinstance(error, BusError) else "its answer cannot be read"
            raise EnvironmentLacksError(
                f"The desktop portal failed ({why}).", "Log out and in again, or use --sandbox."
            ) from error
        begun.pop_all()
    return session


def ask_portal(
    bus: Bus, interface: str, member: str, signature: str, body: tuple[Any, ...], options: Mapping[str, Any],
    stop: StopSwitch, seconds: float,
) -> tuple[int, dict[str, Any]] | None:  # fmt: skip
    """Send a request that the user may have to answer. Wait for the response and return its code and results.

    Return None on timeout, or if the stop switch was set. Raises BusError: the request failed.
    """
    name = f"mai{uuid.uuid4().hex}"
    # The response's path is known before the request (xdg-desktop-portal, Request), so the response cannot be missed.
    path = f"{_PATH}/request/{bus.name[1:].replace('.', '_')}/{name}"
    request = DBusAddress(path, PORTAL, f"{_INTERFACE}Request")
    response = AwaitedSignal(bus, PORTAL, request, "Response")
    vardict = {"handle_token": ("s", name), **options}
    bus.call(portal_address(interface), member, f"{signature}a{{sv}}", *body, vardict, seconds=min(seconds, _STARTING))
    deadline = time.monotonic() + seconds
    while (answer := response.wait(_POLL)) is None:
        if stop.stopped or time.monotonic() >= deadline:
            with suppress(BusError):
                bus.call(request, "Close")
            return None
    code, results = answer
    return code, {key: value for key, (_, value) in results.items()}


def portal_address(interface: str) -> DBusAddress:
    """Return the portal's address for one of its interfaces, such as ScreenCast."""
    return DBusAddress(_PATH, PORTAL, f"{_INTERFACE}{interface}")


class PortalSession(Session):
    """A session of the portal's RemoteDesktop, ScreenCast and Clipboard interfaces. Call `start` first."""

    handle_type, down_type, key_type, mime_types = "u", "u", "i", "mime_types"

    def __init__(self, bus: Bus, stop: StopSwitch, seconds: float, monitor: int | None) -> None:
        super().__init__(bus)
        self._stop, self._seconds = stop, seconds
        self._monitor = monitor
        self._handle = ""
        self.has_clipboard = False
        # GNOME passes coordinates on to Mutter, which uses pixels of the stream's frames; measured at 100 to 200 %. The
        # portal's specification and KDE use logical units. The portal of GNOME 48 rejects points outside the stream's
        # size in logical units, so on a scaled monitor, D-Bus calls reach only a part of the screen.
        self.in_pixels = self.unscaled_only = bus.owned(MUTTER)

    def start(self, token: RestoreToken) -> None:
        """Get permission and start the session. Raises the errors of `open_portal`."""
        known = token.read()
        try:
            results = self._ask_for(known)
        except _EndedError as ended:
            if not known or ended.refused:
                raise
            token.keep("")  # an invalid token leads to a dialog, not to a failed run
            results = self._ask_for("")
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
        regions = [reported_region(properties) or Region(0, 0, 1, 1) for _, properties in streams]
        chosen = number_of(regions, self._monitor)
        node, properties = streams[chosen]
        self.monitors = regions
        self.stream = Stream(node, regions[chosen], node, str(properties.get("mapping_id", ("s", ""))[1]))

    def _ask(self, interface: str, member: str, signature: str, body: tuple[Any, ...], **options: Any) -> Any:
        """Return the results of a request. Raises the errors of `open_portal`."""
        answer = ask_portal(self._bus, interface, member, signature, body, options, self._stop, self._seconds)
        if answer is None:
            self._stop.check()
            raise EnvironmentLacksError(
                f"Nobody answered the desktop's question within {self._seconds:.0f} seconds: it asks on the screen "
                "itself whether mai-agent may see and use it.",
                "Start again, look at your screen and press Share.",
            )
        if answer[0]:
            raise _EndedError(answer[0])
        return answer[1]

    def _ask_for(self, token: str) -> dict[str, Any]:
        """Create a session and return the results of `Start`."""
        bus = self._bus
        made = self._ask(REMOTE, "CreateSession", "", (), session_handle_token=("s", f"mai{uuid.uuid4().hex}"))
        handle = self._handle = str(made["session_handle"])
        closed = DBusAddress(handle, PORTAL, f"{_INTERFACE}Session")
        bus.listen(PORTAL, closed, "Closed", lambda _: self.ended() if handle == self._handle else None)
        restore = {"restore_token": ("s", token)} if token else {}
        devices = {"types": ("u", _KEYBOARD_AND_POINTER), "persist_mode": ("u", _UNTIL_REVOKED)}
        self._ask(REMOTE, "SelectDevices", "o", (handle,), **devices, **restore)
        modes = bus.property(portal_address("ScreenCast"), "AvailableCursorModes")
        sources = {
            "types": ("u", _MONITORS),
            "multiple": ("b", self._monitor is not None),
            "cursor_mode": ("u", _HIDDEN if modes & _HIDDEN else _EMBEDDED),
        }
        self._ask("ScreenCast", "SelectSources", "o", (handle,), **sources)
        with suppress(BusError):  # older portals, and KDE's, have no Clipboard interface
            clipboard = portal_address("Clipboard")
            bus.call(clipboard, "RequestClipboard", "oa{sv}", handle, {})
            bus.listen(PORTAL, clipboard, "SelectionOwnerChanged", self._owner_changed)
            bus.listen(PORTAL, clipboard, "SelectionTransfer", self._transfer)
        started: dict[str, Any] = self._ask(REMOTE, "Start", "os", (handle, ""))
        return started

    @override
    def pipewire(self) -> int:
        return self.file("ScreenCast", "OpenPipeWireRemote", "a{sv}", {})

    def _owner_changed(self, body: tuple[Any, ...]) -> None:
        if body[0] == self._handle:
            self.clipboard_changed(body[1])

    def _transfer(self, body: tuple[Any, ...]) -> None:
        if body[0] == self._handle:
            self.clipboard_requests.put((body[1], body[2]))

    def _end(self) -> None:
        if self._handle:
            session = DBusAddress(self._handle, PORTAL, f"{_INTERFACE}Session")
            self._bus.call(session, "Close", seconds=TIMEOUT / 10)

    def _notify(self, member: str, signature: str, *body: Any) -> None:
        self.call(REMOTE, f"Notify{member}", f"a{{sv}}{signature}", {}, *body)

    def call(self, interface: str, member: str, signature: str = "", *body: Any) -> tuple[Any, ...]:
        return self._bus.call(portal_address(interface), member, f"o{signature}", self._handle, *body)
