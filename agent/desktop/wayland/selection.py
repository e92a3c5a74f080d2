"""The clipboard on Wayland, with any of its protocols, as other clients offer it.

No other client can block us: every transfer has a timeout.
"""

import os
import select
import time
from contextlib import closing, suppress
from functools import cached_property

from agent.desktop.protocol.clipboard import HungError
from agent.desktop.wayland.wire import Arguments, Connection
from foundation.errors import EnvironmentLacksError

#: Timeout in seconds for the owner to deliver all data, and for a reader to accept the next piece.
_TIMEOUT = 0.5
#: Most bytes to read.
_MOST = 64_000_000
#: Bytes to read or write at a time: the capacity of a pipe.
_PIECE = 1 << 16


#: Opcodes of the data-control protocols: two requests of an offer, and an event of the device.
_RECEIVE, _DESTROY_OFFER, _SELECTION = 0, 1, 1


class Selection:
    """The clipboard of a seat. `manager` is a data-control manager."""

    def __init__(self, connection: Connection, manager: int, seat: int) -> None:
        self._connection = connection
        self._offers: dict[int, list[str]] = {}  # MIME types, by the offer's object ID
        self._offer = 0
        connection.request(manager, 1, "no", connection.new(self._of_device), seat)

    def kinds(self) -> list[str]:
        """Return the MIME types of the content, from the events received so far."""
        return self._offers.get(self._offer, [])

    def read(self, kind: str) -> bytes:
        """Return the content as one of its MIME types. Raises HungError: the owner does not deliver it."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            try:
                self._connection.request(self._offer, _RECEIVE, "s", kind, files=[writing])
            except EnvironmentLacksError as error:
                raise HungError from error
            finally:
                os.close(writing)
            return read_all(reading)
        finally:
            os.close(reading)

    def _of_device(self, opcode: int, arguments: Arguments) -> None:
        if opcode == 0:
            offer = arguments.number()
            kinds = self._offers[offer] = []
            self._connection.hear(offer, lambda which, values: kinds.append(values.text()) if which == 0 else None)
        elif opcode == _SELECTION:
            self._offer = arguments.number()
            for old in [one for one in self._offers if one != self._offer]:
                del self._offers[old]
                self._connection.request(old, _DESTROY_OFFER)


def read_all(file: int) -> bytes:
    """Read a pipe to its end. Raises HungError: it takes too long, or is too much data."""
    data = bytearray()
    deadline = time.monotonic() + _TIMEOUT
    while len(data) <= _MOST:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([file], [], [], left)[0]:
            raise HungError
        more = os.read(file, _PIECE)
        if not more:
            return bytes(data)
        data += more
    raise HungError


def write_all(file: int, data: bytes) -> None:
    """Write data to a pipe and close it. A reader that stalls or goes away does not get the rest."""
    try:
        os.set_blocking(file, False)
        rest = memoryview(data)
        while rest and select.select([], [file], [], _TIMEOUT)[1]:
            rest = rest[os.write(file, rest[:_PIECE]) :]
    except OSError:  # the reader went away
        return
    finally:
        os.close(file)


MANAGERS = ("ext_data_control_manager_v1", "zwlr_data_control_manager_v1")


class WlrootsClipboard:
    """A `Clipboard`. Uses its own connection to the compositor's socket, opened on first use."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: Connection | None = None
        self._selection: Selection | None = None

    @cached_property
    def lacks(self) -> str:
        with suppress(EnvironmentLacksError), closing(Connection(self._path)) as connection:
            return "" if any(map(connection.has, MANAGERS)) else "this desktop lets no program read it."
        return ""

    def kinds(self) -> list[str]:
        return self._now().kinds()

    def read(self, kind: str) -> bytes | None:
        selection = self._now()
        return selection.read(kind) if kind in selection.kinds() else None

    def close(self) -> None:
        """Disconnect. Never raises."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._selection = None

    def _now(self) -> Selection:
        """Return the present selection. Raises HungError."""
        try:
            connection = self._connection = self._connection or Connection(self._path)
            if self._selection is None:
                known = next((one for one in MANAGERS if connection.has(one)), MANAGERS[-1])
                manager, seat = connection.bind(known, 1), connection.bind("wl_seat", 1)
                self._selection = Selection(connection, manager, seat)
            connection.roundtrip()
        except EnvironmentLacksError as error:
            self.close()
            raise HungError from error
        return self._selection
