"""One session in which a desktop lets itself be seen and touched, whoever opened it (see `consent.py` and `mutter.py`).

Everything in it belongs together: what is captured is where the pointer goes, and all of it ends at once, when the
person presses the desktop's own "stop sharing", when the desktop goes away, and with this process.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from agent.core.geometry import Region
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.bus import SessionBus

#: In which units a stream's points are told: pixels of its frames, or the desktop's own (logical) units.
Units: TypeAlias = Literal["pixels", "logical"]
Axis: TypeAlias = Literal["vertical", "horizontal"]
#: What D-Bus calls the axes of a wheel.
AXES: dict[Axis, int] = {"vertical": 0, "horizontal": 1}


@dataclass(frozen=True, slots=True)
class Stream:
    """One monitor that may be seen."""

    node: int  # of PipeWire
    region: Region  # where it lies, in desktop units
    handle: int | str  # what calls of input name it by
    mapping: str = ""  # what libei names it by; "" where that is not told


@dataclass(frozen=True, slots=True)
class ClipboardListener:
    """Who is told of the clipboard, on the thread that receives."""

    changed: Callable[[Sequence[str], bool], object]  # what it can be had as now, and whether it is ours
    wanted: Callable[[str, int], object]  # somebody wants it as a kind; the number of that transfer


class Session(Protocol):
    """See above. Every method but `close` raises BusError; used from any thread."""

    @property
    def monitors(self) -> Sequence[Region]:
        """All monitors that are known of, in desktop units."""

    @property
    def stream(self) -> Stream:
        """The one that is seen and touched."""

    @property
    def units(self) -> Units:
        """In which units `move` counts."""

    @property
    def unscaled_only(self) -> bool:
        """Whether `move` refuses points beyond the stream's size in desktop units, whatever its frames have."""

    @property
    def has_clipboard(self) -> bool:
        """Whether the clipboard may be used too."""

    def move(self, x: float, y: float) -> None:
        """Move the pointer to a point of the stream."""

    def button(self, code: int, *, down: bool) -> None:
        """Press or release a button, by Linux's number."""

    def key(self, code: int, *, down: bool) -> None:
        """Press or release a key, by Linux's number."""

    def wheel(self, axis: Axis, steps: int) -> None:
        """Turn the wheel; down and to the right are positive."""

    def pipewire(self) -> int:
        """A connection to PipeWire on which the streams are; who asks closes it."""

    def eis(self) -> int | None:
        """A connection for libei, after which the calls of input above are refused; None where there is none."""

    def listen_clipboard(self, listener: ClipboardListener) -> None:
        """Tell of the clipboard from now on, and of what it holds already."""

    def give_clipboard(self, kinds: Sequence[str]) -> None:
        """Own the clipboard, offering it as these."""

    def read_clipboard(self, kind: str) -> int:
        """A pipe out of which comes what the clipboard holds as that kind; who asks closes it."""

    def write_clipboard(self, serial: int) -> int:
        """A pipe into which what was wanted goes; who asks closes it."""

    def clipboard_written(self, serial: int, *, done: bool) -> None:
        """What was wanted is in the pipe, or is not to be had."""

    @property
    def is_lost(self) -> bool:
        """Whether it ended because who gave it is gone, and not by anybody's wish."""

    def on_closed(self, listener: Callable[[], object]) -> None:
        """Have it told, once, when the session ended without our doing; at once where it has."""

    def close(self) -> None:
        """End it; what is held down comes up. Never raises; safe to call twice."""


class BaseSession:
    """What all sessions have in common: a bus that is theirs, an end that is told once, and news of the clipboard.

    Args:
        bus: is closed with the session.
    """

    def __init__(self, bus: SessionBus) -> None:
        self._bus = bus
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], object]] = []
        self._ended = False  # without our doing
        self._closed = False
        self.is_lost = False
        self._clipboard: ClipboardListener | None = None
        self._held: tuple[Sequence[str], bool] = ((), False)  # what was told of the clipboard last

    def listen_clipboard(self, listener: ClipboardListener) -> None:
        """See `Session.listen_clipboard`."""
        self._clipboard = listener
        listener.changed(*self._held)

    def clipboard_changed(self, options: Mapping[str, Any]) -> None:
        """The desktop told what the clipboard holds."""
        self._held = _told(options)
        if self._clipboard is not None:
            self._clipboard.changed(*self._held)

    def clipboard_wanted(self, kind: str, serial: int) -> None:
        """Somebody wants what we gave."""
        if self._clipboard is not None:
            self._clipboard.wanted(kind, serial)

    def on_closed(self, listener: Callable[[], object]) -> None:
        """See `Session.on_closed`."""
        with self._lock:
            self._listeners.append(listener)
            ended = self._ended
        if ended:
            listener()

    def ended(self, _: tuple[Any, ...] = ()) -> None:
        """The desktop ended the session."""
        with self._lock:
            if self._ended or self._closed:
                return
            self._ended = True
            listeners = list(self._listeners)
        for listener in listeners:
            with suppress(Exception):
                listener()

    def lost(self) -> None:
        """Who gave the session is gone."""
        with self._lock:
            self.is_lost = self.is_lost or not self._ended
        self.ended()

    def close(self) -> None:
        """See `Session.close`."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            with suppress(BusError):
                self._end()
            self._bus.close()

    def _end(self) -> None:
        """Say that it ends; who hangs up is heard in any case."""


def _told(options: Mapping[str, Any]) -> tuple[list[str], bool]:
    """What a clipboard that changed can be had as, and whether it is ours: in Mutter's words, or the portal's."""
    plain = {name.replace("_", "-"): value for name, (_, value) in options.items()}
    kinds = plain.get("mime-types", ())
    if isinstance(kinds, tuple):  # the list is packed once more
        kinds = kinds[0] if kinds else ()
    return [str(one) for one in kinds], bool(plain.get("session-is-owner"))
