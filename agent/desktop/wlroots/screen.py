"""Captures of one monitor by wlr-screencopy, through memory that is shared with the compositor."""

import mmap
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.desktop.wlroots.outputs import Output, read_outputs
from agent.desktop.wlroots.wire import Arguments, Connection
from agent.geometry import DesktopPoint, Region, Size, Viewport
from agent.screen.capture import Frame
from agent.screen.heap import keep_freed_memory
from foundation.errors import EnvironmentLacksError, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

MANAGER = "zwlr_screencopy_manager_v1"
_CAPTURE_OUTPUT = 0
_COPY, _DESTROY = 0, 1
_BUFFER, _FLAGS, _READY, _FAILED, _BUFFER_DONE = 0, 1, 2, 3, 6
_UPSIDE_DOWN = 1
_CREATE_POOL, _CREATE_BUFFER, _DESTROY_OF_POOL = 0, 0, 1
#: wl_shm's formats (those of DRM, but for the first two) as Pillow calls the order of their bytes in memory.
_FORMATS = {
    0: "BGRX", 1: "BGRX", 0x34324152: "BGRX", 0x34325258: "BGRX",
    0x34324241: "RGBX", 0x34324258: "RGBX", 0x34324742: "RGB", 0x34324752: "BGR",
}  # fmt: skip


@dataclass(slots=True)
class _Told:
    """What the compositor says of one capture."""

    shape: tuple[int, int, int, int] | None = None  # format, width, height, bytes of a line
    flags: int = 0
    listed: bool = False
    ready: bool = False
    failed: bool = False

    def hear(self, opcode: int, arguments: Arguments) -> None:
        """An event of zwlr_screencopy_frame_v1."""
        if opcode == _BUFFER and self.shape is None:
            self.shape = arguments.number(), arguments.number(), arguments.number(), arguments.number()
        elif opcode == _FLAGS:
            self.flags = arguments.number()
        self.ready = self.ready or opcode == _READY
        self.failed = self.failed or opcode == _FAILED
        self.listed = self.listed or opcode == _BUFFER_DONE


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
        self._memory: tuple[tuple[int, int, int, int], mmap.mmap, int] | None = None
        try:
            self._manager = self._connection.bind(MANAGER, 3)
            self._shared = self._connection.bind("wl_shm", 1)
            outputs = read_outputs(self._connection)
            if not outputs:
                raise EnvironmentLacksError("No monitor is switched on.", "Switch one on.")
            self._output = _chosen(outputs, monitor)
        except BaseException:
            self._connection.close()
            raise
        self.monitors = [one.region for one in outputs]
        self._region: Region = self._output.region
        self.home = DesktopPoint(self._region.left + self._region.width / 2, self._region.top + self._region.height / 2)

    def grab(self) -> Frame:
        """Capture the monitor: one of its frames, some 16 ms."""
        from PIL.Image import frombytes

        told = self._captured()
        assert told.shape is not None
        kind, width, height, stride = told.shape
        assert self._memory is not None
        order = _FORMATS.get(kind)
        if order is None:
            raise EnvironmentLacksError(f"The screen is told in pixels of an unknown kind ({kind:#x}).")
        up = -1 if told.flags & _UPSIDE_DOWN else 1
        image = frombytes("RGB", (width, height), self._memory[1][:], "raw", order, stride, up)
        image = _upright(image, self._output.transform)
        return Frame(image, Viewport(self._region, Size(image.width, image.height)), time.monotonic())

    def close(self) -> None:
        """Close the capture; safe to call twice."""
        self._connection.close()
        if self._memory is not None:
            self._memory[1].close()
            self._memory = None

    def _captured(self) -> _Told:
        connection, told = self._connection, _Told()
        frame = connection.new(told.hear)
        connection.request(self._manager, _CAPTURE_OUTPUT, "nio", frame, 0, self._output.number)
        connection.wait(lambda: told.listed or told.failed or (told.shape is not None and self._is_old))
        if told.shape is not None and not told.failed:
            connection.request(frame, _COPY, "o", self._buffer(told.shape))
            connection.wait(lambda: told.ready or told.failed)
        connection.request(frame, _DESTROY)
        if told.failed or told.shape is None:
            raise EnvironmentLacksError(
                "The screen can no longer be captured.", "Is the monitor still there, and the session unlocked?"
            )
        return told

    @property
    def _is_old(self) -> bool:
        """Whether this version does not say when all kinds of buffers are told: there is but one."""
        return self._connection.globals[MANAGER][0][1] < 3

    def _buffer(self, shape: tuple[int, int, int, int]) -> int:
        """A buffer of that shape; the last one as long as it fits."""
        if self._memory is not None and self._memory[0] == shape:
            return self._memory[2]
        kind, width, height, stride = shape
        size = stride * height
        if self._memory is not None:
            self._connection.request(self._memory[2], 0)
            self._memory[1].close()
        file = os.memfd_create("mai-agent-capture", os.MFD_CLOEXEC)
        try:
            os.ftruncate(file, size)
            pool, buffer = self._connection.new(), self._connection.new()
            self._connection.request(self._shared, _CREATE_POOL, "ni", pool, size, files=[file])
            self._connection.request(pool, _CREATE_BUFFER, "niiiiu", buffer, 0, width, height, stride, kind)
            self._connection.request(pool, _DESTROY_OF_POOL)
            self._memory = shape, mmap.mmap(file, size), buffer
        finally:
            os.close(file)
        return buffer


def _chosen(outputs: list[Output], monitor: int | None) -> Output:
    if monitor is None:
        return next((one for one in outputs if one.region.left == one.region.top == 0), outputs[0])
    if 1 <= monitor <= len(outputs):
        return outputs[monitor - 1]
    have = "only monitor 1" if len(outputs) == 1 else f"monitors 1 to {len(outputs)}"
    raise UsageError(f"There is no monitor {monitor}: this desktop has {have}.", "Choose one of these.")


def _upright(image: "Image", transform: int) -> "Image":
    """A capture as a person sees it: it comes in the monitor's own lines."""
    from PIL.Image import Transpose

    turns = (None, Transpose.ROTATE_270, Transpose.ROTATE_180, Transpose.ROTATE_90)
    turn = turns[transform & 3]
    image = image if turn is None else image.transpose(turn)
    return image.transpose(Transpose.FLIP_LEFT_RIGHT) if transform & 4 else image
