"""Captures the shared monitor from PipeWire frames, through pipewire-capture or, as a fallback, GStreamer.

A stream sends a frame only when something changed, so the last frame always shows the present screen.
"""

import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.core.geometry import Size, Viewport
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.session import Session
from agent.screen.capture import Frame
from agent.screen.encode import keep_freed_memory
from foundation.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from PIL.Image import Image

#: Timeout in seconds for the first frame; the slowest seen took 0.6 s.
_FIRST = 5.0
#: Timeout in seconds for a frame that is already available.
_NEXT = 2.0
_POLL = 0.005
_PROGRAM = Path(__file__).with_name("gstreamer_process.py")
_PYTHONS = (sys.executable, "/usr/bin/python3")
#: Bytes at the end of the process's error output that are searched for its last line.
_LAST_WORDS = 4096
_HEAD = struct.Struct("=III")  # width, height, bytes per line; all 0 if the frame has not changed


class NoFramesError(Exception):
    """This method gives no frames, or no more frames. The message gives the reason, as a clause."""


class LibraryFrames:
    """The frames of one stream through pipewire-capture: in shared memory, of up to 4096 by 4096 pixels."""

    def __init__(self, connection: int, node: int, size: Size) -> None:
        try:
            from pipewire_capture import CaptureStream
        except ImportError as error:
            raise NoFramesError(f"the library pipewire-capture cannot be loaded ({error})") from error
        self._stream: Any = CaptureStream(connection, node, size.width, size.height, 0.0)
        try:
            self._stream.start()
            deadline = time.monotonic() + _FIRST
            while self._frame() is None:
                if time.monotonic() >= deadline:
                    raise NoFramesError("no frame came")
                time.sleep(_POLL)
        except BaseException as error:
            self.close()
            if isinstance(error, RuntimeError | OSError):
                raise NoFramesError(f"pipewire-capture: {error}") from error
            raise

    def _frame(self) -> Any:
        if self._stream.window_invalid:
            raise NoFramesError(f"the stream ended ({self._stream.error or 'without a reason'})")
        return self._stream.get_frame()

    def latest(self) -> "Image":
        """Return the last frame received, in RGB. Raises NoFramesError."""
        from PIL.Image import frombytes

        frame = self._frame()
        if frame is None:
            raise NoFramesError("no frame came")
        height, width = frame.shape[:2]
        return frombytes("RGB", (width, height), frame, "raw", "BGRX", 0, 1)

    def close(self) -> None:
        """Stop the stream. Never raises; safe to call twice."""
        with suppress(RuntimeError, OSError):
            self._stream.stop()


class GStreamerFrames:
    """Frames through GStreamer, of any size and also from GPU memory. Arguments: see `LibraryFrames`.

    GStreamer's Python bindings are only in the system's own Python. So a separate process uses them and sends the last
    frame on request (`gstreamer_process.py`).
    """

    def __init__(self, connection: int, node: int, size: Size) -> None:  # noqa: ARG002 -- the stream reports it
        self._last: Image | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 -- an unread pipe would fill up and block it
        why = "GStreamer's library for Python (gi) is missing"
        for python in dict.fromkeys(_PYTHONS):
            with suppress(OSError):
                self._process = subprocess.Popen(
                    [python, "-P", str(_PROGRAM), str(connection), str(node)], pass_fds=[connection],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, start_new_session=True,
                )  # fmt: skip
                try:
                    self._last = self._asked(_FIRST)
                    return
                except NoFramesError:
                    why = self._end() or why
        self._said.close()
        raise NoFramesError(f"GStreamer: {why}")

    def latest(self) -> "Image":
        """See `LibraryFrames.latest`."""
        self._last = self._asked(_NEXT)
        return self._last

    def close(self) -> None:
        """Stop the process. Never raises; safe to call twice."""
        self._end()
        self._said.close()

    def _asked(self, seconds: float) -> "Image":
        from PIL.Image import frombytes

        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), b"\n")
        except OSError as error:
            raise NoFramesError("GStreamer ended") from error
        width, height, stride = _HEAD.unpack(self._read(_HEAD.size, seconds))
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
        """End the process. Return the last line of its error output."""
        self._process.kill()
        self._process.communicate()
        if self._said.closed:
            return ""
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _LAST_WORDS))
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:200] if lines else ""


def _open_frames(session: Session) -> tuple[LibraryFrames | GStreamerFrames, socket.socket]:
    """Return the frames by the first method that works, and their PipeWire connection. Raises EnvironmentLacksError."""
    why: list[str] = []
    for way in (LibraryFrames, GStreamerFrames):
        connection = socket.socket(fileno=session.pipewire())
        try:
            return way(connection.fileno(), session.stream.node, session.stream.region.size), connection
        except NoFramesError as error:
            connection.close()
            why.append(str(error))
        except BaseException:
            connection.close()
            raise
    raise EnvironmentLacksError(
        f"The screen cannot be captured: {'; '.join(why)}.",
        "Install the extra: pip install 'mai-agent[wayland]', or GStreamer with its PipeWire source "
        "(Debian: gstreamer1.0-pipewire python3-gi gir1.2-gst-plugins-base-1.0), and see that PipeWire runs.",
    )


class PortalScreen:
    """The shared monitor of a session, usable on any thread. Raises EnvironmentLacksError: there are no frames."""

    def __init__(self, session: Session) -> None:
        keep_freed_memory()
        self._session, self._region = session, session.stream.region
        try:
            self._frames, self._connection = _open_frames(session)
        except BusError as error:
            raise EnvironmentLacksError(f"PipeWire cannot be reached ({error}).", "Does pipewire run?") from error
        try:
            self.grab()
        except BaseException:
            self.close()
            raise
        self.home = self._region.middle

    def grab(self) -> Frame:
        """Return the last frame received, which shows the present screen."""
        try:
            if self._session.has_ended:  # the stream does not notice, and would return the last frame forever
                raise NoFramesError("the desktop ended sharing it")
            if self.is_cut_off():
                raise NoFramesError("PipeWire went away")
            image = self._frames.latest()
        except NoFramesError as error:
            raise EnvironmentLacksError(
                f"The screen can no longer be captured: {error}.", "Was sharing it ended, or the screen locked?"
            ) from error
        view = self._session.viewport = Viewport(self._region, Size(image.width, image.height))
        return Frame(image, view, time.monotonic())

    def is_cut_off(self) -> bool:
        """Whether the connection to PipeWire is lost. May be called from any thread."""
        looking = select.poll()
        with suppress(ValueError):  # closed
            looking.register(self._connection, 0)
        return bool(looking.poll(0))

    def close(self) -> None:
        self._frames.close()
        self._connection.close()
