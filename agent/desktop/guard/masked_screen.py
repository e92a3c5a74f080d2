"""Keeps windows out of the captured picture, as far as they can be seen: our own, or what nobody elsewhere may see."""

import math
import time
from collections.abc import Callable

from agent.core.geometry import Region
from agent.desktop.protocol.windows import Connection, OpenWindows, WindowId, Windows
from agent.screen.capture import Frame, Screen
from foundation.errors import EnvironmentLacksError

#: Nothing on a screen that is done with for good looks like this; the model sees a blank area.
_GREY = (128, 128, 128)
#: For so long after our window has gone from a place, its picture may still be there, in seconds.
_LINGER = 0.5


class MaskedScreen:
    """A `Screen` on which some windows are blank; `open_windows` is called on the thread that captures.

    Args:
        screen: what is captured.
        hidden: these windows, or what says at each capture where nothing is to be seen.
        open_windows: tells where windows are.
        colour: what stands there instead.
    """

    def __init__(
        self,
        screen: Screen,
        hidden: frozenset[WindowId] | Callable[[Windows], list[Region]],
        open_windows: OpenWindows,
        colour: tuple[int, int, int] = _GREY,
    ) -> None:
        self._screen = screen
        self._hidden = hidden
        self._colour = colour
        self._windows = Connection(open_windows)
        self._seen: list[tuple[list[Region], float]] = []

    def grab(self) -> Frame:
        """Capture, and blank where the windows are, before and after it: one may be moved meanwhile.

        Also where they were just now: without a compositor, what was under them takes a moment to be drawn.
        """
        self._note(self._visible())
        frame = self._screen.grab()
        self._note(self._visible())
        for regions, _ in self._seen:
            for region in regions:
                blank(frame, region, self._colour)
        return frame

    def _note(self, regions: list[Region]) -> None:
        now = time.monotonic()
        recent = [(known, last) for known, last in self._seen if now - last < _LINGER and known != regions]
        self._seen = [*recent, (regions, now)]

    def _visible(self) -> list[Region]:
        windows = self._windows.get()
        if windows is None:
            raise EnvironmentLacksError("The desktop tells no more of its windows.", "Is the display still there?")
        return self._hidden(windows) if callable(self._hidden) else windows.visible(self._hidden)

    def close(self) -> None:
        """Close both connections."""
        self._windows.close()
        self._screen.close()


def blank(frame: Frame, region: Region, colour: tuple[int, int, int]) -> None:
    """Fill a region of the desktop in its picture."""
    monitor, (scale_x, scale_y) = frame.viewport.region, frame.viewport.scale
    left, top = (region.left - monitor.left) * scale_x, (region.top - monitor.top) * scale_y
    right, bottom = left + region.width * scale_x, top + region.height * scale_y
    far = min(frame.image.width, math.ceil(right)), min(frame.image.height, math.ceil(bottom))
    box = (max(0, math.floor(left)), max(0, math.floor(top)), *far)
    if box[0] < box[2] and box[1] < box[3]:
        frame.image.paste(colour, box)
