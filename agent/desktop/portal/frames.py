"""The frames of a PipeWire stream, by whichever way there is on this machine.

A stream sends a frame when something changed, and none otherwise: the last one is how the screen looks now.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from agent.core.geometry import Size

if TYPE_CHECKING:
    from PIL.Image import Image

#: Seconds until the first frame; the slowest seen took 0.6.
FIRST = 5.0
_POLL = 0.005


class NoFramesError(Exception):
    """This way gives no frames, or none any more; why, as a clause."""


class Frames(Protocol):
    """One stream, used from one thread. `latest` raises NoFramesError."""

    def latest(self) -> "Image":
        """The last frame that came, RGB."""

    def close(self) -> None:
        """End it; never raises, safe to call twice."""


class LibraryFrames:
    """By pipewire-capture: frames in shared memory, of up to 4096 by 4096 pixels.

    Args:
        connection: to PipeWire; it stays whoever's it is.
        node: the stream.
        size: how large its frames are about.
    """

    def __init__(self, connection: int, node: int, size: Size) -> None:
        try:
            from pipewire_capture import CaptureStream
        except ImportError as error:
            raise NoFramesError(f"the library pipewire-capture cannot be loaded ({error})") from error
        self._stream: Any = CaptureStream(connection, node, size.width, size.height, 0.0)
        try:
            self._stream.start()
            wait_for(lambda: self._frame() is not None)
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
        """See `Frames.latest`."""
        from PIL.Image import frombytes

        frame = self._frame()
        if frame is None:
            raise NoFramesError("no frame came")
        height, width = frame.shape[:2]
        return frombytes("RGB", (width, height), frame, "raw", "BGRX", 0, 1)

    def close(self) -> None:
        """See `Frames.close`."""
        with suppress(RuntimeError, OSError):
            self._stream.stop()


def wait_for(there: Callable[[], bool]) -> None:
    """Wait for the first frame. Raises NoFramesError: none comes."""
    deadline = time.monotonic() + FIRST
    while not there():
        if time.monotonic() >= deadline:
            raise NoFramesError("no frame came")
        time.sleep(_POLL)
