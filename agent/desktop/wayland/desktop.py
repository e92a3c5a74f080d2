"""What the Wayland desktops share: an assumed pointer position, text entry that checks the focus, and the watch.

Wayland reports neither the pointer position nor held keys to clients, only when a seat becomes idle and active again.
Our own events count as activity too, so only activity while the hand rests is attributed to the user.
"""

import os
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property

from agent.desktop.apps.launcher import Launcher
from agent.desktop.input.hand import InputHand
from agent.desktop.linux_desktop import LinuxDesktop, Typing
from agent.desktop.protocol.desktop import TakeoverWatch
from agent.desktop.protocol.hand import Hand, Input
from agent.desktop.protocol.windows import OpenWindows
from agent.desktop.wayland.devices import EVDEV, Stroke
from agent.desktop.wayland.wire import Arguments, Connection, socket_of
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

#: Idle-notification interfaces, the newer first, with the opcode of the request and the order of its arguments: new
#: object, milliseconds, seat in the first; new object, seat, milliseconds in the second.
NOTIFIERS = (("ext_idle_notifier_v1", 1, "nuo"), ("org_kde_kwin_idle", 0, "nou"))
_RESUMED = 1
#: Milliseconds without input after which the next input is reported.
_IDLE = 150
_POLL = 0.2


class SeatWatch:
    """Watches until it is closed or the stop switch is set; sets it when the compositor goes away.

    `takeover` is None for a run that cannot be paused. Raises EnvironmentLacksError: the compositor cannot be reached.
    """

    def __init__(self, path: str, stop: StopSwitch, takeover: TakeoverWatch | None) -> None:
        self._stop = stop
        self._takeover = takeover
        self._closed = threading.Event()
        self._connection = Connection(path)
        try:
            if takeover is not None:
                self._ask()
        except BaseException:
            self._connection.close()
            raise
        threading.Thread(target=self._run, name="seat watch", daemon=True).start()

    def close(self) -> None:
        """Stop watching; does not wait."""
        self._closed.set()

    def _ask(self) -> None:
        connection = self._connection
        known = next((one for one in NOTIFIERS if connection.has(one[0])), None)
        if known is None:
            return
        interface, opcode, order = known
        notifier, seat = connection.bind(interface, 1), connection.bind("wl_seat", 1)
        values = {"n": connection.new(self._heard), "u": _IDLE, "o": seat}
        connection.request(notifier, opcode, order, *(values[kind] for kind in order))

    def _heard(self, opcode: int, _: Arguments) -> None:
        takeover = self._takeover
        if opcode == _RESUMED and takeover is not None and takeover.counts and not takeover.is_ours(None):
            takeover.used()

    def _run(self) -> None:
        try:
            while not self._closed.is_set() and not self._stop.stopped:
                self._connection.pump(_POLL)
        except EnvironmentLacksError as error:
            if not self._closed.is_set():
                self._stop.fail(error)
        finally:
            with suppress(OSError):
                self._connection.close()


#: The focus is checked once per this many keys, because a check takes as long as a key.
_LOOK_EVERY = 8


class CheckedTextEntry:
    """Text entry that stops when another window takes the focus, and reports how much was typed.

    `enter_text` enters a text that is not empty and does not end in a line end.
    """

    def __init__(self, open_windows: OpenWindows, enter_text: Callable[[Typing], None]) -> None:
        self._open_windows = open_windows
        self._enter_text = enter_text

    def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
        windows = self._open_windows()
        with nullcontext() if windows is None else closing(windows):
            now = (lambda: None) if windows is None else windows.active
            typing = Typing(text, press, check_stop, now(), now, _LOOK_EVERY)
            typing.enter(lambda: self._enter_text(typing))


#: Seconds between two keys: toolkits that draw slowly lose faster input.
_BETWEEN = 0.004
NO_CORNER = "On Wayland, the pointer in a corner of the screen does not stop a run."


@dataclass(slots=True)
class Pointer:
    """Where a run moved the pointer last, in desktop units, as compositors do not report it."""

    at: tuple[int, int]


class WaylandInput(Input):
    """What our mouse and keyboard share on every Wayland desktop, which reports neither pointer nor held keys."""

    def __init__(self, pointer: Pointer) -> None:
        self._at = pointer

    @abstractmethod
    def _key(self, code: int, *, down: bool) -> None:
        """Press or release a key, by its Linux code."""

    def position(self) -> tuple[int, int]:
        return self._at.at

    def lost(self, error: Exception) -> Exception:
        return EnvironmentLacksError(f"This desktop takes no more input ({error}).", "Is the session still running?")

    def _stroke(self, stroke: Stroke) -> None:
        """Press and release a key, with shift if the stroke needs it."""
        keys = [EVDEV["keys"]["shift"], stroke.code] if stroke.shift else [stroke.code]
        try:
            for code in keys:
                self._key(code, down=True)
        finally:
            for code in reversed(keys):
                self._key(code, down=False)
        time.sleep(_BETWEEN)


class WaylandDesktop(LinuxDesktop):
    """The base of every desktop on Wayland."""

    def __init__(self, stop: StopSwitch, environ: Mapping[str, str] | None) -> None:
        self._stop = stop
        self._environ = os.environ if environ is None else environ
        self._path = socket_of(os.environ)
        self.name = os.environ.get("WAYLAND_DISPLAY", "")
        self._watches = ExitStack()
        self.applications = Launcher(environ, self.open_windows)

    @property
    @abstractmethod
    def _input(self) -> Input:
        """The pointer and keyboard, created on first use."""

    @cached_property
    def hand(self) -> Hand:
        return InputHand(self._stop, self._input, self.text_entry, self.applications)

    def _offers(self, *interfaces: str) -> bool:
        """Whether the compositor offers at least one of these interfaces."""
        with closing(Connection(self._path)) as connection:
            return any(map(connection.has, interfaces))

    def _tells_idle(self) -> bool:
        """Whether the compositor reports when the user uses mouse or keyboard."""
        return self._offers(*(name for name, *_ in NOTIFIERS))

    def shows(self, environ: Mapping[str, str]) -> bool:
        return socket_of(environ) == self._path

    def close(self) -> None:
        self._watches.close()
