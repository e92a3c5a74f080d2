"""Detects on GNOME that the user uses mouse or keyboard, from Mutter's idle time.

Our own events reset the idle time too, so only activity while the hand rests counts. All times use one clock.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from jeepney import DBusAddress

from agent.desktop.linux.bus import Bus, BusError
from agent.desktop.protocol.desktop import TakeoverWatch

_MONITOR = "org.gnome.Mutter.IdleMonitor"
_CORE = DBusAddress("/org/gnome/Mutter/IdleMonitor/Core", _MONITOR, _MONITOR)
#: Polling interval in seconds; each poll takes 2 ms.
_POLL = 0.1
#: Seconds during which our own input may still reset the idle time, on a busy machine.
_SETTLES = 0.3
#: Seconds by which two times computed for the same event may differ: rounding to milliseconds, and the call's latency.
_SAME = 0.02
_PATIENCE = 5.0
_WHAT = "used mouse or keyboard"


def tells_idle(environ: Mapping[str, str]) -> bool:
    """Whether the desktop of an environment reports the idle time."""
    with suppress(BusError):
        return idle_seconds(environ) >= 0
    return False


def idle_seconds(environ: Mapping[str, str]) -> float:
    """Return the seconds since the last mouse or keyboard input. Raises BusError: the desktop does not report it."""
    with Bus(environ, _PATIENCE) as bus:
        [milliseconds] = bus.call(_CORE, "GetIdletime")
    return float(milliseconds) / 1000


class IdleWatch:
    """Watches until it is closed or the desktop stops reporting the idle time.

    `is_ours` returns whether the user is in our own terminal, for desktops that do not report their windows.
    """

    def __init__(
        self, environ: Mapping[str, str], takeover: TakeoverWatch, is_ours: Callable[[], bool] = lambda: False
    ) -> None:
        self._environ = environ
        self._takeover = takeover
        self._is_ours = is_ours
        self._judged = time.monotonic() + _SETTLES  # earlier input does not count: the user has just typed the command
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="idle watch", daemon=True).start()

    def close(self) -> None:
        """Stop watching; does not wait."""
        self._closed.set()

    def _run(self) -> None:
        with suppress(BusError):  # the seat watch reports a lost desktop
            while not self._closed.wait(_POLL):
                self._look()

    def _look(self) -> None:
        """Check once. Raises BusError."""
        takeover, rest = self._takeover, self._takeover.rest
        rested = rest.since
        if takeover.steering.paused:
            self._judged = time.monotonic() + _SETTLES  # input during a pause does not count as a takeover
        if rest.busy or takeover.steering.paused:
            return
        acted = time.monotonic() - idle_seconds(self._environ)
        if rest.busy or rest.since != rested:  # the hand started to act during this check
            return
        if acted <= max(rested + _SETTLES, self._judged):
            return
        self._judged = acted + _SAME
        if not (takeover.is_ours(None) or self._is_ours()):
            takeover.steering.user_acted(_WHAT)
