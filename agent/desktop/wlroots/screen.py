"""Captures of one monitor, by what the compositor offers for that, through memory that is shared with it."""

import time
from typing import TYPE_CHECKING

from agent.core.geometry import DesktopPoint, Region, Size, Viewport
from agent.desktop.wayland.outputs import number_of, read_outputs
from agent.desktop.wayland.wire import Connection
from agent.desktop.wlroots.copying import open_copying
from agent.screen.capture import Frame
from agent.screen.encode import keep_freed_memory
from foundation.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from PIL.Image import Image


class WlrootsScreen:
    """One monitor; see `Screen`.

    Args:
        path: of the compositor's socket.
        monitor: 1, 2 and so on, or None for the one at the origin, else the first.

    Raises:
        EnvironmentLacksError: it cannot be captured.
        UsageError: there is no such monitor.
    """

    def __init__(self, path: str, monitor: int | None = None) -> None:
        keep_freed_memory()
        self._connection = Connection(path)
        try:
            self._copying = open_copying(self._connection)
            outputs = read_outputs(self._connection)
            if not outputs:
                raise EnvironmentLacksError("No monitor is switched on.", "Switch one on.")
            self._output = outputs[number_of([one.region for one in outputs], monitor)]
        except BaseException:
            self._connection.close()
            raise
        self.monitors = [one.region for one in outputs]
        self._region: Region = self._output.region
        self.home = DesktopPoint(self._region.left + self._region.width / 2, self._region.top + self._region.height / 2)

    def grab(self) -> Frame:
        """Capture the monitor."""
        from PIL.Image import frombytes

        copied = self._copying.copy(self._output)
        up = -1 if copied.upside_down else 1
        image = frombytes("RGB", copied.size, copied.data, "raw", copied.order, copied.stride, up)
        image = _upright(image, copied.transform)
        return Frame(image, Viewport(self._region, Size(image.width, image.height)), time.monotonic())

    def close(self) -> None:
        """Close the capture; safe to call twice."""
        self._connection.close()
        self._copying.close()


def _upright(image: "Image", transform: int) -> "Image":
    """A capture as a person sees it: it comes in the monitor's own lines."""
    from PIL.Image import Transpose

    turns = (None, Transpose.ROTATE_270, Transpose.ROTATE_180, Transpose.ROTATE_90)
    turn = turns[transform & 3]
    image = image if turn is None else image.transpose(turn)
    return image.transpose(Transpose.FLIP_LEFT_RIGHT) if transform & 4 else image
