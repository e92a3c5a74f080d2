"""The stop switch: one flag that every input primitive checks before it moves or presses anything.

It does not depend on the loop: setting it from a signal handler or any thread is enough for the hand to stop between
two events, while a long drag or key hold is under way.
"""

import threading
from collections.abc import Callable

from agent.errors import AgentError, StoppedError


class StopSwitch:
    """Set once, never unset; safe from any thread and from signal handlers."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._reason = ""
        self._error: AgentError = StoppedError("Stopped.")
        self._listeners: list[Callable[[], None]] = []

    def stop(self, reason: str) -> None:
        """Stop everything; the first reason is kept."""
        self._set(reason, StoppedError(f"Stopped: {reason}."))

    def fail(self, error: AgentError) -> None:
        """End everything in the same way, because it cannot go on: whoever waits gets this error."""
        self._set(error.what.rstrip("."), error)

    def _set(self, reason: str, error: AgentError) -> None:
        if self._reason:  # not the event: a second signal may arrive inside its set(), whose lock is not reentrant
            return
        self._reason, self._error = reason, error
        self._event.set()
        for listener in list(self._listeners):
            listener()

    def on_stop(self, listener: Callable[[], None]) -> None:
        """Call `listener` when it is set, on whatever thread that happens; at once if it is set already."""
        self._listeners.append(listener)
        if self._event.is_set():
            listener()

    @property
    def stopped(self) -> bool:
        """Whether it was set."""
        return self._event.is_set()

    @property
    def reason(self) -> str:
        """Why, as one clause; "" while it is not set."""
        return self._reason

    def check(self) -> None:
        """Raise StoppedError if it was set, or the error it was set with."""
        if self._event.is_set():
            raise self._error

    def sleep(self, seconds: float) -> None:
        """Sleep, but wake up and raise as `check` does when it is set."""
        if self._event.wait(seconds):
            self.check()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it is set; False after the timeout."""
        return self._event.wait(timeout)
