"""The clipboard on Wayland, with any of its protocols: offers of other clients, and our own source.

No other client can block us: every transfer has a timeout.
"""

import os
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass

from agent.desktop.protocol.clipboard import HungError
from agent.desktop.wayland.wire import Arguments, Connection
from foundation.errors import EnvironmentLacksError

#: Timeout in seconds for the owner to deliver all data, and for a reader to accept the next piece.
_PATIENCE = 0.5
#: Most bytes to read.
_MOST = 64_000_000
#: Bytes to read or write at a time: the capacity of a pipe.
_PIECE = 1 << 16
_SEND, _CANCELLED = 0, 1  # events of a data-control source


@dataclass(frozen=True, slots=True)
class Opcodes:
    """The opcodes in which the protocols differ: two requests of an offer, and an event of the device."""

    receive: int
    destroy_offer: int
    selection: int


#: wl_data_device is for clients with a focused window, data control for clients without a window.
DATA_DEVICE = Opcodes(receive=1, destroy_offer=2, selection=5)
DATA_CONTROL = Opcodes(receive=0, destroy_offer=1, selection=1)


class Selection:
    """The clipboard of a seat.

    Args:
        connection: connection to the compositor.
        manager: object ID of wl_data_device_manager or of a data-control manager.
        seat: object ID of the seat.
        opcodes: the opcodes of that protocol.
    """

    def __init__(self, connection: Connection, manager: int, seat: int, opcodes: Opcodes) -> None:
        self._connection, self._manager, self._opcodes = connection, manager, opcodes
        self._offers: dict[int, list[str]] = {}  # MIME types, by the offer's object ID
        self._offer = 0
        self.given: Mapping[str, bytes] = {}  # what we offer, while we own the clipboard
        self._device = connection.new(self._of_device)
        connection.request(manager, 1, "no", self._device, seat)

    def kinds(self) -> list[str]:
        """Return the MIME types of the content, from the events received so far."""
        return list(self.given) or self._offers.get(self._offer, [])

    def read(self, kind: str) -> bytes:
        """Return the content as one of its MIME types. Raises HungError: the owner does not deliver it."""
        if kind in self.given:  # the request would come back to us
            return self.given[kind]
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            try:
                self._connection.request(self._offer, self._opcodes.receive, "s", kind, files=[writing])
            except EnvironmentLacksError as error:
                raise HungError from error
            finally:
                os.close(writing)
            return read_all(reading)
        finally:
            os.close(reading)

    def give(self, kinds: Mapping[str, bytes]) -> None:
        """Own the clipboard with this content. Only with data control."""
        connection, source = self._connection, self._connection.new()
        connection.hear(source, lambda opcode, arguments: self._of_source(source, kinds, opcode, arguments))
        connection.request(self._manager, 0, "n", source)
        for kind in kinds:
            connection.request(source, 0, "s", kind)
        self.given = kinds
        connection.request(self._device, 0, "o", source)

    def _of_device(self, opcode: int, arguments: Arguments) -> None:
        if opcode == 0:
            offer = arguments.number()
            kinds = self._offers[offer] = []
            self._connection.hear(offer, lambda which, told: kinds.append(told.text()) if which == 0 else None)
        elif opcode == self._opcodes.selection:
            self._offer = arguments.number()
            for old in [one for one in self._offers if one != self._offer]:
                del self._offers[old]
                self._connection.request(old, self._opcodes.destroy_offer)

    def _of_source(self, source: int, kinds: Mapping[str, bytes], opcode: int, arguments: Arguments) -> None:
        if opcode == _SEND:
            kind, file = arguments.text(), arguments.file()
            write_all(file, kinds.get(kind, b""))
        elif opcode == _CANCELLED:
            self._connection.request(source, 1)
            if self.given is kinds:
                self.given = {}


def read_all(file: int) -> bytes:
    """Read a pipe to its end. Raises HungError: it takes too long, or is too much data."""
    data = bytearray()
    deadline = time.monotonic() + _PATIENCE
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
        while rest and select.select([], [file], [], _PATIENCE)[1]:
            rest = rest[os.write(file, rest[:_PIECE]) :]
    except OSError:  # the reader went away
        return
    finally:
        os.close(file)
