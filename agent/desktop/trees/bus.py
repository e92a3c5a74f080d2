"""A connection to the accessibility bus for many concurrent calls, which does not wait for hung applications.

A question is a generator that yields the calls it needs next and is sent their replies. All questions run concurrently,
so that a hung application delays only the questions about it. Used from one thread.

Messages are encoded and decoded here, as far as thousands of calls per second need it: calls are joined from cached
parts, only the needed fields of a reply's header are read, and jeepney's types handle the bodies. A call takes 16 us of
CPU time; with dbus-fast 5.2 it took 31 us (5,000 calls of ListNames on a private bus, 192 in flight; 2026-11-23).
"""

import re
import select
import struct
import time
from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

from jeepney.bus import get_connectable_addresses
from jeepney.low_level import Endianness, parse_signature

from agent.desktop.bus_socket import open_bus_socket
from foundation.errors import EnvironmentLacksError


class Call(NamedTuple):
    """One method call. `returns` is the only signature that its reply may have."""

    destination: str
    path: str
    interface: str
    member: str
    returns: str
    signature: str = ""
    body: tuple[Any, ...] = ()


class Array(NamedTuple):
    """An array in a call's body; hashable, unlike a list, so that encoded bodies can be cached."""

    items: tuple[Any, ...]


T = TypeVar("T")
#: The body of a reply; None if no reply came, or one with another signature than expected.
Body: TypeAlias = "tuple[Any, ...] | None"
#: Yields calls, is sent their replies in order, and returns its result.
Question: TypeAlias = Generator[Sequence[Call], list[Body], T]

#: Name, path and interface of the bus itself.
DBUS = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
#: Calls in flight per application. With 64, both sides wait for each other more often.
_WIDTH = 192
#: Bytes. Longer replies are skipped: the largest reply of a real application has 0.2 MB.
_LONGEST = 4_000_000
_PATH, _INTERFACE, _MEMBER, _REPLY_SERIAL, _DESTINATION, _SIGNATURE = 1, 2, 3, 5, 6, 8  # D-Bus specification
_NAME = re.compile(r"(:[\w-]+(\.[\w-]+)+|[A-Za-z_-][\w-]*(\.[A-Za-z_-][\w-]*)+)\Z", re.ASCII)
_PATH_FORM = re.compile(r"/(\w+(/\w+)*)?\Z", re.ASCII)
_CALL, _RETURN, _ERROR = 1, 2, 3
#: Bytes at the beginning of a message from which its length can be computed.
HEAD = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Timeouts in seconds."""

    silence: float = 0.3  # without any reply from an application; a healthy one takes 1 to 25 ms
    total: float = 0.4  # for all questions, once an application has been silent
    working: float = 1.5  # for all questions while all applications answer, as on a busy machine
    dropped: float = 2.0  # pause before a silent application, which may be hung or just busy, is called again


@dataclass(slots=True)
class _Asked:
    """A question that waits for replies."""

    question: Question[Any]
    replies: list[Body] = field(default_factory=list)
    waiting: int = 0
    result: Any = None


@dataclass(slots=True)
class _Peer:
    """The queued and pending calls of one application."""

    queue: "deque[tuple[_Asked, int, Call]]" = field(default_factory=deque)
    flying: int = 0
    heard: float = 0.0


def together(*questions: Question[Any]) -> Question[list[Any]]:
    """Combine several questions into one that runs them concurrently and returns their results in order."""
    results: list[Any] = [None] * len(questions)
    wanted: dict[int, Sequence[Call]] = {}

    def advance(index: int, replies: list[Body] | None) -> None:
        try:
            wanted[index] = next(questions[index]) if replies is None else questions[index].send(replies)
        except StopIteration as end:
            results[index] = end.value

    for index in range(len(questions)):
        advance(index, None)
    while wanted:
        batch, wanted = wanted, {}
        replies = yield [call for calls in batch.values() for call in calls]
        begin = 0
        for index, calls in batch.items():
            advance(index, replies[begin : begin + len(calls)])
            begin += len(calls)
    return results


#: Seconds for a connection. On a busy machine, a bus answers late, and without a connection a run sees no elements.
_CONNECTING = 5.0


class Bus:
    """A connection to an accessibility bus.

    Raises EnvironmentLacksError: no bus answers at this address.
    """

    def __init__(self, address: str, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.silent: dict[str, float] = {}  # application that does not answer -> the time until which it is not called
        self.unanswered = False  # whether the last questions ended before all replies came
        self._patient = False  # whether hung applications are waited for, too
        self._serial = 0
        self._flying: dict[int, tuple[_Asked, int, Call]] = {}
        self._peers: dict[str, _Peer] = defaultdict(_Peer)
        self._out = bytearray()
        self._in = bytearray()
        self._skip = 0  # bytes still to be skipped of a reply that is too long
        try:
            self._socket = open_bus_socket(next(iter(get_connectable_addresses(address))), _CONNECTING)
        except Exception as error:  # OSError, TimeoutError, ValueError, RuntimeError
            raise EnvironmentLacksError(
                f"The bus of the accessibility trees takes no connection ({error!r}).", "Is at-spi2-core installed?"
            ) from error
        self._socket.setblocking(False)
        if self.call(Call(*DBUS, "Hello", "s")) is None:
            self.close()
            raise EnvironmentLacksError("The accessibility bus does not answer.", "Log out and in again.")

    def call(self, call: Call) -> Body:
        """Return the reply to one call."""

        def question() -> Question[Body]:
            [reply] = yield [call]
            return reply

        return self.ask(question())

    def ask(self, question: Question[T]) -> T | None:
        """Return the result of one question; None if it did not finish in time."""
        found: T | None = self.ask_all([question])[0]
        return found

    def ask_all(self, questions: Iterable[Question[Any]], seconds: float | None = None) -> list[Any]:
        """Return the results of the questions in order; None for those that did not finish in time.

        `seconds` is the time for all of them, even if an application is silent. Raises EnvironmentLacksError.
        """
        now = began = time.monotonic()
        until = began + (self.limits.working if seconds is None else seconds)
        self._patient = seconds is not None
        self.silent = {peer: then for peer, then in self.silent.items() if then > now}
        asked = [_Asked(question) for question in questions]
        try:
            for one in asked:
                self._advance(one, first=True)
            while self._peers and (now := time.monotonic()) < until:
                self._send()
                self._wait(until - now)
                if not self._patient and self._drop_silent():
                    until = min(until, began + self.limits.total)
            self.unanswered = bool(self._peers)
            if not self._patient:  # those that are still not done are hung or will never finish
                for name in self._peers:
                    self._leave_alone(name)
        except OSError as error:
            raise EnvironmentLacksError("The accessibility bus went away.", "Is the desktop still there?") from error
        finally:
            self._flying.clear()
            self._peers.clear()
        for one in asked:
            one.question.close()
        return [one.result for one in asked]

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()

    def _advance(self, asked: _Asked, *, first: bool = False) -> None:
        while True:
            try:
                calls = next(asked.question) if first else asked.question.send(asked.replies)
            except StopIteration as end:
                asked.result = end.value
                return
            first = False
            asked.replies = [None] * len(calls)
            asked.waiting = 0
            for index, call in enumerate(calls):
                if (self._patient or call.destination not in self.silent) and can_be_sent(call.destination, call.path):
                    peer = self._peers[call.destination]
                    peer.queue.append((asked, index, call))
                    asked.waiting += 1
            if asked.waiting:
                return

    def _send(self) -> None:
        for peer in self._peers.values():
            while peer.queue and peer.flying < _WIDTH:
                entry = peer.queue.popleft()
                self._serial = self._serial % 0xFFFFFFFF + 1
                self._flying[self._serial] = entry
                if not peer.flying:
                    peer.heard = time.monotonic()
                peer.flying += 1
                self._out += encode(entry[2], self._serial)
        if self._out:
            with suppress(BlockingIOError):
                sent = self._socket.send(self._out)
                del self._out[:sent]

    def _wait(self, seconds: float) -> None:
        """Wait until the socket is ready or a timeout expires, and process what arrived."""
        oldest = min((peer.heard for peer in self._peers.values() if peer.flying), default=0.0)
        patience = seconds if self._patient else oldest + self.limits.silence - time.monotonic()
        writing = [self._socket] if self._out else []
        readable, _, _ = select.select([self._socket], writing, [], max(0.0, min(seconds, patience)))
        if not readable:
            return
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionResetError
        self._take(data)

    def _take(self, data: bytes) -> None:
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self._in += data[skipped:]
        position = 0
        while len(self._in) - position >= HEAD:
            size = size_of(bytes(self._in[position : position + HEAD]))
            if size > _LONGEST:
                self._skip = max(0, size - (len(self._in) - position))
                position = min(len(self._in), position + size)
                continue
            if len(self._in) - position < size:
                break
            self._receive(bytes(self._in[position : position + size]))
            position += size
        del self._in[:position]

    def _receive(self, message: bytes) -> None:
        try:
            serial, signature, body = decode(message) or (0, None, ())
        except ValueError:
            return
        if serial not in self._flying:
            return
        asked, index, call = self._flying.pop(serial)
        peer = self._peers[call.destination]
        peer.flying -= 1
        peer.heard = time.monotonic()
        self._settle(asked, index, body if signature == call.returns else None)
        if not peer.flying and not peer.queue:
            self._peers.pop(call.destination, None)

    def _settle(self, asked: _Asked, index: int, body: Body) -> None:
        asked.replies[index] = body
        asked.waiting -= 1
        if not asked.waiting:
            self._advance(asked)

    def _leave_alone(self, name: str) -> None:
        self.silent[name] = time.monotonic() + self.limits.dropped

    def _drop_silent(self) -> bool:
        """Give up on applications that have been silent for too long. Return whether there were any."""
        before = len(self.silent)
        now = time.monotonic()
        for name, peer in list(self._peers.items()):
            if not peer.flying or now - peer.heard < self.limits.silence:
                continue
            self._leave_alone(name)
            del self._peers[name]
            lost = [(asked, index) for asked, index, _ in peer.queue]
            for serial, (asked, index, call) in list(self._flying.items()):
                if call.destination == name:
                    del self._flying[serial]
                    lost.append((asked, index))
            for asked, index in lost:
                self._settle(asked, index, None)
        return len(self.silent) > before


@lru_cache(maxsize=4096)
def can_be_sent(destination: str, path: str) -> bool:
    """Whether bus name and object path are valid. Applications choose them, and a bus disconnects on invalid ones."""
    return bool(_NAME.match(destination) and _PATH_FORM.match(path))


def encode(call: Call, serial: int) -> bytes:
    """Encode a call. Raises ValueError, TypeError or struct.error if the body does not match its signature."""
    body = _body(call.signature, call.body)
    fields = b""
    for number, kind, text in (
        (_DESTINATION, "s", call.destination), (_PATH, "o", call.path), (_INTERFACE, "s", call.interface),
        (_MEMBER, "s", call.member), (_SIGNATURE, "g", call.signature),
    ):  # fmt: skip
        fields += bytes(-len(fields) % 8) + _field(number, kind, text)
    head = struct.pack("<cBBBIII", b"l", _CALL, 0, 1, len(body), serial, len(fields))
    return head + fields + bytes(-len(fields) % 8) + body


def size_of(head: bytes) -> int:
    """Return the length in bytes of a message from its first `HEAD` bytes."""
    order = "<" if head[:1] == b"l" else ">"
    body, _, fields = struct.unpack_from(f"{order}III", head, 4)
    return HEAD + int(fields) + -int(fields) % 8 + int(body)


def decode(message: bytes) -> tuple[int, str | None, tuple[Any, ...]] | None:
    """Return the serial number of the call that a reply answers, its signature (None for an error) and its body.

    None for signals and other messages. Raises ValueError if the message is malformed.
    """
    if message[1] not in (_RETURN, _ERROR):
        return None
    order = Endianness.little if message[:1] == b"l" else Endianness.big
    code = order.struct_code()
    (length,) = struct.unpack_from(f"{code}I", message, 12)
    position, end = HEAD, HEAD + length
    serial, signature = 0, ""
    try:
        while position < end:
            position += -position % 8
            field, kind = message[position], message[position + 2]
            position += 4  # the field's number, and its signature: a length, one letter, a NUL
            if kind == 0x67:  # g
                text_end = position + 1 + message[position]
                if field == _SIGNATURE:
                    signature = message[position + 1 : text_end].decode("ascii")
                position = text_end + 1
            else:
                (number,) = struct.unpack_from(f"{code}I", message, position)
                position += 4
                if kind == 0x75:  # u
                    serial = number if field == _REPLY_SERIAL else serial
                else:
                    position += number + 1
        if message[1] == _ERROR:
            return serial, None, ()
        body = _type(signature).parse_data(message, end + -end % 8, order)[0] if signature else ()
    except Exception as error:  # jeepney's parsers raise any exception
        raise ValueError(f"no message that can be read: {error!r}") from error
    return serial, signature, body


@lru_cache(maxsize=4096)
def _field(number: int, kind: str, text: str) -> bytes:
    """Encode a header field."""
    data = text.encode()
    length = struct.pack("B", len(data)) if kind == "g" else struct.pack("<I", len(data))
    return bytes((number, 1)) + kind.encode() + b"\0" + length + data + b"\0"


@lru_cache(maxsize=4096)
def _body(signature: str, body: tuple[Any, ...]) -> bytes:
    return bytes(_type(signature).serialise(_thawed(body), 0, Endianness.little)) if signature else b""


@lru_cache(maxsize=64)
def _type(signature: str) -> Any:
    return parse_signature(list(f"({signature})"))


def _thawed(value: Any) -> Any:
    """Convert `Array`s to lists, which jeepney needs."""
    if isinstance(value, Array):
        return [_thawed(one) for one in value.items]
    return tuple(_thawed(one) for one in value) if isinstance(value, tuple) else value
