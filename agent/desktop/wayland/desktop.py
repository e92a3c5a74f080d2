"""What the Wayland desktops share: the compositor's socket, an assumed pointer position, and the watches."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property

from agent.core.geometry import DesktopPoint
from agent.desktop.apps.launcher import Launcher
from agent.desktop.input.hand import InputHand
from agent.desktop.linux_desktop import LinuxDesktop
from agent.desktop.protocol.desktop import Applications, TextEntry
from agent.desktop.protocol.hand import Hand, Input
from agent.desktop.protocol.input_log import InputLog
from agent.desktop.wayland.keys import EVDEV, Stroke
from agent.desktop.wayland.seat_watch import NOTIFIERS
from agent.desktop.wayland.wire import Connection, socket_of
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

#: Seconds between two keys: toolkits that draw slowly lose faster input.
_BETWEEN = 0.004
NO_CORNER = "On Wayland, the pointer in a corner of the screen does not stop a run."


@dataclass(slots=True)
class Pointer:
    """Where a run moved the pointer last, in desktop units, as compositors do not report it."""

    at: tuple[int, int]


class WaylandInput(ABC):
    """What our mouse and keyboard share on every Wayland desktop, which reports neither pointer nor held keys."""

    def __init__(self, pointer: Pointer) -> None:
        self._at = pointer

    @abstractmethod
    def _key(self, code: int, *, down: bool) -> None:
        """Press or release a key, by its Linux code."""

    def position(self) -> tuple[int, int]:
        return self._at.at

    def held(self) -> list[str]:
        return []

    def set_busy(self, busy: bool) -> None: ...  # noqa: B027 -- nothing depends on it on Wayland

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

    home: DesktopPoint
    text_entry: TextEntry

    def __init__(self, stop: StopSwitch, environ: Mapping[str, str] | None) -> None:
        self._stop = stop
        self._environ = os.environ if environ is None else environ
        self._path = socket_of(os.environ)
        self.name = os.environ.get("WAYLAND_DISPLAY", "")
        self._watches = ExitStack()
        self.applications: Applications = Launcher(environ, self.open_windows)

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

    def open_input_log(self) -> InputLog | None:
        return None

    def shows(self, environ: Mapping[str, str]) -> bool:
        return socket_of(environ) == self._path

    def close(self) -> None:
        self._watches.close()
