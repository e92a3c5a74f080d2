"""Whether applications tell their elements: the switches of a session's accessibility, over its D-Bus.

A person's switches are theirs: they are turned only after asking, and given back (`agent/desktop/given_back.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.desktop.atspi.bus import Body, Bus, Limits, Question
from agent.desktop.atspi.wire import Call

#: Starting the service takes up to some seconds on a busy machine that has just begun its session.
_LIMITS = Limits(silence=5.0, total=5.0)
_SERVICE, _PATH, _STATUS = "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Status"
_PROPERTIES = "org.freedesktop.DBus.Properties"


@dataclass(frozen=True, slots=True)
class Switches:
    """Both switches: the first is for applications at large, browsers wait for the second one."""

    enabled: bool
    screen_reader: bool


ON = Switches(enabled=True, screen_reader=True)


def session_bus(environ: Mapping[str, str]) -> str:
    """The address of the session bus of an environment; "" where it has none."""
    if told := environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return told
    usual = Path(environ.get("XDG_RUNTIME_DIR") or "/nowhere", "bus")
    return f"unix:path={usual}" if usual.exists() else ""


def buses(session: str, told: str = "") -> Iterator[str]:
    """The addresses at which the accessibility bus may be, the best first.

    Args:
        session: the address of the session bus, which starts the service where it is not there; "" for none.
        told: the address that a display tells, which is that of its own applications; "" for none.

    Raises:
        EnvironmentLacksError: the session's bus takes no connection.
    """
    if told:
        yield told
    if not session:
        return
    bus = Bus(session)
    try:
        reply = bus.ask(_ask(Call(_SERVICE, _PATH, _SERVICE, "GetAddress", "s")))
    finally:
        bus.close()
    if reply and reply[0] != told:
        yield str(reply[0])


def _ask(call: Call) -> Question[Body]:
    [reply] = yield [call]
    return reply


def read_switches(session_bus: str) -> Switches | None:
    """How the switches of a session stand, by the address of its bus; None where it has none.

    Raises:
        EnvironmentLacksError: there is no bus at that address.
    """

    def question() -> Question[Switches | None]:
        replies = yield [
            Call(_SERVICE, _PATH, _PROPERTIES, "Get", "v", "ss", (_STATUS, name)) for name in _NAMES.values()
        ]
        values = [_flag(reply) for reply in replies]
        return None if None in values else Switches(*map(bool, values))

    bus = Bus(session_bus, _LIMITS)
    try:
        return bus.ask(question())
    finally:
        bus.close()


def turn_switches(session_bus: str, to: Switches) -> bool:
    """Turn them; whether they stand so then. Applications that run already may take no notice.

    Raises:
        EnvironmentLacksError: there is no bus at that address.
    """

    def question() -> Question[None]:
        yield [
            Call(_SERVICE, _PATH, _PROPERTIES, "Set", "", "ssv", (_STATUS, told, ("b", getattr(to, name))))
            for name, told in _NAMES.items()
        ]

    bus = Bus(session_bus, _LIMITS)
    try:
        bus.ask(question())
    finally:
        bus.close()
    return read_switches(session_bus) == to


_NAMES = {"enabled": "IsEnabled", "screen_reader": "ScreenReaderEnabled"}


def _flag(reply: Body) -> bool | None:
    if not reply or not isinstance(reply[0], tuple) or reply[0][0] != "b":
        return None
    return bool(reply[0][1])
