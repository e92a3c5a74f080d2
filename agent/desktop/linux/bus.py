"""The session bus of an environment, with a limit on every wait."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import psutil
from jeepney import DBusAddress, HeaderFields, Message, MessageFlag, MessageType, new_method_call
from jeepney.bus import get_bus
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import DBusConnection, DBusConnectionBase
from jeepney.io.common import MessageFilters

from agent.desktop.bus_socket import open_bus_socket
from agent.desktop.programs import number_outside

#: Signals that are taken in at a time: more come only from a program that sends without an end.
_MOST_SIGNALS = 10_000

#: The bus itself.
DBUS = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")


class BusError(Exception):
    """There is no bus, or what was called does not answer in time, or refuses."""


class Bus(DBusConnection):  # type: ignore[misc]  # its library has no types
    """One thread's connection to the session bus.

    Args:
        environ: whose DBUS_SESSION_BUS_ADDRESS counts; without it, the socket in XDG_RUNTIME_DIR, as systemd has it.
        seconds: for everything that is done with this connection, from now on.

    Raises:
        BusError: there is none.
    """

    def __init__(self, environ: Mapping[str, str], seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        address = environ.get("DBUS_SESSION_BUS_ADDRESS") or f"unix:path={environ.get('XDG_RUNTIME_DIR', '')}/bus"
        try:
            # The library's own beginning waits for its first answer without a limit.
            DBusConnectionBase.__init__(self, open_bus_socket(get_bus(address), seconds))
        except (OSError, ValueError, RuntimeError, StopIteration) as error:
            raise BusError(f"the session bus cannot be reached: {error}") from error
        self._filters = MessageFilters()
        try:
            (self.unique_name,) = self._send(message_bus.Hello())
        except BusError:
            self.close()
            raise

    def owned(self, name: str) -> bool:
        """Whether somebody answers to a name. Raises BusError."""
        return bool(self.ask(DBUS, "NameHasOwner", "s", name)[0])

    def ask(
        self, address: DBusAddress, method: str, signature: str | None = None, *body: Any, start: bool = False
    ) -> tuple[Any, ...]:
        """Call a method; what it returns. With `start`, who answers is started where nobody does. Raises BusError."""
        message = new_method_call(address, method, signature, body)
        message.header.flags |= 0 if start else MessageFlag.no_auto_start
        return self._send(message)

    def listen(self, sender: str, path: str, interface: str, member: str = "") -> None:
        """Hear signals from who has the name `sender`, of any name for no `member`; see `heard`. Raises BusError."""
        rule = f"type='signal',sender='{sender}',path='{path}',interface='{interface}'"
        self.ask(DBUS, "AddMatch", "s", f"{rule},member='{member}'" if member else rule)

    def heard(self) -> Iterator[Message]:
        """The signals that came since, without waiting. Raises BusError: the bus was lost, and so were signals.

        The bus holds back what no rule fits, but for signals that a program sends to us alone: those are left out, as
        any program may send them.
        """
        for _ in range(_MOST_SIGNALS):
            try:
                message = self.receive(timeout=0)
            except TimeoutError:
                return
            except Exception as error:
                raise BusError(f"the session bus was lost: {error}") from error
            to_us_alone = HeaderFields.destination in message.header.fields
            if message.header.message_type == MessageType.signal and not to_us_alone:
                yield message

    def _send(self, message: Any) -> tuple[Any, ...]:
        left = self._deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            reply = self.send_and_get_reply(message, timeout=left)
        except TimeoutError as error:
            raise BusError("no answer in time") from error
        except Exception as error:  # a stranger's message that cannot be read shows as any of a dozen exceptions
            raise BusError(f"the session bus was lost: {error}") from error
        if reply.header.message_type == MessageType.error:
            raise BusError(" ".join(map(str, reply.body)) or "refused")
        body: tuple[Any, ...] = reply.body
        return body


def age(environ: Mapping[str, str], seconds: float = 0.5) -> float:
    """For how long there has been this session bus, in seconds: no desktop on it is older. Infinite where unknown."""
    try:
        with Bus(environ, seconds) as bus:
            (pid,) = bus.ask(DBUS, "GetConnectionUnixProcessID", "s", DBUS.bus_name)
        began: float = psutil.Process(number_outside(pid, environ)).create_time()
    except (BusError, psutil.Error, ValueError, TypeError):
        return float("inf")
    return max(0.0, time.time() - began)
