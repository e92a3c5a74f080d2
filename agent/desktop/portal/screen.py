"""Captures of the monitor that a session shares."""

import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from agent.core.geometry import DesktopPoint, Size, Viewport
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.frames import Frames, LibraryFrames, NoFramesError
from agent.desktop.portal.gstreamer import GStreamerFrames
from agent.desktop.portal.session import Session
from agent.screen.capture import Frame
from agent.screen.encode import keep_freed_memory
from foundation.errors import EnvironmentLacksError


class PortalScreen:
    """See `Screen`; may be opened on one thread and used on another.

    `viewport` is the one place that knows how pixels of frames and desktop units relate; input asks it too.

    Args:
        session: whose stream it is.

    Raises:
        EnvironmentLacksError: it gives no frames.
    """

    def __init__(self, session: Session) -> None:
        keep_freed_memory()
        self._ended = False
        session.on_closed(self._end)
        stream = session.stream
        try:
            self._frames, self._connection = _open_frames(session.pipewire, stream.node, stream.region.size)
        except BusError as error:
            raise EnvironmentLacksError(f"PipeWire cannot be reached ({error}).", "Does pipewire run?") from error
        self._region = stream.region
        try:
            self.viewport = self.grab().viewport
        except BaseException:
            self.close()
            raise
        self.home = DesktopPoint(self._region.left + self._region.width / 2, self._region.top + self._region.height / 2)

    def grab(self) -> Frame:
        """The last frame that came: how the screen looks now."""
        try:
            if self._ended:  # a stream does not notice, and would show the last frame for ever
                raise NoFramesError("the desktop ended sharing it")
            if self.is_cut_off():
                raise NoFramesError("PipeWire went away")
            image = self._frames.latest()
        except NoFramesError as error:
            raise EnvironmentLacksError(
                f"The screen can no longer be captured: {error}.", "Was sharing it ended, or the screen locked?"
            ) from error
        self.viewport = Viewport(self._region, Size(image.width, image.height))
        return Frame(image, self.viewport, time.monotonic())

    def is_cut_off(self) -> bool:
        """Whether PipeWire itself went away; from any thread."""
        looking = select.poll()
        with suppress(ValueError):  # closed
            looking.register(self._connection, 0)
        return bool(looking.poll(0))

    def close(self) -> None:
        """See `Screen.close`."""
        self._frames.close()
        self._connection.close()

    def _end(self) -> None:
        self._ended = True


def _open_frames(connect: Callable[[], int], node: int, size: Size) -> tuple[Frames, socket.socket]:
    """The frames of a stream by the first way that gives any, and the connection on which they come.

    Args:
        connect: a new connection to PipeWire.
        node: the stream.
        size: how large its frames are about.

    Raises:
        EnvironmentLacksError: no way gives any.
    """
    why: list[str] = []
    for way in (LibraryFrames, GStreamerFrames):
        connection = socket.socket(fileno=connect())
        try:
            return way(connection.fileno(), node, size), connection
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
