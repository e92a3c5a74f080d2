"""The desktop of the compositor that WAYLAND_DISPLAY names, through wlroots' protocols.

A monitor is captured through memory shared with the compositor (wlr-screencopy).
"""

import mmap
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING

from typing_extensions import override

from agent.core.geometry import Size, Viewport
from agent.desktop.protocol.desktop import Abilities, TakeoverWatch, TextEntry, number_of, parse_chord
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.windows import Windows
from agent.desktop.wayland.desktop import NO_CORNER, CheckedTextEntry, Pointer, SeatWatch, WaylandDesktop
from agent.desktop.wayland.devices import read_outputs
from agent.desktop.wayland.selection import WlrootsClipboard
from agent.desktop.wayland.wire import Arguments, Connection, create_buffer, socket_of
from agent.desktop.wlroots.input import KEYBOARDS, POINTERS, WlrootsInput
from agent.desktop.wlroots.windows import TOPLEVELS, SwayStopKey, ToplevelWindows, open_windows
from agent.safety.stop import StopSwitch
from agent.screen.capture import Frame
from agent.screen.encode import keep_freed_memory
from foundation.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from PIL.Image import Image

SCREENCOPY = "zwlr_screencopy_manager_v1"
#: Pillow's raw mode, the byte order in memory, for each wl_shm format (DRM codes, except for the first two).
_FORMATS = {
    0: "BGRX", 1: "BGRX", 0x34324152: "BGRX", 0x34325258: "BGRX",
    0x34324241: "RGBX", 0x34324258: "RGBX", 0x34324742: "RGB", 0x34324752: "BGR",
}  # fmt: skip
#: Event opcodes of zwlr_screencopy_frame_v1.
_BUFFER, _FLAGS, _READY, _FAILED, _LISTED = 0, 1, 2, 3, 6


class _Events(defaultdict[int, list[list[int]]]):
    """Collects the events of one object: for each opcode, the arguments of each event as words."""

    def __init__(self) -> None:
        super().__init__(list)

    def __call__(self, opcode: int, arguments: Arguments) -> None:
        self[opcode].append(arguments.words())


class WlrootsScreen:
    """One monitor, copied into a shared buffer. Raises EnvironmentLacksError, and UsageError: no such monitor."""

    def __init__(self, path: str, monitor: int | None = None) -> None:
        keep_freed_memory()
        self._shape: list[int] = []  # of the buffer: a wl_shm format, width, height and bytes per line
        self._memory: mmap.mmap | None = None
        self._buffer = 0
        self._connection = connection = Connection(path)
        try:
            self._shared, self._manager = connection.bind("wl_shm", 1), connection.bind(SCREENCOPY, 3)
            outputs = read_outputs(connection)
            if not outputs:
                raise EnvironmentLacksError("No monitor is switched on.", "Switch one on.")
            self._output = outputs[number_of([one.region for one in outputs], monitor)]
        except BaseException:
            connection.close()
            raise
        self.monitors = [one.region for one in outputs]
        self.home = self._output.region.middle

    def grab(self) -> Frame:
        """Capture the monitor: take one frame of it, some 16 ms."""
        connection, events = self._connection, _Events()
        frame = connection.new(events)
        connection.request(self._manager, 0, "nio", frame, 0, self._output.number)
        connection.wait(lambda: _LISTED in events or _FAILED in events)
        if _BUFFER in events and _FAILED not in events:
            connection.request(frame, 0, "o", self._buffer_of(events[_BUFFER][0]))
            connection.wait(lambda: _READY in events or _FAILED in events)
        connection.request(frame, 1)
        if _FAILED in events or _BUFFER not in events:
            raise EnvironmentLacksError(
                "The screen can no longer be captured.", "Is the monitor still there, and the session unlocked?"
            )
        image = self._copied(upside_down=_FLAGS in events and bool(events[_FLAGS][-1][0] & 1))
        return Frame(image, Viewport(self._output.region, Size(image.width, image.height)), time.monotonic())

    def close(self) -> None:
        """Close the capture; safe to call twice."""
        self._connection.close()
        if self._memory is not None:
            self._memory.close()

    def _buffer_of(self, shape: list[int]) -> int:
        """Return the object ID of a buffer of this shape."""
        if self._shape != shape:
            if self._memory is not None:
                self._connection.request(self._buffer, 0)
                self._memory.close()
            kind, width, height, stride = shape
            self._buffer, self._memory = create_buffer(self._connection, self._shared, (width, height), stride, kind)
            self._shape = shape
        return self._buffer

    def _copied(self, *, upside_down: bool) -> "Image":
        """Return the buffer's content as users see it; the buffer has the monitor's unrotated lines."""
        from PIL.Image import Transpose, frombytes

        assert self._memory is not None
        kind, width, height, stride = self._shape
        order, transform = _FORMATS.get(kind), self._output.transform
        if order is None:
            raise EnvironmentLacksError(f"The compositor sends an unknown pixel format ({kind:#x}).")
        up = -1 if upside_down else 1
        image = frombytes("RGB", (width, height), self._memory[:], "raw", order, stride, up)
        turn = (None, Transpose.ROTATE_270, Transpose.ROTATE_180, Transpose.ROTATE_90)[transform & 3]
        image = image if turn is None else image.transpose(turn)
        return image.transpose(Transpose.FLIP_LEFT_RIGHT) if transform & 4 else image


#: Interfaces that a compositor must offer.
NEEDED = (SCREENCOPY, POINTERS, KEYBOARDS, "wl_shm", "wl_seat")
_PANELS = "Panels, notifications and open menus are unknown here: a click on them counts for the window below."


def missing_on(environ: Mapping[str, str]) -> list[str]:
    """Return the needed interfaces that an environment's compositor does not offer. Raises EnvironmentLacksError."""
    with closing(Connection(socket_of(environ))) as connection:
        return [one for one in NEEDED if not connection.has(one)]


class WlrootsDesktop(WaylandDesktop):
    """A desktop with wlroots' protocols. `OpenDesktop` describes arguments and errors."""

    def __init__(self, stop: StopSwitch, monitor: int | None = None, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(stop, environ)
        self.screen = WlrootsScreen(self._path, monitor)
        self.monitors, self.home = self.screen.monitors, self.screen.home
        self._pointer = Pointer(self.home.rounded())
        self._clipboard = WlrootsClipboard(self._path)
        self._has_names = self._offers(TOPLEVELS)
        is_sway = bool(os.environ.get("SWAYSOCK"))
        self.abilities = Abilities(
            windows=is_sway,
            names=self._has_names,
            takeover=self._tells_idle(),
            stop_key=is_sway,
            remarks=(*((_PANELS,) if is_sway else ()), NO_CORNER),
        )

    @cached_property
    def _input(self) -> WlrootsInput:
        return WlrootsInput(self._path, self._pointer)

    @cached_property
    def text_entry(self) -> TextEntry:
        """Text is entered by keys only, which touch no clipboard. Inner line ends are Enter too."""
        return CheckedTextEntry(self.open_windows, lambda typing: self._input.type(typing.text, typing.before_key))

    @override
    def open_windows(self) -> Windows | None:
        found = open_windows(self._pointer)
        return ToplevelWindows(self._path, self._pointer) if found is None and self._has_names else found

    @override
    def open_elements(self) -> Elements | None:
        return super().open_elements() if self.abilities.windows else None

    def watch(self, stop_key: str, takeover: TakeoverWatch | None) -> str:
        parse_chord(stop_key)
        self._watches.callback(SeatWatch(self._path, self._stop, takeover).close)
        if not self.abilities.stop_key:
            return ""
        key = SwayStopKey(self._stop, stop_key)
        self._watches.callback(key.close)
        return key.remark

    def check_input(self) -> str:
        with closing(WlrootsInput(self._path, self._pointer)):
            return "a pointer and a keyboard of our own"
