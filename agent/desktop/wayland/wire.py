"""A client for Wayland's wire protocol in pure Python: messages, file descriptors and the registry.

pywayland 0.4.19 was tried instead (2026-11-23). It has wheels for x86-64 only, so pip would need a compiler and
libwayland's headers on ARM (DGX Spark) and on musl. It takes 65 to 115 ms to import and lacks seven of the protocols
used here. It prints handlers' exceptions and protocol errors to standard error, which disturbs the terminal interface.
Its roundtrip waits forever on a compositor that hangs.

A message is the object ID, then size and opcode in one word, then the arguments, in native byte order and in words of
four bytes (the Wayland protocol, chapter "Wire format"). Opcodes count in the order of a protocol's XML file.
"""

import mmap
import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from foundation.errors import EnvironmentLacksError

#: Timeout in seconds for a reply; a compositor normally replies within one frame.
_TIMEOUT = 5.0
_DISPLAY = 1  # wl_display has this number in every connection
_SYNC, _GET_REGISTRY, _BIND = 0, 1, 0
_ERROR, _DELETE_ID = 0, 1
_HEADER = struct.Struct("=IHH")
#: Most file descriptors in one message.
_MOST_FILES = 28


class Arguments:
    """Reads the arguments of an event one after the other. Raises EnvironmentLacksError: an argument is missing."""

    def __init__(self, data: bytes, files: "deque[int]") -> None:
        self._data = data
        self._at = 0
        self._files = files

    def number(self) -> int:
        """Return a `uint` or an object ID."""
        return int(self._word("=I"))

    def signed(self) -> int:
        """Return an `int`."""
        return int(self._word("=i"))

    def data(self) -> bytes:
        """Return an `array`."""
        length = self.number()
        found = self._data[self._at : self._at + length]
        if len(found) < length:
            raise _nonsense()
        self._at += length + -length % 4
        return found

    def text(self) -> str:
        """Return a `string`, without its terminating zero byte."""
        return self.data()[:-1].decode("utf-8", "replace")

    def words(self) -> list[int]:
        """Return the rest as `uint`s."""
        return [self.number() for _ in range((len(self._data) - self._at) // 4)]

    def file(self) -> int:
        """Return a file descriptor; the caller closes it."""
        if not self._files:
            raise _nonsense()
        return self._files.popleft()

    def _word(self, kind: str) -> int:
        if len(self._data) < self._at + 4:
            raise _nonsense()
        (word,) = struct.unpack_from(kind, self._data, self._at)
        self._at += 4
        return int(word)


#: Receives the opcode and the arguments of an event.
Handler: TypeAlias = Callable[[int, Arguments], None]


def pack(signature: str, arguments: Sequence[int | float | str]) -> bytes:
    """Serialize the arguments of a request. Signature: u uint, o object, n new object, i int, f fixed, s string."""
    found = b""
    for kind, value in zip(signature, arguments, strict=True):
        if isinstance(value, str):
            text = value.encode() + b"\0"
            found += struct.pack("=I", len(text)) + text + b"\0" * (-len(text) % 4)
        elif kind == "f":
            found += struct.pack("=i", round(value * 256))
        else:
            found += struct.pack("=i" if kind == "i" else "=I", int(value))
    return found


def socket_of(environ: Mapping[str, str]) -> str:
    """Return the path of an environment's compositor socket; "" if the environment names none."""
    name = environ.get("WAYLAND_DISPLAY", "")
    return str(Path(environ.get("XDG_RUNTIME_DIR") or "/nowhere", name)) if name else ""


class Connection:
    """A connection to a compositor's socket, used from one thread.

    Every method but `close` raises EnvironmentLacksError if the compositor is gone, hangs, or reports a protocol error.
    """

    def __init__(self, path: str) -> None:
        self.globals: dict[str, list[tuple[int, int]]] = {}  # by interface: names and versions, in the order announced
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_TIMEOUT)  # also limits sending to a compositor that no longer reads
        self._handlers: dict[int, Handler | None] = {_DISPLAY: self._of_display}
        self._free: list[int] = []
        self._last = _DISPLAY
        self._received = b""
        self._files: deque[int] = deque()
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise EnvironmentLacksError(
                f"The Wayland compositor cannot be reached at {path!r} ({error.strerror or error}).",
                "Is it still running? --sandbox brings a desktop of its own.",
            ) from error
        try:
            self._registry = self.new(self._of_registry)
            self.request(_DISPLAY, _GET_REGISTRY, "n", self._registry)
            self.roundtrip()
        except BaseException:
            self.close()
            raise

    def new(self, handler: Handler | None = None) -> int:
        """Allocate the ID of a new object whose events go to `handler`."""
        if self._free:
            number = self._free.pop()
        else:
            self._last += 1
            number = self._last
        self._handlers[number] = handler
        return number

    def hear(self, number: int, handler: Handler) -> None:
        """Send the events of an object that the compositor created to `handler`."""
        self._handlers[number] = handler

    def request(
        self, target: int, opcode: int, signature: str = "", *arguments: int | float | str, files: Sequence[int] = ()
    ) -> None:
        """Send a request; see `pack`. File descriptors are in the order of the arguments that they stand for."""
        body = pack(signature, arguments)
        message = _HEADER.pack(target, opcode, len(body) + _HEADER.size) + body
        try:
            sent = socket.send_fds(self._socket, [message], files) if files else 0
            self._socket.sendall(message[sent:])
        except OSError as error:
            with suppress(EnvironmentLacksError):  # an error sent before the disconnect is more precise
                self.pump(0)
            raise _gone() from error

    def has(self, interface: str) -> bool:
        """Whether the compositor offers an interface."""
        return interface in self.globals

    def bind(self, interface: str, version: int, handler: Handler | None = None, which: int = 0) -> int:
        """Bind a global with at most this version and return the object ID. Raises EnvironmentLacksError."""
        offered = self.globals.get(interface, [])
        if which >= len(offered):
            raise EnvironmentLacksError(f"This compositor does not offer {interface}.", "Is another one installed?")
        name, newest = offered[which]
        number = self.new(handler)
        self.request(self._registry, _BIND, "usun", name, interface, min(version, newest), number)
        return number

    def roundtrip(self) -> None:
        """Wait until all earlier requests have been processed."""
        done: list[int] = []
        number = self.new(lambda *_: done.append(1))
        self.request(_DISPLAY, _SYNC, "n", number)
        self.wait(lambda: bool(done))

    def wait(self, true: Callable[[], bool], seconds: float = _TIMEOUT) -> None:
        """Process events until a condition is true."""
        deadline = time.monotonic() + seconds
        while not true():
            left = deadline - time.monotonic()
            if left <= 0:
                raise EnvironmentLacksError("The Wayland compositor does not answer.", "Is the machine very busy?")
            self.pump(left)

    def pump(self, seconds: float | None) -> bool:
        """Process the events that arrive within some seconds. Return whether any came. None waits without a timeout."""
        if not select.select([self._socket], [], [], seconds)[0]:
            return False
        try:
            data, files, _, _ = socket.recv_fds(self._socket, 65536, _MOST_FILES)
        except OSError as error:
            raise _gone() from error
        if not data:
            raise _gone()
        self._files += files
        self._received += data
        while len(self._received) >= _HEADER.size:
            target, opcode, length = _HEADER.unpack_from(self._received)
            if length < _HEADER.size:  # otherwise the loop would never advance
                raise _nonsense()
            if len(self._received) < length:
                break
            body, self._received = self._received[_HEADER.size : length], self._received[length:]
            handler = self._handlers.get(target)
            if handler is not None:
                handler(opcode, Arguments(body, self._files))
        return True

    def close(self) -> None:
        """Disconnect: the compositor releases and removes everything made here. Never raises."""
        self._socket.close()
        while self._files:
            os.close(self._files.popleft())

    def _of_display(self, opcode: int, arguments: Arguments) -> None:
        if opcode == _ERROR:
            target, code, words = arguments.number(), arguments.number(), arguments.text()
            raise EnvironmentLacksError(f"The Wayland compositor refused (object {target}, {code}): {words}.")
        if opcode == _DELETE_ID:
            number = arguments.number()
            self._handlers.pop(number, None)
            self._free.append(number)

    def _of_registry(self, opcode: int, arguments: Arguments) -> None:
        name = arguments.number()
        if opcode == 0:
            self.globals.setdefault(arguments.text(), []).append((name, arguments.number()))
            return
        for offered in self.globals.values():
            offered[:] = [one for one in offered if one[0] != name]


def create_buffer(
    connection: Connection, shared: int, size: tuple[int, int], stride: int, kind: int
) -> tuple[int, mmap.mmap]:
    """Create a wl_buffer in a wl_shm (`shared`) and return its object ID and its memory.

    `stride` is in bytes per line; `kind` is a wl_shm format.
    """
    length = stride * size[1]
    file = os.memfd_create("mai-agent", os.MFD_CLOEXEC)
    try:
        os.ftruncate(file, length)
        pool, buffer = connection.new(), connection.new()
        connection.request(shared, 0, "ni", pool, length, files=[file])
        connection.request(pool, 0, "niiiiu", buffer, 0, *size, stride, kind)
        connection.request(pool, 1)
        return buffer, mmap.mmap(file, length)
    finally:
        os.close(file)


def _gone() -> EnvironmentLacksError:
    return EnvironmentLacksError("The Wayland compositor went away.", "Is the session still running?")


def _nonsense() -> EnvironmentLacksError:
    return EnvironmentLacksError("The Wayland compositor sent an invalid message.", "Is another one installed?")
