"""Notices on GNOME that the person uses mouse or keyboard: Mutter tells for how long nobody has.

Our own events count there too, so what counts is what comes while the hand rests, by one clock.
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
#: Seconds between two looks, one of which takes 2 ms.
_POLL = 0.1
#: Seconds in which what our own hand did may still be counted, on a busy machine.
_SETTLES = 0.3
#: By so much two answers about the same act may differ: milliseconds, and the way of the question.
_SAME = 0.02
_PATIENCE = 5.0
_WHAT = "used mouse or keyboard"


def tells_idle(environ: Mapping[str, str]) -> bool:
    """Whether the desktop of an environment tells it."""
    with suppress(BusError):
        return idle_seconds(environ) >= 0
    return False


def idle_seconds(environ: Mapping[str, str]) -> float:
    """For how long nobody has used mouse or keyboard. Raises BusError: nobody tells."""
    with Bus(environ, _PATIENCE) as bus:
        [milliseconds] = bus.call(_CORE, "GetIdletime")
    return float(milliseconds) / 1000


class IdleWatch:
    """Watches until it is closed, or the desktop tells no more.

    Args:
        environ: of the desktop's programs.
        takeover: whom to tell.
        is_ours: whether the person uses our own terminal, where that is known from elsewhere than the windows.
    """

    def __init__(
        self, environ: Mapping[str, str], takeover: TakeoverWatch, is_ours: Callable[[], bool] = lambda: False
    ) -> None:
        self._environ = environ
        self._takeover = takeover
        self._is_ours = is_ours
        self._judged = time.monotonic() + _SETTLES  # acts before are of no interest: the command was just typed
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="idle watch", daemon=True).start()

    def close(self) -> None:
        """Stop watching; does not wait."""
        self._closed.set()

    def _run(self) -> None:
        with suppress(BusError):  # a lost desktop is told by the watch on it
            while not self._closed.wait(_POLL):
                self._look()

    def _look(self) -> None:
        """Raises BusError."""
        takeover, rest = self._takeover, self._takeover.rest
        rested = rest.since
        if takeover.steering.paused:
            self._judged = time.monotonic() + _SETTLES  # what the person does until they let the run go on is no news
        if rest.busy or takeover.steering.paused:
            return
        acted = time.monotonic() - idle_seconds(self._environ)
        if rest.busy or rest.since != rested:  # the hand began under this look
            return
        if acted <= max(rested + _SETTLES, self._judged):
            return
        self._judged = acted + _SAME
        if not (takeover.is_ours(None) or self._is_ours()):
            takeover.steering.user_acted(_WHAT)
