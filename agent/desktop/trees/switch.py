"""The accessibility switch of a person's session: finds its bus, reads it, and switches it on for a run.

Browsers and some other applications expose their elements only if the switch is on. It is the person's setting, so it
is changed only after asking, and restored even after a crash; the switch for screen readers, which would start one, is
left alone.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal, TypeAlias

from agent.desktop.trees.bus import DBUS, Body, Bus, Call, Limits
from foundation.configs import state_folder
from foundation.errors import EnvironmentLacksError
from foundation.files import read_json_object, write_atomically
from foundation.processes import identity_of, is_alive, read_identity

#: The setting `accessibility`: the person's choice.
Wish: TypeAlias = Literal["ask", "on", "off"]

#: Starting the service takes up to some seconds on a busy machine that has just started its session.
_LIMITS = Limits(silence=5.0, total=5.0, working=5.0)
_SERVICE, _PATH = "org.a11y.Bus", "/org/a11y/bus"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_SWITCH = ("org.a11y.Status", "IsEnabled")
_QUESTION = (
    "Browsers and some other applications report the names of their buttons only if accessibility is switched on, "
    'and it is off here. Switch it on for now? (accessibility = "on" or "off" in the settings answers this.)'
)
_REMARK = (
    "Accessibility is off in this session: some applications do not tell what their buttons are called. "
    'accessibility = "on" in the settings switches it on while a run lasts.'
)


def session_bus(environ: Mapping[str, str]) -> str:
    """Return the address of the session bus of an environment; "" if it has none."""
    if address := environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return address
    usual = Path(environ.get("XDG_RUNTIME_DIR") or "/nowhere", "bus")
    return f"unix:path={usual}" if usual.exists() else ""


def buses(session: str, display_address: str = "") -> Iterator[str]:
    """Yield the possible addresses of the accessibility bus, the best first. Raises EnvironmentLacksError.

    `session` is the address of the session bus, which starts the service if necessary, and `display_address` the one
    that the display announces for its own applications; "" for none.
    """
    if display_address:
        yield display_address
    reply = _asked(session, Call(_SERVICE, _PATH, _SERVICE, "GetAddress", "s"), Limits()) if session else None
    if reply and reply[0] != display_address:
        yield str(reply[0])


def is_switched_on(session: str) -> bool | None:
    """Whether accessibility is on in the session whose bus has this address; None if unknown."""
    with suppress(EnvironmentLacksError):
        reply = _asked(session, Call(_SERVICE, _PATH, _PROPERTIES, "Get", "v", "ss", _SWITCH))
        if reply and reply[0][0] == "b":
            return bool(reply[0][1])
    return None


def answering(session: str) -> int | None:
    """Return the number of programs on a session's accessibility bus; None if the bus does not answer."""
    with suppress(EnvironmentLacksError):
        for address in buses(session):
            reply = _asked(address, Call(*DBUS, "ListNames", "as"))
            if reply:
                return sum(str(name).startswith(":") for name in reply[0]) - 1  # without ourselves
    return None


def switch(session: str, *, on: bool) -> bool:
    """Switch accessibility on or off, and return whether that worked. Running applications may ignore the change."""
    with suppress(EnvironmentLacksError):
        _asked(session, Call(_SERVICE, _PATH, _PROPERTIES, "Set", "", "ssv", (*_SWITCH, ("b", on))))
        return is_switched_on(session) is on
    return False


class LentAccessibility:
    """Switches a session's accessibility on, if the person agrees, until `give_back`.

    `wish` is the person's setting. `ask` asks the person a yes-or-no question; None if nobody can answer. `tell` shows
    the person a remark.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        wish: Wish,
        ask: Callable[[str], bool] | None,
        tell: Callable[[str], None],
    ) -> None:
        self._session = session_bus(environ)
        self._lent = False
        give_back_left_over()
        if wish == "off" or not self._session or is_switched_on(self._session) is not False:
            return
        if wish == "ask" and ask is None:
            tell(_REMARK)
        elif wish == "on" or (ask is not None and ask(_QUESTION)):
            self._switch_on(tell)

    def give_back(self) -> None:
        if self._lent:
            self._lent = False
            switch(self._session, on=False)
            _marker().unlink(missing_ok=True)

    def _switch_on(self, tell: Callable[[str], None]) -> None:
        me = identity_of(os.getpid())
        try:  # written first: after a crash from here on, the next start restores the setting
            _marker().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(_marker(), json.dumps({"session": self._session} | (me.to_json() if me else {})))
        except OSError as error:
            tell(f"Accessibility is left off: {_marker()} cannot be written ({error.strerror}).")
            return
        self._lent = True
        if not switch(self._session, on=True):
            tell("Accessibility could not be switched on.")


def give_back_left_over() -> bool:
    """Switch accessibility off if a crashed run left it on. Return whether there was such a run."""
    marker = read_json_object(_marker())
    session = marker.get("session")
    if not isinstance(session, str) or is_alive(read_identity(marker)):
        return False
    # The setting belongs to the person, not to one session: if that session's bus is gone, use the present one.
    if switch(session, on=False) or switch(session_bus(os.environ), on=False):
        _marker().unlink(missing_ok=True)
        return True
    return False


def _marker() -> Path:
    return state_folder() / "accessibility.json"


def _asked(session: str, call: Call, limits: Limits = _LIMITS) -> Body:
    """Return the reply to one call on a bus. Raises EnvironmentLacksError if there is no bus at this address."""
    with closing(Bus(session, limits)) as bus:
        return bus.call(call)
