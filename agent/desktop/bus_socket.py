"""Connects to a D-Bus socket and authenticates."""

import socket
import time


def open_bus_socket(path: str, seconds: float, *, files: bool = False) -> socket.socket:
    """Return an authenticated, blocking socket for D-Bus messages, with file descriptors if `files`. Raises OSError.

    Authenticates with EXTERNAL, but states no uid: in a sandbox's user namespace, ours may differ from the uid in the
    socket credentials, and a bus rejects a client whose stated uid differs from these.
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
    """Read a line and check its first word. Raises OSError for another word, or on timeout."""
    line = b""
    while not line.endswith(b"\r\n"):
        left = deadline - time.monotonic()
        if left <= 0 or len(line) > 1000:
            raise TimeoutError("the bus did not answer in time")
        opened.settimeout(left)
        more = opened.recv(1)  # byte by byte: what follows the line must stay in the socket
        if not more:
            raise ConnectionResetError("the bus hung up")
        line += more
    if line.split(maxsplit=1)[:1] != [word]:
        raise PermissionError(f"the bus does not let us in: {line[:100]!r}")
