"""Sockets on which a D-Bus has let us in."""

import socket
import time


def open_bus_socket(path: str, seconds: float, *, files: bool = False) -> socket.socket:
    """A socket of a bus, blocking, on which messages can be sent.

    The bus is told no user: it reads from the kernel who we are, by the number that we have where the bus is. Root is
    somebody else in a sandbox whose compositor refuses root, and a bus refuses who calls himself by another number.

    Args:
        path: of the bus's socket; a zero as its first character for one without a file.
        seconds: for all of it.
        files: whether messages can bring files.

    Raises:
        OSError: there is no bus, it does not let us in, or not in time.
    """
    deadline = time.monotonic() + seconds
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        opened.settimeout(seconds)
        opened.connect(path)
        opened.sendall(b"\0AUTH EXTERNAL\r\n")
        _expect(opened, b"DATA", deadline)
        opened.sendall(b"DATA\r\n")
        _expect(opened, b"OK", deadline)
        if files:
            opened.sendall(b"NEGOTIATE_UNIX_FD\r\n")
            _expect(opened, b"AGREE_UNIX_FD", deadline)
        opened.sendall(b"BEGIN\r\n")
    except BaseException:
        opened.close()
        raise
    opened.settimeout(None)
    return opened


def _expect(opened: socket.socket, word: bytes, deadline: float) -> None:
    """Read a line that begins with a word. Raises OSError: it is another one, or late."""
    line = b""
    while not line.endswith(b"\r\n"):
        left = deadline - time.monotonic()
        if left <= 0 or len(line) > 1000:
            raise TimeoutError("the bus did not answer in time")
        opened.settimeout(left)
        more = opened.recv(1)  # nothing of what follows is taken
        if not more:
            raise ConnectionResetError("the bus hung up")
        line += more
    if line.split(maxsplit=1)[:1] != [word]:
        raise PermissionError(f"the bus does not let us in: {line[:100]!r}")
