"""Hands data over through pipes to other programs, and takes it from them: none of them may hold us up."""

import os
import select
import time

from agent.desktop.protocol.clipboard import HungError

#: Seconds in which who holds it has to hand it over, and in which who wants it has to take the next piece.
_PATIENCE = 0.5
#: No more bytes than this are read.
_MOST = 64_000_000
#: What is read or written at a time, in bytes: as much as a pipe holds.
_PIECE = 1 << 16


def read_all(file: int) -> bytes:
    """What comes out of a pipe. Raises HungError: nothing does, or too much."""
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
    """Put data into a pipe, and close it; who takes none of it for a while, or goes away, does not get the rest."""
    try:
        os.set_blocking(file, False)
        rest = memoryview(data)
        while rest and select.select([], [file], [], _PATIENCE)[1]:
            rest = rest[os.write(file, rest[:_PIECE]) :]
    except OSError:  # it wants no more
        return
    finally:
        os.close(file)
