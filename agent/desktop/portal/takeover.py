"""Detects on GNOME that the user uses mouse or keyboard, from Mutter's idle time, and where the focus is then.

Our own events reset the idle time too, so only activity while the hand rests counts. All times use one clock. Without
our extension, GNOME reports the focused application nowhere but on the accessibility bus.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from jeepney import DBusAddress

from agent.desktop.guard.own_windows import processes_above
from agent.desktop.linux.bus import Bus, BusError
from agent.desktop.protocol.desktop import SETTLES, TakeoverWatch
from agent.desktop.trees.applications import Application, introduce, registered
from agent.desktop.trees.bus import Bus as TreeBus
from agent.desktop.trees.bus import Limits, Question
from agent.desktop.trees.roles import ACTIVE, has
from agent.desktop.trees.switch import buses
from agent.desktop.trees.tree import children, method, refs, states_of
from foundation.errors import EnvironmentLacksError

_MOST_WINDOWS = 50
#: Timeouts in seconds. A query takes some 10 ms; an application that hangs must not delay typing.
_LIMITS = Limits(silence=0.2, total=0.3, working=1.0)


def active_application(session: str) -> str:
    """Return the accessible name of the application with the focus; "" if none reports it."""
    found = _look(session)
    return "" if found is None else found.name


def terminal_has_focus(session: str) -> bool:
    """Whether the terminal that runs us has the focus. Also true if nothing reports it, as many terminals do not."""
    found, own = _look(session), processes_above()
    return bool(own) and (found is None or found.pid in own)


def _look(session: str) -> Application | None:
    """Return the focused application, or None unless exactly one reports the focus."""
    with suppress(EnvironmentLacksError):
        for address in buses(session):
            bus = TreeBus(address, _LIMITS)
            try:
                return bus.ask(_active())
            finally:
                bus.close()
    return None


def _active() -> Question[Application | None]:
    applications = yield from registered()
    replies = yield [children(ref) for ref in applications or ()]
    windows = [
        (application, window)
        for application, body in zip(applications or (), replies, strict=True)
        for window in refs(body, _MOST_WINDOWS)
    ]
    states = yield [method(window, "Accessible", "GetState", "au") for _, window in windows]
    having = [one for (one, _), body in zip(windows, states, strict=True) if has(states_of(body), ACTIVE)]
    if len(having) != 1:  # an application that hangs may still report an old focus
        return None
    return (yield from introduce(having[0]))


_MONITOR = "org.gnome.Mutter.IdleMonitor"
_CORE = DBusAddress("/org/gnome/Mutter/IdleMonitor/Core", _MONITOR, _MONITOR)
#: Polling interval in seconds; each poll takes 2 ms.
_POLL = 0.1
#: Seconds by which two times computed for the same event may differ: rounding to milliseconds, and the call's latency.
_SAME = 0.02
_TIMEOUT = 5.0


def tells_idle(environ: Mapping[str, str]) -> bool:
    """Whether the desktop of an environment reports the idle time."""
    with suppress(BusError), Bus(environ, _TIMEOUT) as bus:
        return _idle_seconds(bus) >= 0
    return False


def _idle_seconds(bus: Bus) -> float:
    """Return the seconds since the last mouse or keyboard input. Raises BusError: the desktop does not report it."""
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
        self._judged = time.monotonic() + SETTLES  # earlier input does not count: the user has just typed the command
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="idle watch", daemon=True).start()

    def close(self) -> None:
        """Stop watching; does not wait."""
        self._closed.set()

    def _run(self) -> None:
        with suppress(BusError), Bus(self._environ, seconds=_TIMEOUT) as bus:  # the seat watch reports a lost desktop
            while not self._closed.wait(_POLL):
                self._look(bus)

    def _look(self, bus: Bus) -> None:
        """Check once. Raises BusError."""
        takeover, rest = self._takeover, self._takeover.rest
        rested = rest.since
        if takeover.steering.paused:
            self._judged = time.monotonic() + SETTLES  # input during a pause does not count as a takeover
        if rest.busy or takeover.steering.paused:
            return
        acted = time.monotonic() - _idle_seconds(bus)
        if rest.busy or rest.since != rested:  # the hand started to act during this check
            return
        if acted <= max(rested + SETTLES, self._judged):
            return
        self._judged = acted + _SAME
        if not (takeover.is_ours(None) or self._is_ours()):
            takeover.used()
