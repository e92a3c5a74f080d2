"""The stop switch: one flag that every input primitive checks before it moves or presses anything.

It does not depend on the loop: setting it from a signal handler or any thread is enough for the hand to stop between
two events, while a long drag or key hold is under way. A signal handler runs in the middle of whatever the main thread
does, so nothing here takes a lock that the interrupted code could hold: a `threading.Event` would.
"""

import threading
from collections.abc import Callable
from contextlib import suppress

from foundation.errors import MaiError, StoppedError


class StopSwitch:
    """Set once, never unset; safe from any thread and from signal handlers."""

    def __init__(self) -> None:
        self._stopped = False
        self._once = threading.Lock()  # only ever tried, never waited for
        self._gates: list[threading.Lock] = []  # one for each waiter, opened when it is set
        self._reason = ""
        self._error: MaiError = StoppedError("Stopped.")
        self._listeners: list[Callable[[], object]] = []

    def stop(self, reason: str) -> None:
        """Stop everything; the first reason is kept."""
        self._set(reason, StoppedError(f"Stopped: {reason}."))

    def fail(self, error: MaiError) -> None:
        """End everything in the same way, because it cannot go on: whoever waits gets this error."""
        self._set(error.what.rstrip("."), error)

    def _set(self, reason: str, error: MaiError) -> None:
        if not self._once.acquire(blocking=False):  # the first one is at it or done, perhaps right under this signal
            return
        self._reason, self._error = reason, error
        self._stopped = True
        for gate in list(self._gates):
            with suppress(RuntimeError):  # it gave up waiting
                gate.release()
        for listener in list(self._listeners):
            with suppress(Exception):  # one that fails must not keep the others from hearing it
                listener()

    def on_stop(self, listener: Callable[[], object]) -> None:
        """Call `listener` when it is set, on whatever thread that happens; at once if it is set already."""
        self._listeners.append(listener)
        if self._stopped:
            listener()

    @property
    def stopped(self) -> bool:
        """Whether it was set."""
        return self._stopped

    @property
    def reason(self) -> str:
        """Why, as one clause; "" while it is not set."""
        return self._reason

    def check(self) -> None:
        """Raise StoppedError if it was set, or the error it was set with."""
        if self._stopped:
            raise self._error

    def sleep(self, seconds: float) -> None:
        """Sleep, but wake up and raise as `check` does when it is set."""
        if self.wait(seconds):
            self.check()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it is set; False after the timeout."""
        gate = threading.Lock()
        gate.acquire()
        self._gates.append(gate)
        try:
            if not self._stopped:  # looked at after the gate is known: who sets it in between opens the gate
                gate.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
        finally:
            self._gates.remove(gate)
        return self._stopped
