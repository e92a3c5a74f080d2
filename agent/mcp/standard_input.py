"""Lets a signal end the MCP server on standard input and output."""

import os
import signal
import threading
from contextlib import suppress
from types import FrameType


class StandardInput:
    """Passes standard input on through a pipe, which a signal can end.

    A thread of the SDK waits in a read of standard input, and nothing interrupts that read. The end of the pipe ends
    the server in the same way as a host that closes its side.
    """

    def __init__(self) -> None:
        self._source, (reading, writing) = os.dup(0), os.pipe()
        os.dup2(reading, 0)
        os.close(reading)
        self._pipe = os.fdopen(writing, "wb", buffering=0)
        self.status = 0  # the exit status, if a signal ended it

    def __enter__(self) -> "StandardInput":
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.end)
        threading.Thread(target=self._pass_on, name="standard input", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self, number: int = 0, _: FrameType | None = None) -> None:
        """End standard input, for the signal of this number."""
        self.status = self.status or (128 + number if number else 0)
        with suppress(OSError):
            self._pipe.close()

    def _pass_on(self) -> None:
        with suppress(OSError, ValueError):  # it was ended meanwhile
            while data := os.read(self._source, 65536):
                while data:
                    data = data[self._pipe.write(data) or 0 :]
        self.end()
