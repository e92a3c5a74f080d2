"""Frames of a PipeWire stream by GStreamer: also what lies in a graphics card's memory, and of any size.

GStreamer's library for Python belongs to the system's own Python, so it is used by a program of its own, which hands
the last frame over when it is asked (`gstreamer_process.py`).
"""

import os
import select
import struct
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.geometry import Size
from agent.desktop.portal.frames import FIRST, NoFramesError

if TYPE_CHECKING:
    from PIL.Image import Image

_PROGRAM = Path(__file__).with_name("gstreamer_process.py")
_PYTHONS = (sys.executable, "/usr/bin/python3")
#: Seconds for a frame that is there already.
_NEXT = 2.0
#: Of what it said, so many bytes are looked at for its last line.
_LAST_WORDS = 4096
HEAD = struct.Struct("=III")  # width, height, bytes of a line; all 0 for the frame that was handed over last


class GStreamerFrames:
    """See `Frames`, and for the arguments `LibraryFrames`."""

    def __init__(self, connection: int, node: int, size: Size) -> None:  # noqa: ARG002 -- it is told by the stream
        self._last: Image | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 -- a pipe that nobody reads would fill up, and hang it
        why = "GStreamer's library for Python (gi) is missing"
        for python in dict.fromkeys(_PYTHONS):
            with suppress(OSError):
                self._process = subprocess.Popen(
                    [python, "-P", str(_PROGRAM), str(connection), str(node)], pass_fds=[connection],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, start_new_session=True,
                )  # fmt: skip
                try:
                    self._last = self._asked(FIRST)
                    return
                except NoFramesError:
                    why = self._end() or why
        self._said.close()
        raise NoFramesError(f"GStreamer: {why}")

    def latest(self) -> "Image":
        """See `Frames.latest`."""
        self._last = self._asked(_NEXT)
        return self._last

    def close(self) -> None:
        """See `Frames.close`."""
        self._end()
        self._said.close()

    def _asked(self, seconds: float) -> "Image":
        from PIL.Image import frombytes

        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), b"\n")
        except OSError as error:
            raise NoFramesError("GStreamer ended") from error
        width, height, stride = HEAD.unpack(self._read(HEAD.size, seconds))
        if not width:
            if self._last is None:
                raise NoFramesError("no frame came")
            return self._last
        return frombytes("RGB", (width, height), self._read(stride * height, seconds), "raw", "BGRX", stride, 1)

    def _read(self, length: int, seconds: float) -> bytes:
        assert self._process.stdout is not None
        source, data = self._process.stdout.fileno(), bytearray()
        while len(data) < length:
            if not select.select([source], [], [], seconds)[0]:
                raise NoFramesError("GStreamer hangs")
            more = os.read(source, length - len(data))
            if not more:
                raise NoFramesError("GStreamer ended")
            data += more
        return bytes(data)

    def _end(self) -> str:
        """End it; its last words."""
        self._process.kill()
        self._process.communicate()
        if self._said.closed:
            return ""
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _LAST_WORDS))
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:200] if lines else ""
