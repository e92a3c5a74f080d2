"""Reads what another program hands over through a pipe."""

import os
import select
import time

from agent.desktop.clipboard_watch import HungError

#: Seconds in which who holds it has to hand it over.
_PATIENCE = 0.5
#: No more bytes than this are read.
_MOST = 64_000_000


def read_all(file: int) -> bytes:
    """What comes out of a pipe. Raises HungError: nothing does, or too much."""
    data = b""
    deadline = time.monotonic() + _PATIENCE
    while len(data) <= _MOST:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([file], [], [], left)[0]:
            raise HungError
        more = os.read(file, 1 << 16)
        if not more:
            return data
        data += more
    raise HungError
