"""A stop key by the portal's global shortcuts: the desktop asks once, and tells when the chord is pressed.

It keeps what the person answered by the name of an application that has an entry among the installed ones: that is
written where there is none.
"""

import sys
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jeepney import DBusAddress

from agent.desktop.linux.bus import BusError
from agent.desktop.portal.bus import Answer, SessionBus
from agent.desktop.portal.consent import PORTAL
from agent.desktop.protocol.desktop import parse_chord
from agent.desktop.trees.switch import session_bus
from agent.desktop.wayland.keysyms import keysym_of
from agent.safety.stop import StopSwitch
from foundation.files import write_atomically

_PATH = "/org/freedesktop/portal/desktop"
_SHORTCUTS = "org.freedesktop.portal.GlobalShortcuts"
_REQUEST = "org.freedesktop.portal.Request"
_REGISTRY = DBusAddress(_PATH, PORTAL, "org.freedesktop.host.portal.Registry")
#: Our name among applications.
_APPLICATION = "org.mai_agent.Agent"
#: Its entry; one whose program is not there does not count.
_ENTRY = '[Desktop Entry]\nType=Application\nName=mai-agent\nExec="{python}" -m agent\nNoDisplay=true\n'
_REASON = "the stop key was pressed"
#: Names of modifiers in the words of the shortcuts specification of XDG.
_MODIFIERS = {"ctrl": "CTRL", "alt": "ALT", "shift": "SHIFT", "super": "LOGO"}
#: Seconds that the person has for the dialog.
_PERSON = 60.0
_POLL = 0.1


def has_shortcuts(environ: Mapping[str, str]) -> bool:
    """Whether the portal of a session has global shortcuts."""
    try:
        bus = SessionBus(session_bus(environ))
    except BusError:
        return False
    try:
        return bool(bus.property(DBusAddress(_PATH, PORTAL, _SHORTCUTS), "version"))
    except BusError:
        return False
    finally:
        bus.close()


def _introduce(bus: SessionBus, environ: Mapping[str, str]) -> None:
    """Say who we are, where the portal takes that (since 1.20): it gives shortcuts to nobody in particular."""
    data = environ.get("XDG_DATA_HOME") or f"{environ.get('HOME', '')}/.local/share"
    entry = Path(data, "applications", f"{_APPLICATION}.desktop")
    with suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(entry, _ENTRY.format(python=sys.executable))
    with suppress(BusError):
        bus.call(_REGISTRY, "Register", "sa{sv}", _APPLICATION, {})


class PortalStopKey:
    """Sets the stop switch when the chord is pressed, until it is closed; for the chord "none", does nothing.

    Waits while the desktop asks the person whether it may be had, which GNOME and KDE do once.

    Args:
        environ: of the session.
        stop: is set; ends the wait, too.
        chord: as a person writes it.
        seconds: that the person has.

    Raises:
        UsageError: that is no chord.
    """

    def __init__(self, environ: Mapping[str, str], stop: StopSwitch, chord: str, seconds: float = _PERSON) -> None:
        self.remark = ""
        self._stop = stop
        self._bus: SessionBus | None = None
        modifiers, key = parse_chord(chord)
        if not key:
            return
        trigger = "+".join([*(_MODIFIERS[one] for one in modifiers), keysym_of(key)])
        try:
            self._bus = SessionBus(session_bus(environ))
            _introduce(self._bus, environ)
            bound = self._bind(trigger, time.monotonic() + seconds)
        except BusError as error:
            bound, self.remark = False, f"The stop key {chord} cannot be had ({error})."
        if bound:
            return
        self.remark = self.remark or f"The desktop did not give the stop key {chord}, or another one in its place."
        self.close()

    def close(self) -> None:
        """Give the chord back."""
        if self._bus is not None:
            self._bus.close()

    def _bind(self, trigger: str, deadline: float) -> bool:
        """Ask for the chord; whether it, or another one that the person chose, is ours now. Raises BusError."""
        told = self._ask("CreateSession", "", (), {"session_handle_token": ("s", f"mai{uuid.uuid4().hex}")}, deadline)
        session = told.get("session_handle", ("s", ""))[1]
        if not session or self._bus is None:
            return False
        self._bus.listen(PORTAL, _PATH, _SHORTCUTS, "Activated", lambda body: self._pressed(session, body))
        wanted = [("stop", {"description": ("s", "Stop mai-agent"), "preferred_trigger": ("s", trigger)})]
        told = self._ask("BindShortcuts", "oa(sa{sv})s", (session, wanted, ""), {}, deadline)
        return bool(told.get("shortcuts", ("", []))[1])  # GNOME 48 gives them, and says beside that it failed

    def _pressed(self, session: str, body: tuple[Any, ...]) -> None:
        if body[:2] == (session, "stop"):
            self._stop.stop(_REASON)

    def _ask(
        self, member: str, signature: str, body: tuple[Any, ...], options: Mapping[str, Any], deadline: float
    ) -> dict[str, Any]:
        """What a request comes to; nothing where nobody answers in time. Raises BusError."""
        bus = self._bus
        assert bus is not None
        name = f"mai{uuid.uuid4().hex}"
        answer = Answer(bus, PORTAL, f"{_PATH}/request/{bus.name[1:].replace('.', '_')}/{name}", _REQUEST, "Response")
        given = {"handle_token": ("s", name), **options}
        bus.call(DBusAddress(_PATH, PORTAL, _SHORTCUTS), member, f"{signature}a{{sv}}", *body, given)
        while not answer.wait(_POLL):
            if self._stop.stopped or time.monotonic() >= deadline:
                return {}
        results: dict[str, Any] = answer.body[1]
        return results
