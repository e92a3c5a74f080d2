"""What sway tells beside Wayland, on its own socket (sway-ipc(7)): its windows, and keys of our own."""

import json
import os
import select
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from foundation.errors import EnvironmentLacksError

RUN_COMMAND, SUBSCRIBE, GET_TREE = 0, 2, 4
_MAGIC = b"i3-ipc"
_HEADER = struct.Struct("=6sII")
#: Events have this bit.
_EVENT = 1 << 31
_PATIENCE = 3.0


def socket_of(environ: Mapping[str, str]) -> str:
    """Where the sway of an environment listens; "" for none."""
    return environ.get("SWAYSOCK", "")


class Sway:
    """A connection to sway, used from one thread. Raises EnvironmentLacksError where sway is gone."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_PATIENCE)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise _gone(error) from error

    def ask(self, kind: int, payload: str = "") -> Any:
        """The answer to one question. Not for a connection that has subscribed to something."""
        data = payload.encode()
        try:
            self._socket.sendall(_HEADER.pack(_MAGIC, len(data), kind) + data)
            return self._message()[1]
        except (OSError, ValueError) as error:
            raise _gone(error) from error

    def event(self, seconds: float) -> Any:
        """The next event within some seconds; None where none comes."""
        if not select.select([self._socket], [], [], seconds)[0]:
            return None
        try:
            kind, body = self._message()
        except (OSError, ValueError) as error:
            raise _gone(error) from error
        return body if kind & _EVENT else None

    def close(self) -> None:
        """Hang up; never raises."""
        self._socket.close()

    def _message(self) -> tuple[int, Any]:
        magic, length, kind = _HEADER.unpack(self._exactly(_HEADER.size))
        if magic != _MAGIC:
            raise ValueError("not sway")
        return kind, json.loads(self._exactly(length))

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            more = self._socket.recv(length - len(data))
            if not more:
                raise ConnectionResetError("sway hung up")
            data += more
        return data


def open_sway() -> Sway | None:
    """A connection to the sway of this process's environment; None where there is none."""
    path = socket_of(os.environ)
    with suppress(EnvironmentLacksError):
        return Sway(path) if path else None
    return None


def _gone(error: Exception) -> EnvironmentLacksError:
    return EnvironmentLacksError(f"sway went away ({error}).", "Is the session still running?")
