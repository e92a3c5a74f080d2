"""Two ways in which compositors copy a monitor into memory of ours: wlr-screencopy, and ext-image-copy-capture."""

import mmap
import os
from dataclasses import dataclass, field
from typing import Protocol

from agent.desktop.wayland.outputs import Output
from agent.desktop.wayland.wire import Arguments, Connection
from foundation.errors import EnvironmentLacksError

SCREENCOPY = "zwlr_screencopy_manager_v1"
IMAGE_COPY, SOURCES = "ext_image_copy_capture_manager_v1", "ext_output_image_capture_source_manager_v1"
_CREATE_POOL, _CREATE_BUFFER, _DESTROY_OF_POOL = 0, 0, 1
_DESTROY_OF_BUFFER = 0
#: wl_shm's formats (those of DRM, but for the first two) as Pillow calls the order of their bytes in memory.
_FORMATS = {
    0: "BGRX", 1: "BGRX", 0x34324152: "BGRX", 0x34325258: "BGRX",
    0x34324241: "RGBX", 0x34324258: "RGBX", 0x34324742: "RGB", 0x34324752: "BGR",
}  # fmt: skip
_THREE_BYTES = {"RGB", "BGR"}


@dataclass(frozen=True, slots=True)
class Copied:
    """A monitor's pixels in its own lines."""

    data: bytes
    size: tuple[int, int]
    order: str  # of the bytes of a pixel, as Pillow calls it
    stride: int  # bytes of a line
    upside_down: bool = False
    transform: int = 0  # wl_output.transform, which is to be undone


class Copying(Protocol):
    """A way; used from one thread."""

    def copy(self, output: Output) -> Copied:
        """The monitor as it is now. Raises EnvironmentLacksError."""

    def close(self) -> None:
        """Give the memory back."""


def missing_for_copying(connection: Connection) -> list[str]:
    """What a compositor would have to offer, and does not; nothing where one of the ways is there."""
    newer = [one for one in (IMAGE_COPY, SOURCES) if not connection.has(one)]
    return [SCREENCOPY] if newer and not connection.has(SCREENCOPY) else []


def open_copying(connection: Connection) -> Copying:
    """The first way that is offered. Raises EnvironmentLacksError: none is."""
    shared = _Memory(connection)
    if connection.has(IMAGE_COPY) and connection.has(SOURCES) and not connection.has(SCREENCOPY):
        return ImageCopy(connection, shared)
    return Screencopy(connection, shared)


class _Memory:
    """A buffer that is shared with the compositor; the last one as long as it fits."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._shared = connection.bind("wl_shm", 1)
        self._shape: tuple[int, int, int, int] | None = None
        self._memory: mmap.mmap | None = None
        self._buffer = 0

    def buffer(self, shape: tuple[int, int, int, int]) -> int:
        """Its number, for a format of wl_shm, width, height, and bytes of a line."""
        if self._shape == shape:
            return self._buffer
        kind, width, height, stride = shape
        connection, size = self._connection, stride * height
        if self._memory is not None:
            connection.request(self._buffer, _DESTROY_OF_BUFFER)
            self.close()
        file = os.memfd_create("mai-agent-capture", os.MFD_CLOEXEC)
        try:
            os.ftruncate(file, size)
            pool, self._buffer = connection.new(), connection.new()
            connection.request(self._shared, _CREATE_POOL, "ni", pool, size, files=[file])
            connection.request(pool, _CREATE_BUFFER, "niiiiu", self._buffer, 0, width, height, stride, kind)
            connection.request(pool, _DESTROY_OF_POOL)
            self._memory, self._shape = mmap.mmap(file, size), shape
        finally:
            os.close(file)
        return self._buffer

    def copied(self, *, upside_down: bool = False, transform: int = 0) -> Copied:
        """What is in it now."""
        assert self._shape is not None and self._memory is not None
        kind, width, height, stride = self._shape
        return Copied(self._memory[:], (width, height), _order(kind), stride, upside_down, transform)

    def close(self) -> None:
        """Unmap it; safe to call twice."""
        if self._memory is not None:
            self._memory.close()
        self._memory, self._shape = None, None


class Screencopy:
    """See `Copying`: wlr-screencopy."""

    def __init__(self, connection: Connection, memory: _Memory) -> None:
        self._connection, self._memory = connection, memory
        self._manager = connection.bind(SCREENCOPY, 3)
        # An older version does not say when all kinds of buffers are told: there is but one.
        self._is_old = connection.globals[SCREENCOPY][0][1] < 3

    def copy(self, output: Output) -> Copied:
        """See `Copying.copy`: one of the monitor's frames, some 16 ms."""
        connection, told = self._connection, _Frame()
        frame = connection.new(told.hear)
        connection.request(self._manager, 0, "nio", frame, 0, output.number)
        connection.wait(lambda: told.listed or told.failed or (told.shape is not None and self._is_old))
        if told.shape is not None and not told.failed:
            connection.request(frame, 0, "o", self._memory.buffer(told.shape))
            connection.wait(lambda: told.ready or told.failed)
        connection.request(frame, 1)
        if told.failed or told.shape is None:
            raise _gone()
        return self._memory.copied(upside_down=bool(told.flags & 1), transform=output.transform)

    def close(self) -> None:
        """See `Copying.close`."""
        self._memory.close()


@dataclass(slots=True)
class _Frame:
    """What is told of one capture (zwlr_screencopy_frame_v1)."""

    shape: tuple[int, int, int, int] | None = None  # format, width, height, bytes of a line
    flags: int = 0
    listed: bool = False
    ready: bool = False
    failed: bool = False

    def hear(self, opcode: int, arguments: Arguments) -> None:
        """An event: buffer, flags, ready, failed, damage, linux_dmabuf, buffer_done."""
        if opcode == 0 and self.shape is None:
            self.shape = arguments.number(), arguments.number(), arguments.number(), arguments.number()
        elif opcode == 1:
            self.flags = arguments.number()
        self.ready = self.ready or opcode == 2
        self.failed = self.failed or opcode == 3
        self.listed = self.listed or opcode == 6


class ImageCopy:
    """See `Copying`: ext-image-copy-capture.

    Only the first frame of a session comes at once: each later one may wait until something on the screen changes. So
    every capture is a session of its own.
    """

    def __init__(self, connection: Connection, memory: _Memory) -> None:
        self._connection, self._memory = connection, memory
        self._manager, self._sources = connection.bind(IMAGE_COPY, 1), connection.bind(SOURCES, 1)

    def copy(self, output: Output) -> Copied:
        """See `Copying.copy`."""
        for _ in range(2):  # the monitor may have changed its size in between
            told = self._session(output)
            if told.stopped:
                break
            if told.ready:
                return self._memory.copied(transform=told.transform)
        raise _gone()

    def _session(self, output: Output) -> "_Session":
        connection, told = self._connection, _Session()
        source, session = connection.new(), connection.new(told.hear)
        connection.request(self._sources, 0, "no", source, output.number)
        connection.request(self._manager, 0, "nou", session, source, 0)
        connection.wait(lambda: told.listed or told.stopped)
        if told.listed and not told.stopped:
            frame = connection.new(told.hear_frame)
            connection.request(session, 0, "n", frame)
            connection.request(frame, 1, "o", self._memory.buffer(told.shape()))
            connection.request(frame, 2, "iiii", 0, 0, *told.size)
            connection.request(frame, 3)
            connection.wait(lambda: told.ready or told.failed or told.stopped)
            connection.request(frame, 0)
        connection.request(session, 1)
        connection.request(source, 0)
        return told

    def close(self) -> None:
        """See `Copying.close`."""
        self._memory.close()


@dataclass(slots=True)
class _Session:
    """What is told of one session and its frame."""

    size: tuple[int, int] = (0, 0)
    formats: list[int] = field(default_factory=list)
    transform: int = 0
    listed: bool = False
    stopped: bool = False
    ready: bool = False
    failed: bool = False

    def hear(self, opcode: int, arguments: Arguments) -> None:
        """An event of the session: buffer_size, shm_format, dmabuf_device, dmabuf_format, done, stopped."""
        if opcode == 0:
            self.size = arguments.number(), arguments.number()
        elif opcode == 1:
            self.formats.append(arguments.number())
        self.listed = self.listed or opcode == 4
        self.stopped = self.stopped or opcode == 5

    def hear_frame(self, opcode: int, arguments: Arguments) -> None:
        """An event of the frame: transform, damage, presentation_time, ready, failed."""
        if opcode == 0:
            self.transform = arguments.number()
        self.ready = self.ready or opcode == 3
        self.failed = self.failed or opcode == 4

    def shape(self) -> tuple[int, int, int, int]:
        """See `_Memory.buffer`. Raises EnvironmentLacksError: it is in no format that we know."""
        kind = next((one for one in self.formats if one in _FORMATS), None)
        if kind is None or min(self.size) < 1:
            raise EnvironmentLacksError(
                "This compositor hands the screen over in the graphics card's memory alone.", "Use another desktop."
            )
        width, height = self.size
        line = width * (3 if _FORMATS[kind] in _THREE_BYTES else 4)
        return kind, width, height, line + -line % 4


def _order(kind: int) -> str:
    order = _FORMATS.get(kind)
    if order is None:
        raise EnvironmentLacksError(f"The screen is told in pixels of an unknown kind ({kind:#x}).")
    return order


def _gone() -> EnvironmentLacksError:
    return EnvironmentLacksError(
        "The screen can no longer be captured.", "Is the monitor still there, and the session unlocked?"
    )
