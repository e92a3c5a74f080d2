"""Watches the compositor during a run: whether it still runs, and whether the user uses mouse or keyboard.

Wayland reports neither the pointer position nor held keys to clients, only when a seat becomes idle and active again.
Our own events count as activity too, so only activity while the hand rests is attributed to the user.
"""

import threading
import time
from contextlib import suppress

from agent.desktop.protocol.desktop import TakeoverWatch
from agent.desktop.wayland.wire import Arguments, Connection
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

#: Idle-notification interfaces, the newer first, with the opcode of the request and the order of its arguments: new
#: object, milliseconds, seat in the one; new object, seat, milliseconds in the other.
NOTIFIERS = (("ext_idle_notifier_v1", 1, "nuo"), ("org_kde_kwin_idle", 0, "nou"))
_RESUMED = 1
#: Milliseconds without input after which the next input is reported.
_IDLE = 150
#: Seconds during which our own input may still be reported, because this thread runs late on a busy machine.
_SETTLES = 0.3
_POLL = 0.2
_WHAT = "used mouse or keyboard"


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
        if opcode != _RESUMED or takeover is None or takeover.rest.busy:
            return
        if time.monotonic() - takeover.rest.since < _SETTLES or takeover.steering.paused or takeover.is_ours(None):
            return
        takeover.steering.user_acted(_WHAT)

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
