"""Captures of the monitor that a session shares."""

import select
import time
from contextlib import suppress

from agent.core.geometry import DesktopPoint, Size, Viewport
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.frames import NoFramesError, open_frames
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
            self._frames, self._connection = open_frames(session.pipewire, stream.node, stream.region.size)
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
