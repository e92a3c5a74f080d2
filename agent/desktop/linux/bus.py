"""The session bus: calls from any thread with a limit on every wait, and signals to listeners.

jeepney reads and writes the messages. dbus-fast 5.2 was measured against it (2026-11-23): it needs an event loop beside
ours, 31 us of processor time a call against 16 (5,000 calls, 192 in flight), and 0.15 s to import against 0.09.
"""

import array
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from itertools import count
from typing import Any

import psutil
from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageFlag,
    MessageType,
    Parser,
    Properties,
    new_method_call,
)
from jeepney.bus import get_bus
from jeepney.fds import FileDescriptor

from agent.desktop.bus_socket import open_bus_socket
from agent.desktop.programs import number_outside
from agent.desktop.trees.switch import session_bus

#: Seconds for an answer that needs no person; the slowest seen took 0.1.
PATIENCE = 10.0
#: The bus itself.
DBUS = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
#: File descriptors that one message brings at most; the portal sends one.
_MOST_FILES = 16
_ORIGIN = (HeaderFields.path, HeaderFields.interface, HeaderFields.member)

#: Gets the body of a message, on the thread that receives: it must not call anything on the bus there.
Listener = Callable[[tuple[Any, ...]], object]


class BusError(Exception):
    """There is no bus, or the called program does not answer in time or returns an error."""


class Bus:
    """A connection to the session bus, for all threads.

    Args:
        environ: of the session; see `session_bus`.
        within: seconds for everything that is done with this connection.
        seconds: for each call.

    Raises:
        BusError: there is none.
    """

    def __init__(self, environ: Mapping[str, str], within: float = math.inf, *, seconds: float = PATIENCE) -> None:
        self._until, self._seconds = time.monotonic() + within, seconds
        self._serials = count(1)
        self._waiting: dict[int, Future[Message]] = {}
        self._listeners: list[tuple[MessageType, str, tuple[str, str, str], Listener]] = []
        self._on_lost: list[Callable[[], object]] = []
        self._sending = threading.Lock()
        self._closed = self._lost = False
        address = session_bus(environ)
        if not address:
            raise BusError("this environment names no session bus")
        try:
            self._socket = open_bus_socket(get_bus(address), min(within, seconds), files=True)
        except (OSError, ValueError, RuntimeError, StopIteration) as error:
            raise BusError(f"the session bus cannot be reached: {error}") from error
        self._thread = threading.Thread(target=self._receive, name="session bus", daemon=True)
        self._thread.start()
        try:
            (self.name,) = self.call(DBUS, "Hello")
        except BusError:
            self.close()
            raise

    def call(
        self,
        address: DBusAddress,
        member: str,
        signature: str | None = None,
        *body: Any,
        seconds: float | None = None,
        start: bool = False,
    ) -> tuple[Any, ...]:
        """Call a method and return the body of its reply. Raises BusError.

        With `start`, the bus starts the program that owns the address if it does not run.
        """
        message = new_method_call(address, member, signature, body)
        message.header.flags |= 0 if start else MessageFlag.no_auto_start
        return self._ask(message, seconds)

    def property(self, address: DBusAddress, name: str, *, start: bool = False) -> Any:
        """The value of a property. Raises BusError."""
        message = Properties(address).get(name)
        message.header.flags |= 0 if start else MessageFlag.no_auto_start
        return self._ask(message, None)[0][1]

    def owned(self, name: str, *, start: bool = False) -> bool:
        """Whether a program owns a name; with `start`, start it if it can be started. Raises BusError."""
        if start:
            with suppress(BusError):
                self.call(DBUS, "StartServiceByName", "su", name, 0)
        return bool(self.call(DBUS, "NameHasOwner", "s", name)[0])

    def listen(
        self, sender: str, address: DBusAddress, member: str, listener: Listener, *, broadcast: bool = False
    ) -> None:
        """Call `listener` for a signal from now on. Raises BusError.

        Any program may send a signal of any name to us alone, which no match rule keeps away. So only the program that
        owns `sender` now is heard; with `broadcast`, which needs no owner yet, only signals to everybody.
        """
        owner = "" if broadcast else self.call(DBUS, "GetNameOwner", "s", sender)[0]
        path, interface = str(address.object_path), str(address.interface)
        self._listeners.append((MessageType.signal, owner, (path, interface, member), listener))
        rule = f"type='signal',sender='{owner or sender}',path='{path}',interface='{interface}',member='{member}'"
        self.call(DBUS, "AddMatch", "s", rule)

    def serve(self, sender: str, address: DBusAddress, member: str, listener: Listener) -> None:
        """Call `listener` when the owner of `sender` calls this method of ours; no reply is sent. Raises BusError."""
        (owner,) = self.call(DBUS, "GetNameOwner", "s", sender)
        origin = (str(address.object_path), str(address.interface), member)
        self._listeners.append((MessageType.method_call, owner, origin, listener))

    def on_lost(self, name: str, lost: Callable[[], object]) -> None:
        """Call `lost` when a name (or, for "", nothing but the bus itself) is gone. Raises BusError."""
        self._on_lost.append(lost)
        if not name:
            return

        def changed(body: tuple[Any, ...]) -> None:
            if body[:1] == (name,) and not body[2]:
                lost()

        origin = (DBUS.object_path, DBUS.interface, "NameOwnerChanged")
        self._listeners.append((MessageType.signal, DBUS.bus_name, origin, changed))
        rule = f"type='signal',sender='{DBUS.bus_name}',member='NameOwnerChanged',arg0='{name}'"
        self.call(DBUS, "AddMatch", "s", rule)

    def sync(self) -> None:
        """Wait until all signals that were sent before this call have reached their listeners. Raises BusError."""
        self.call(DBUS, "GetId")

    def close(self) -> None:
        """Hang up: whatever belongs to this connection ends. Never raises; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends the thread, which may be waiting for a message
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._socket.close()

    def __enter__(self) -> "Bus":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, message: Message, seconds: float | None) -> tuple[Any, ...]:
        left = min(self._seconds if seconds is None else seconds, self._until - time.monotonic())
        serial, future = next(self._serials), Future[Message]()
        try:
            data = message.serialise(serial=serial, fds=array.array("i"))
        except Exception as error:  # jeepney raises whatever comes for a body that is not of its signature
            raise BusError(f"this cannot be sent: {error}") from error
        self._waiting[serial] = future
        try:
            with self._sending:
                if self._lost:
                    raise ConnectionResetError
                self._socket.sendall(data)
            reply = future.result(max(0.0, left))
        except TimeoutError as error:
            raise BusError("no answer in time") from error
        except (OSError, CancelledError) as error:
            raise BusError("the session bus was lost") from error
        finally:
            del self._waiting[serial]
        body: tuple[Any, ...] = reply.body or ()
        if reply.header.message_type is MessageType.error:
            raise BusError(" ".join(map(str, body)) or str(reply.header.fields.get(HeaderFields.error_name, "")))
        return body

    def _receive(self) -> None:
        parser = Parser()
        with suppress(Exception):  # jeepney raises a dozen kinds of exceptions for what is no message
            while True:
                data, files, _, _ = socket.recv_fds(self._socket, parser.bytes_desired(), _MOST_FILES)
                if not data:
                    break
                parser.add_data(data, fds=[FileDescriptor(one) for one in files])
                while (message := parser.get_next_message()) is not None:
                    self._take(message)
        with self._sending:
            self._lost = True
        for future in list(self._waiting.values()):
            future.cancel()
        for lost in () if self._closed else self._on_lost:
            with suppress(Exception):
                lost()

    def _take(self, message: Message) -> None:
        fields, kind = message.header.fields, message.header.message_type
        future = self._waiting.get(fields.get(HeaderFields.reply_serial, -1))
        if future is not None:
            with suppress(Exception):  # given up just now
                future.set_result(message)
            return
        origin = tuple(fields.get(one) for one in _ORIGIN)
        is_broadcast = HeaderFields.destination not in fields
        for wanted, owner, wanted_origin, listener in list(self._listeners):
            from_owner = owner == fields.get(HeaderFields.sender) if owner else is_broadcast
            if wanted is kind and from_owner and wanted_origin == origin:
                with suppress(Exception):  # a listener that fails must not keep the others from hearing
                    listener(message.body or ())


class AwaitedSignal:
    """A signal to wait for; made before the call that brings it about. Raises BusError: the bus is gone."""

    def __init__(self, bus: Bus, sender: str, address: DBusAddress, member: str) -> None:
        self.body: tuple[Any, ...] = ()
        self._came = threading.Event()
        bus.listen(sender, address, member, self._take)

    def wait(self, seconds: float) -> bool:
        """Whether it came, within some seconds; its `body` is there then."""
        return self._came.wait(seconds)

    def _take(self, body: tuple[Any, ...]) -> None:
        if not self._came.is_set():
            self.body = body
            self._came.set()


def age(environ: Mapping[str, str], seconds: float = 0.5) -> float:
    """Seconds since this session bus started: no desktop on it is older. Infinite where unknown."""
    try:
        with Bus(environ, seconds) as bus:
            (pid,) = bus.call(DBUS, "GetConnectionUnixProcessID", "s", DBUS.bus_name)
        began: float = psutil.Process(number_outside(pid, environ)).create_time()
    except (BusError, psutil.Error, ValueError, TypeError):
        return math.inf
    return max(0.0, time.time() - began)
