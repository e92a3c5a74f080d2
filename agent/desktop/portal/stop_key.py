"""Stop keys on GNOME and KDE: grabbed by our GNOME Shell extension, or through the portal's global shortcuts."""

import sys
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from jeepney import DBusAddress

from agent.desktop.linux import places
from agent.desktop.linux.bus import Bus, BusError
from agent.desktop.linux.xkb import keysym_of
from agent.desktop.portal.consent import PORTAL, ask_portal, portal_address
from agent.desktop.portal.windows import EXTENSION, SHELL
from agent.desktop.protocol.desktop import DEFAULT_CHORD, parse_chord
from agent.safety.stop import StopSwitch
from foundation.files import write_atomically

_REASON = "the stop key was pressed"
#: Alternative on GNOME, which uses the default chord to cycle through its panels.
_INSTEAD = "ctrl+shift+escape"
_GNOME_MODIFIERS = {"ctrl": "<Control>", "alt": "<Alt>", "shift": "<Shift>", "super": "<Super>"}
#: Names of modifiers in the XDG shortcuts specification.
_PORTAL_MODIFIERS = {"ctrl": "CTRL", "alt": "ALT", "shift": "SHIFT", "super": "LOGO"}
_SHORTCUTS = "GlobalShortcuts"
#: Our application ID. The portal stores the user's answer under it, and only for installed applications.
_APPLICATION = "org.mai_agent.Agent"
#: Its desktop entry. The portal ignores an entry whose program does not exist.
_ENTRY = '[Desktop Entry]\nType=Application\nName=mai-agent\nExec="{python}" -m agent\nNoDisplay=true\n'
#: Seconds in which the user can answer the dialog.
_PERSON = 60.0


class ShellStopKey:
    """Sets the stop switch when the chord is pressed, until closed."""

    def __init__(self, environ: Mapping[str, str], stop: StopSwitch, chord: str) -> None:
        self.remark = ""
        self._stop = stop
        self._bus: Bus | None = None
        self._number = 0
        chords = [chord, _INSTEAD] if chord == DEFAULT_CHORD else [chord]
        try:
            self._bus = Bus(environ)
            self._bus.listen(SHELL, EXTENSION, "Pressed", self._pressed)
            got = next((one for one in chords if self._grab(self._bus, one)), "")
        except BusError as error:
            self.remark = f"The stop key {chord} cannot be watched ({error})."
            self.close()
            return
        if got != chord:
            self.remark = f"The stop key {chord} cannot be used here: " + (
                f"it is {got}." if got else "choose another with the setting stop_key."
            )
        if not got:
            self.close()

    def close(self) -> None:
        """Release the chord. The shell does this when the connection closes."""
        if self._bus is not None:
            self._bus.close()

    def _grab(self, bus: Bus, chord: str) -> bool:
        """Grab the chord and return whether that worked. Raises BusError."""
        modifiers, key = parse_chord(chord)
        name = "".join(_GNOME_MODIFIERS[one] for one in modifiers) + keysym_of(key)
        [self._number] = bus.call(EXTENSION, "Grab", "s", name)
        return bool(self._number)

    def _pressed(self, body: tuple[Any, ...]) -> None:
        if body == (self._number,):
            self._stop.stop(_REASON)


def has_shortcuts(environ: Mapping[str, str]) -> bool:
    """Whether the session's portal supports global shortcuts."""
    with suppress(BusError), Bus(environ) as bus:
        return bool(bus.property(portal_address(_SHORTCUTS), "version", start=True))
    return False


class PortalStopKey:
    """Sets the stop switch when the chord is pressed, until closed.

    The desktop asks the user for permission; GNOME and KDE ask only once. The constructor waits for the answer, for at
    most `seconds` or until the stop switch is set.
    """

    def __init__(self, environ: Mapping[str, str], stop: StopSwitch, chord: str, seconds: float = _PERSON) -> None:
        self.remark = ""
        self._stop = stop
        self._bus: Bus | None = None
        modifiers, key = parse_chord(chord)
        trigger = "+".join([*(_PORTAL_MODIFIERS[one] for one in modifiers), keysym_of(key)])
        try:
            self._bus = Bus(environ)
            _introduce(self._bus, environ)
            bound = self._bind(self._bus, trigger, time.monotonic() + seconds)
        except BusError as error:
            bound, self.remark = False, f"The stop key {chord} cannot be had ({error})."
        if not bound:
            self.remark = self.remark or f"The desktop did not give the stop key {chord}, or another one in its place."
            self.close()

    def close(self) -> None:
        """Release the chord."""
        if self._bus is not None:
            self._bus.close()

    def _bind(self, bus: Bus, trigger: str, deadline: float) -> bool:
        """Ask for the chord. Return whether we got it, or another chord that the user chose. Raises BusError."""

        def ask(member: str, signature: str, *body: Any, **options: Any) -> dict[str, Any]:
            left = max(0.0, deadline - time.monotonic())
            answer = ask_portal(bus, _SHORTCUTS, member, signature, body, options, self._stop, left)
            return {} if answer is None else answer[1]  # GNOME 48 reports an error although it grants the chord

        session = ask("CreateSession", "", session_handle_token=("s", f"mai{uuid.uuid4().hex}")).get("session_handle")
        if not session:
            return False

        def activated(body: tuple[Any, ...]) -> None:
            if body[:2] == (session, "stop"):
                self._stop.stop(_REASON)

        bus.listen(PORTAL, portal_address(_SHORTCUTS), "Activated", activated)
        wanted = [("stop", {"description": ("s", "Stop mai-agent"), "preferred_trigger": ("s", trigger)})]
        return bool(ask("BindShortcuts", "oa(sa{sv})s", session, wanted, "").get("shortcuts"))


def _introduce(bus: Bus, environ: Mapping[str, str]) -> None:
    """Register our application ID: since 1.20, the portal grants shortcuts only to known applications."""
    entry = places.data_home(environ) / "applications" / f"{_APPLICATION}.desktop"
    with suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(entry, _ENTRY.format(python=sys.executable))
    registry = DBusAddress(portal_address(_SHORTCUTS).object_path, PORTAL, "org.freedesktop.host.portal.Registry")
    with suppress(BusError):
        bus.call(registry, "Register", "sa{sv}", _APPLICATION, {}, start=True)
