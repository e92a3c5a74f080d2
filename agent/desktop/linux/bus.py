"""A session bus client: calls from any thread with a timeout on every wait, and signals for listeners.

jeepney serializes the messages. dbus-fast 5.2 was measured against it (2026-11-23): it needs an event loop of its own,
takes 31 us of processor time per call against 16 (5,000 calls, 192 in flight), and 0.15 s to import against 0.09.
"""

import array
import math
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from itertools import count
from typing import Any

import psutil
from jeepney import DBusAddress, HeaderFields, Message, MessageFlag, MessageType, Parser, new_method_call
from jeepney.bus import get_bus
from jeepney.fds import FileDescriptor

from agent.desktop.bus_socket import open_bus_socket
from agent.desktop.programs import host_pid
from agent.desktop.trees.switch import session_bus

#: Timeout in seconds for calls that need no user action. The slowest reply seen took 0.1 s.
TIMEOUT = 10.0
#: The bus daemon.
DBUS = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
#: Most file descriptors in one message; the portal sends one.
_MOST_FILES = 16
_ORIGIN = (HeaderFields.path, HeaderFields.interface, HeaderFields.member)

#: Receives the body of a message, on the receiving thread. It must not call the bus from there.
Listener = Callable[[tuple[Any, ...]], object]


class BusError(Exception):
    """No bus is available, or the called program returned an error or did not reply in time."""


class Bus:
    """A connection to the session bus of an environment, usable from all threads. Raises BusError.

    `within` is the total time in seconds for everything done with this connection, `seconds` the timeout of each call.
    """

    def __init__(self, environ: Mapping[str, str], within: float = math.inf, *, seconds: float = TIMEOUT) -> None:
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
        left = min(self._seconds if seconds is None else seconds, self._until - time.monotonic())
        serial, future = next(self._serials), Future[Message]()
        try:
            data = message.serialise(serial=serial, fds=array.array("i"))
        except Exception as error:  # jeepney raises various exceptions if a body does not match its signature
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
        reply_body: tuple[Any, ...] = reply.body or ()
        if reply.header.message_type is MessageType.error:
            raise BusError(" ".join(map(str, reply_body)) or str(reply.header.fields.get(HeaderFields.error_name, "")))
        return reply_body

    def property(self, address: DBusAddress, name: str, *, start: bool = False) -> Any:
        properties = address.with_interface("org.freedesktop.DBus.Properties")
        return self.call(properties, "Get", "ss", address.interface, name, start=start)[0][1]

    def owned(self, name: str, *, start: bool = False) -> bool:
        """Return whether a program owns a name. With `start`, first start it if it is activatable. Raises BusError."""
        if start:
            with suppress(BusError):
                self.call(DBUS, "StartServiceByName", "su", name, 0)
        return bool(self.call(DBUS, "NameHasOwner", "s", name)[0])

    def listen(
        self, sender: str, address: DBusAddress, member: str, listener: Listener, *, broadcast: bool = False
    ) -> None:
        """Call `listener` for each such signal from now on. Raises BusError.

        Any program can send us any signal directly, past all match rules. So only signals from the present owner of
        `sender` count. With `broadcast`, which needs no owner yet, only signals without a destination count.
        """
        owner = "" if broadcast else self.call(DBUS, "GetNameOwner", "s", sender)[0]
        path, interface = str(address.object_path), str(address.interface)
        self._listeners.append((MessageType.signal, owner, (path, interface, member), listener))
        rule = f"type='signal',sender='{owner or sender}',path='{path}',interface='{interface}',member='{member}'"
        self.call(DBUS, "AddMatch", "s", rule)

    def serve(self, sender: str, address: DBusAddress, member: str, listener: Listener) -> None:
        """Call `listener` when the owner of `sender` calls a method of ours; no reply is sent. Raises BusError."""
        (owner,) = self.call(DBUS, "GetNameOwner", "s", sender)
        origin = (str(address.object_path), str(address.interface), member)
        self._listeners.append((MessageType.method_call, owner, origin, listener))

    def on_lost(self, name: str, lost: Callable[[], object]) -> None:
        """Call `lost` when a name loses its owner, or when the bus connection is lost. Raises BusError."""
        self._on_lost.append(lost)

        def changed(body: tuple[Any, ...]) -> None:
            if body[:1] == (name,) and not body[2]:
                lost()

        self.listen(str(DBUS.bus_name), DBUS, "NameOwnerChanged", changed)

    def sync(self) -> None:
        """Wait until all signals that were sent before this call have reached their listeners. Raises BusError."""
        self.call(DBUS, "GetId")

    def close(self) -> None:
        """Disconnect, which ends everything that belongs to this connection. Never raises; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends the thread, which may be waiting for a message
        if threading.current_thread() is not self._thread:
            self._thread.join(10)  # a listener may hang in a dead display
        self._socket.close()

    def __enter__(self) -> "Bus":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self) -> None:
        parser = Parser()
        with suppress(Exception):  # jeepney raises a dozen exception types for malformed messages
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
            with suppress(Exception):  # timed out just now
                future.set_result(message)
            return
        origin = tuple(fields.get(one) for one in _ORIGIN)
        is_broadcast = HeaderFields.destination not in fields
        for wanted, owner, wanted_origin, listener in list(self._listeners):
            from_owner = owner == fields.get(HeaderFields.sender) if owner else is_broadcast
            if wanted is kind and from_owner and wanted_origin == origin:
                with suppress(Exception):  # a failing listener must not stop the others
                    listener(message.body or ())


class AwaitedSignal:
    """A signal to wait for. Create it before the call that causes the signal. Raises BusError: the bus is gone."""

    def __init__(self, bus: Bus, sender: str, address: DBusAddress, member: str) -> None:
        self._bodies: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        bus.listen(sender, address, member, self._bodies.put)

    def wait(self, seconds: float) -> tuple[Any, ...] | None:
        """Return the signal's body; None if it does not come in time."""
        with suppress(queue.Empty):
            return self._bodies.get(timeout=seconds)
        return None


def age(environ: Mapping[str, str], seconds: float = 0.5) -> float:
    """Return the seconds since this session bus started; no desktop on it is older. Infinite if unknown."""
    try:
        with Bus(environ, seconds) as bus:
            (pid,) = bus.call(DBUS, "GetConnectionUnixProcessID", "s", DBUS.bus_name)
        began: float = psutil.Process(host_pid(pid, environ)).create_time()
    except (BusError, psutil.Error, ValueError, TypeError):
        return math.inf
    return max(0.0, time.time() - began)
