"""Captures one monitor through memory shared with the compositor: wlr-screencopy or ext-image-copy-capture."""

import mmap
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from agent.core.geometry import DesktopPoint, Region, Size, Viewport
from agent.desktop.wayland.outputs import Output, number_of, read_outputs
from agent.desktop.wayland.wire import Arguments, Connection, create_buffer
from agent.screen.capture import Frame
from agent.screen.encode import keep_freed_memory
from foundation.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from PIL.Image import Image

SCREENCOPY = "zwlr_screencopy_manager_v1"
IMAGE_COPY, SOURCES = "ext_image_copy_capture_manager_v1", "ext_output_image_capture_source_manager_v1"
#: Pillow's raw mode, the byte order in memory, for each wl_shm format (DRM codes, except for the first two).
_FORMATS = {
    0: "BGRX", 1: "BGRX", 0x34324152: "BGRX", 0x34325258: "BGRX",
    0x34324241: "RGBX", 0x34324258: "RGBX", 0x34324742: "RGB", 0x34324752: "BGR",
}  # fmt: skip
_THREE_BYTES = {"RGB", "BGR"}
#: Event opcodes of zwlr_screencopy_frame_v1, and of ext-image-copy-capture's session and frame.
_BUFFER, _FLAGS, _READY, _FAILED, _LISTED = 0, 1, 2, 3, 6
_SESSION_SIZE, _SESSION_FORMAT, _SESSION_DONE, _SESSION_STOPPED = 0, 1, 4, 5
_FRAME_TRANSFORM, _FRAME_READY, _FRAME_FAILED = 0, 3, 4


class _Events(defaultdict[int, list[list[int]]]):
    """Collects the events of one object: for each opcode, the arguments of each event as words."""

    def __init__(self) -> None:
        super().__init__(list)

    def __call__(self, opcode: int, arguments: Arguments) -> None:
        self[opcode].append(arguments.words())


def missing_for_copying(connection: Connection) -> list[str]:
    """Return the interfaces that a compositor lacks for capturing; empty if it supports one of the protocols."""
    newer = [one for one in (IMAGE_COPY, SOURCES) if not connection.has(one)]
    return [SCREENCOPY] if newer and not connection.has(SCREENCOPY) else []


@dataclass(frozen=True, slots=True)
class _Shape:
    kind: int  # a wl_shm format
    width: int
    height: int
    stride: int  # bytes per line


class _Copying(ABC):
    """A way of copying a monitor, with a shared buffer that is reused while its shape fits."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._shared = connection.bind("wl_shm", 1)
        self._shape: _Shape | None = None
        self._memory: mmap.mmap | None = None
        self._buffer = 0

    @abstractmethod
    def copy(self, output: Output) -> "Image":
        """Return the monitor's present content, upright. Raises EnvironmentLacksError."""

    def close(self) -> None:
        """Unmap the memory; safe to call twice."""
        if self._memory is not None:
            self._memory.close()
        self._memory, self._shape = None, None

    def _buffer_of(self, shape: _Shape) -> int:
        """Return the object ID of a buffer of this shape."""
        if self._shape == shape:
            return self._buffer
        if self._memory is not None:
            self._connection.request(self._buffer, 0)
            self.close()
        size = shape.width, shape.height
        self._buffer, self._memory = create_buffer(self._connection, self._shared, size, shape.stride, shape.kind)
        self._shape = shape
        return self._buffer

    def _copied(self, *, upside_down: bool = False, transform: int = 0) -> "Image":
        """Return the buffer's content as users see it; the buffer has the monitor's unrotated lines."""
        from PIL.Image import Transpose, frombytes

        assert self._shape is not None and self._memory is not None
        shape, order = self._shape, _FORMATS.get(self._shape.kind)
        if order is None:
            raise EnvironmentLacksError(f"The screen is told in pixels of an unknown kind ({shape.kind:#x}).")
        up = -1 if upside_down else 1
        image = frombytes("RGB", (shape.width, shape.height), self._memory[:], "raw", order, shape.stride, up)
        turn = (None, Transpose.ROTATE_270, Transpose.ROTATE_180, Transpose.ROTATE_90)[transform & 3]
        image = image if turn is None else image.transpose(turn)
        return image.transpose(Transpose.FLIP_LEFT_RIGHT) if transform & 4 else image


class _Screencopy(_Copying):
    """wlr-screencopy."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._manager = connection.bind(SCREENCOPY, 3)
        # Versions before 3 have no event for the end of the list of buffer types, because they offer only one.
        self._is_old = connection.globals[SCREENCOPY][0][1] < 3

    @override
    def copy(self, output: Output) -> "Image":
        # Takes one frame of the monitor, some 16 ms.
        connection, events = self._connection, _Events()
        frame = connection.new(events)
        connection.request(self._manager, 0, "nio", frame, 0, output.number)
        connection.wait(lambda: _LISTED in events or _FAILED in events or (_BUFFER in events and self._is_old))
        if _BUFFER in events and _FAILED not in events:
            connection.request(frame, 0, "o", self._buffer_of(_Shape(*events[_BUFFER][0])))
            connection.wait(lambda: _READY in events or _FAILED in events)
        connection.request(frame, 1)
        if _FAILED in events or _BUFFER not in events:
            raise _gone()
        upside_down = _FLAGS in events and bool(events[_FLAGS][-1][0] & 1)
        return self._copied(upside_down=upside_down, transform=output.transform)


class _ImageCopy(_Copying):
    """ext-image-copy-capture.

    Only a session's first frame arrives at once; each later frame may wait until something on the screen changes. So
    every capture uses a new session.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._manager, self._sources = connection.bind(IMAGE_COPY, 1), connection.bind(SOURCES, 1)

    @override
    def copy(self, output: Output) -> "Image":
        for _ in range(2):  # the monitor may have changed its size in between
            session, frame = self._session(output)
            if _SESSION_STOPPED in session:
                break
            if _FRAME_READY in frame:
                return self._copied(transform=frame[_FRAME_TRANSFORM][-1][0] if _FRAME_TRANSFORM in frame else 0)
        raise _gone()

    def _session(self, output: Output) -> tuple[_Events, _Events]:
        """Run one session and return its events and those of its frame."""
        connection, told, of_frame = self._connection, _Events(), _Events()
        source, session = connection.new(), connection.new(told)
        connection.request(self._sources, 0, "no", source, output.number)
        connection.request(self._manager, 0, "nou", session, source, 0)
        connection.wait(lambda: _SESSION_DONE in told or _SESSION_STOPPED in told)
        if _SESSION_STOPPED not in told:
            shape = _shape_told(told)
            frame = connection.new(of_frame)
            connection.request(session, 0, "n", frame)
            connection.request(frame, 1, "o", self._buffer_of(shape))
            connection.request(frame, 2, "iiii", 0, 0, shape.width, shape.height)
            connection.request(frame, 3)
            connection.wait(lambda: _FRAME_READY in of_frame or _FRAME_FAILED in of_frame or _SESSION_STOPPED in told)
            connection.request(frame, 0)
        connection.request(session, 1)
        connection.request(source, 0)
        return told, of_frame


def _shape_told(session: _Events) -> _Shape:
    """Return the shape of a session's buffer. Raises EnvironmentLacksError: no offered format is supported."""
    kind = next((one for [one, *_] in session[_SESSION_FORMAT] if one in _FORMATS), None)
    width, height = (session[_SESSION_SIZE] or [[0, 0]])[-1]
    if kind is None or min(width, height) < 1:
        raise EnvironmentLacksError(
            "This compositor hands the screen over in the graphics card's memory alone.", "Use another desktop."
        )
    line = width * (3 if _FORMATS[kind] in _THREE_BYTES else 4)
    return _Shape(kind, width, height, line + -line % 4)


def _gone() -> EnvironmentLacksError:
    return EnvironmentLacksError(
        "The screen can no longer be captured.", "Is the monitor still there, and the session unlocked?"
    )


class WlrootsScreen:
    """One monitor; see `Screen`.

    Args:
        path: the compositor's socket.
        monitor: 1, 2 and so on, or None for the one at the origin, else the first.

    Raises:
        EnvironmentLacksError: it cannot be captured.
        UsageError: there is no such monitor.
    """

    def __init__(self, path: str, monitor: int | None = None) -> None:
        keep_freed_memory()
        self._connection = connection = Connection(path)
        try:
            is_new = connection.has(IMAGE_COPY) and connection.has(SOURCES) and not connection.has(SCREENCOPY)
            self._copying = _ImageCopy(connection) if is_new else _Screencopy(connection)
            outputs = read_outputs(connection)
            if not outputs:
                raise EnvironmentLacksError("No monitor is switched on.", "Switch one on.")
            self._output = outputs[number_of([one.region for one in outputs], monitor)]
        except BaseException:
            connection.close()
            raise
        self.monitors = [one.region for one in outputs]
        self._region: Region = self._output.region
        self.home = DesktopPoint(self._region.left + self._region.width / 2, self._region.top + self._region.height / 2)

    def grab(self) -> Frame:
        """Capture the monitor."""
        image = self._copying.copy(self._output)
        return Frame(image, Viewport(self._region, Size(image.width, image.height)), time.monotonic())

    def close(self) -> None:
        """Close the capture; safe to call twice."""
        self._connection.close()
        self._copying.close()
