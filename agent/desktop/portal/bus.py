"""The session bus for several threads: calls from any of them, signals to whoever listens.

A session of the portal belongs to the connection that made it, so hand, clipboard and watches share one.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import TimeoutError as LateError
from contextlib import suppress
from typing import Any

from jeepney import DBusAddress, HeaderFields, Message, MessageType, Properties, new_method_call
from jeepney.bus import get_bus
from jeepney.bus_messages import message_bus
from jeepney.io.common import RouterClosed
from jeepney.io.threading import DBusConnection, DBusRouter

from agent.desktop.bus_socket import open_bus_socket
from agent.desktop.linux.bus import DBUS, BusError

#: Seconds for an answer that needs no person; the slowest seen took 0.1.
PATIENCE = 10.0
#: By what signals are told apart, in the order of the listeners.
_TOLD_APART = (HeaderFields.sender, HeaderFields.path, HeaderFields.interface, HeaderFields.member)
_OWNER_CHANGED = "type='signal',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='{}'"


#: Gets the body of a signal, on the thread that receives: it must not call anything there.
Heard = Callable[[tuple[Any, ...]], object]


class _Connection(DBusConnection):  # type: ignore[misc]  # its library has no types
    """Gives its pipe back, too, by which a wait is ended: its library leaves it open."""

    def close(self) -> None:
        """Hang up, once."""
        super().close()
        for end in (self._stop_r, self._stop_w):
            os.close(end)


class _Router(DBusRouter):  # type: ignore[misc]  # its library has no types
    """Gives what is no answer to one place, and tells when the bus is gone."""

    def __init__(self, connection: Any, heard: Callable[[Message], object], lost: Callable[[], object]) -> None:
        self._heard, self._lost = heard, lost
        super().__init__(connection)

    def _dispatch(self, msg: Message) -> None:
        if not self._replies.dispatch(msg):
            self._heard(msg)

    def _receiver(self) -> None:
        try:
            with suppress(Exception):  # a bus that broke shows as any of a dozen exceptions
                super()._receiver()
        finally:
            self._lost()


class Answer:
    """A signal that is waited for; begun before what brings it about is asked for.

    Args:
        bus: on which it comes.
        sender: the name of who sends it.
        path: of the object that it comes from.
        interface: its own.
        member: its name.

    Raises:
        BusError: the bus is gone.
    """

    def __init__(self, bus: "SessionBus", sender: str, path: str, interface: str, member: str) -> None:
        self.body: tuple[Any, ...] = ()
        self._came = threading.Event()
        bus.listen(sender, path, interface, member, self._take)

    def wait(self, seconds: float) -> bool:
        """Whether it came, within some seconds; its `body` is there then."""
        return self._came.wait(seconds)

    def _take(self, body: tuple[Any, ...]) -> None:
        if not self._came.is_set():
            self.body = body
            self._came.set()


class SessionBus:
    """A connection to the session bus, for all threads.

    Args:
        address: of the bus; see `accessibility.session_bus`.

    Raises:
        BusError: there is none.
    """

    def __init__(self, address: str) -> None:
        #: Sender, path, interface and member of what they hear.
        self._listeners: list[tuple[str, str, str, str, Heard]] = []
        self._on_lost: list[Callable[[], object]] = []
        self._closed = False
        if not address:
            raise BusError("this environment names no session bus")
        try:
            connection = _Connection(open_bus_socket(get_bus(address), PATIENCE, files=True), enable_fds=True)
        except (OSError, ValueError, RuntimeError, StopIteration) as error:
            raise BusError(f"the session bus cannot be reached: {error}") from error
        self._connection = connection
        self._router = _Router(connection, self._hear, self._lose)
        try:
            (self.name,) = self._send(message_bus.Hello(), PATIENCE)
        except BusError:
            self.close()
            raise

    def call(
        self, address: DBusAddress, member: str, signature: str = "", *body: Any, seconds: float = PATIENCE
    ) -> tuple[Any, ...]:
        """Call a method; what it returns. Raises BusError."""
        return self._send(new_method_call(address, member, signature, body), seconds)

    def property(self, address: DBusAddress, name: str) -> Any:
        """The value of a property. Raises BusError."""
        return self._send(Properties(address).get(name), PATIENCE)[0][1]

    def owned(self, name: str, *, start: bool = False) -> bool:
        """Whether somebody answers to a name; with `start`, it is started where it can be. Raises BusError."""
        if start:
            with suppress(BusError):
                self.call(DBUS, "StartServiceByName", "su", name, 0)
        return bool(self.call(DBUS, "NameHasOwner", "s", name)[0])

    def listen(self, sender: str, path: str, interface: str, member: str, heard: Heard) -> None:
        """Have a signal heard from now on, from who has that name now alone. Raises BusError: nobody has it.

        Any program on the bus may send us a signal of any name, which no rule of the bus keeps away.
        """
        (owner,) = self.call(DBUS, "GetNameOwner", "s", sender)
        self._listeners.append((owner, path, interface, member, heard))
        self.call(
            DBUS, "AddMatch", "s",
            f"type='signal',sender='{owner}',path='{path}',interface='{interface}',member='{member}'",
        )  # fmt: skip

    def on_lost(self, name: str, lost: Callable[[], object]) -> None:
        """Have it told when nobody answers to a name any more, or the bus itself is gone. Raises BusError."""
        self._on_lost.append(lost)

        def changed(body: tuple[Any, ...]) -> None:
            if body[:1] == (name,) and not body[2]:
                lost()

        self._listeners.append((DBUS.bus_name, DBUS.object_path, DBUS.interface, "NameOwnerChanged", changed))
        self.call(DBUS, "AddMatch", "s", _OWNER_CHANGED.format(name))

    def close(self) -> None:
        """Hang up: whatever belongs to this connection ends. Never raises; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        with suppress(Exception):
            self._router.close()
        with suppress(Exception):
            self._connection.close()

    def _send(self, message: Message, seconds: float) -> tuple[Any, ...]:
        try:
            reply = self._router.send_and_get_reply(message, timeout=seconds)
        except (TimeoutError, LateError) as error:
            raise BusError("no answer in time") from error
        except (OSError, RouterClosed, KeyError) as error:  # the last, where it closes while an answer is waited for
            raise BusError("the session bus was lost") from error
        body: tuple[Any, ...] = reply.body or ()
        if reply.header.message_type is MessageType.error:
            raise BusError(" ".join(map(str, body)) or str(reply.header.fields.get(HeaderFields.error_name, "")))
        return body

    def _hear(self, message: Message) -> None:
        if message.header.message_type is not MessageType.signal:
            return
        fields = message.header.fields
        told = tuple(fields.get(one) for one in _TOLD_APART)
        for *what, heard in list(self._listeners):
            if tuple(what) == told:
                with suppress(Exception):  # one that fails must not keep the others from hearing
                    heard(message.body or ())

    def _lose(self) -> None:
        if not self._closed:
            for lost in self._on_lost:
                with suppress(Exception):
                    lost()
