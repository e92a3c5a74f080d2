"""One session in which a desktop lets itself be seen and touched, whoever opened it (see `consent.py` and `mutter.py`).

Everything in it belongs together: what is captured is where the pointer goes, and all of it ends at once, when the
person presses the desktop's own "stop sharing", when the desktop goes away, and with this process.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agent.core.geometry import Region
from agent.desktop.linux.bus import Bus, BusError

#: The units of a stream's points: pixels of its frames, or the desktop's own (logical) units.
Units: TypeAlias = Literal["pixels", "logical"]
Axis: TypeAlias = Literal["vertical", "horizontal"]
#: D-Bus's numbers of a wheel's axes.
_AXES: dict[Axis, int] = {"vertical": 0, "horizontal": 1}
#: The interface of input, and that of the clipboard where it is another one.
REMOTE, CLIPBOARD = "RemoteDesktop", "Clipboard"


@dataclass(frozen=True, slots=True)
class Stream:
    """One monitor that may be seen."""

    node: int  # of PipeWire
    region: Region  # where it lies, in desktop units
    handle: int | str  # what calls of input name it by
    mapping: str = ""  # what libei names it by; "" where that is not told


@dataclass(frozen=True, slots=True)
class ClipboardListener:
    """Callbacks for the clipboard, on the thread that receives."""

    changed: Callable[[Sequence[str], bool], object]  # its kinds, and whether it is ours
    wanted: Callable[[str, int], object]  # an application asks for a kind; the number of that transfer


class Session(ABC):
    """Input, frames and clipboard of a session. Every method but `close` raises BusError; used from any thread.

    Args:
        bus: is closed with the session.
    """

    monitors: Sequence[Region]  # all that are known of, in desktop units
    stream: Stream  # the monitor that is seen and touched
    units: Units  # of `move`
    #: Whether `move` refuses points beyond the stream's size in desktop units, whatever its frames have.
    unscaled_only = False
    has_clipboard = True
    #: D-Bus types of the stream's handle, of whether a button or key is down, and of a key; a name of an option.
    handle_type: str
    down_type: str
    key_type: str
    mime_types: str

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], object]] = []
        self._ended = False  # without our doing
        self._closed = False
        self.is_lost = False  # it ended because the program that gave it is gone
        self._clipboard: ClipboardListener | None = None
        self._held: tuple[Sequence[str], bool] = ((), False)  # the last state of the clipboard

    @abstractmethod
    def _call(self, interface: str, member: str, signature: str = "", *body: Any) -> tuple[Any, ...]:
        """Call a method of the session."""

    @abstractmethod
    def _notify(self, member: str, signature: str, *body: Any) -> None:
        """Send an event of input."""

    @abstractmethod
    def _end(self) -> None:
        """Tell the desktop that the session ends."""

    @abstractmethod
    def pipewire(self) -> int:
        """A connection to PipeWire on which the streams are; the caller closes it."""

    @abstractmethod
    def eis(self) -> int | None:
        """A connection for libei, after which the calls of input below are refused; None where there is none."""

    def move(self, x: float, y: float) -> None:
        """Move the pointer to a point of the stream."""
        self._notify("PointerMotionAbsolute", f"{self.handle_type}dd", self.stream.handle, float(x), float(y))

    def button(self, code: int, *, down: bool) -> None:
        """Press or release a button, by Linux's number."""
        self._notify("PointerButton", f"i{self.down_type}", code, down)

    def key(self, code: int, *, down: bool) -> None:
        """Press or release a key, by Linux's number."""
        self._notify("KeyboardKeycode", f"{self.key_type}{self.down_type}", code, down)

    def wheel(self, axis: Axis, steps: int) -> None:
        """Turn the wheel; down and to the right are positive."""
        self._notify("PointerAxisDiscrete", "ui", _AXES[axis], steps)

    def give_clipboard(self, kinds: Sequence[str]) -> None:
        """Own the clipboard, offering it as these kinds."""
        self._call(CLIPBOARD, "SetSelection", "a{sv}", {self.mime_types: ("as", list(kinds))})

    def read_clipboard(self, kind: str) -> int:
        """A pipe with what the clipboard holds as that kind; the caller closes it."""
        return self._file(CLIPBOARD, "SelectionRead", "s", kind)

    def write_clipboard(self, serial: int) -> int:
        """A pipe for the data of a transfer; the caller closes it."""
        return self._file(CLIPBOARD, "SelectionWrite", "u", serial)

    def clipboard_written(self, serial: int, *, done: bool) -> None:
        """Tell whether the data of a transfer is in the pipe."""
        self._call(CLIPBOARD, "SelectionWriteDone", "ub", serial, done)

    def listen_clipboard(self, listener: ClipboardListener) -> None:
        """Tell of the clipboard from now on, and of what it holds already."""
        self._clipboard = listener
        listener.changed(*self._held)

    def clipboard_changed(self, options: Mapping[str, Any]) -> None:
        """The desktop told what the clipboard holds: in Mutter's words, or the portal's."""
        plain = {name.replace("_", "-"): value for name, (_, value) in options.items()}
        kinds = plain.get("mime-types", ())
        if isinstance(kinds, tuple):  # the list is packed once more
            kinds = kinds[0] if kinds else ()
        self._held = [str(one) for one in kinds], bool(plain.get("session-is-owner"))
        if self._clipboard is not None:
            self._clipboard.changed(*self._held)

    def clipboard_wanted(self, kind: str, serial: int) -> None:
        """An application wants what we gave."""
        if self._clipboard is not None:
            self._clipboard.wanted(kind, serial)

    def on_closed(self, listener: Callable[[], object]) -> None:
        """Call `listener` once when the session ended without our doing; at once where it has."""
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
        """The program that gave the session is gone."""
        with self._lock:
            self.is_lost = self.is_lost or not self._ended
        self.ended()

    def close(self) -> None:
        """End it; what is held down comes up. Never raises; safe to call twice."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            with suppress(BusError):
                self._end()
            self._bus.close()

    def _file(self, interface: str, member: str, signature: str, *body: Any) -> int:
        return int(self._call(interface, member, signature, *body)[0].to_raw_fd())
