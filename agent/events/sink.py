"""Where the events of a run go: one function, called on the loop's thread in the order in which things happen.

What that function raises (a full disk, a closed pipe) ends the run and reaches whoever started it; it must not be taken
for a failure of the run itself.
"""

from collections.abc import Callable
from typing import TypeAlias

from agent.events.run_events import Event

Emit: TypeAlias = Callable[[Event], None]


class SinkFailedError(BaseException):
    """The receiver of the events raised `error`. It is a BaseException, so that no `except Exception` catches it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Sink:
    """Passes events on until it is closed, so that a request that is slow to cancel emits nothing after the end."""

    def __init__(self, receiver: Emit) -> None:
        self._receiver = receiver
        self._open = True
        self._failure: SinkFailedError | None = None
        self.count = 0

    def emit(self, event: Event) -> None:
        """Pass an event on. Raises SinkFailedError."""
        if self._failure is not None:  # it gets nothing more, and a run must not go on unseen
            raise self._failure
        if not self._open:
            return
        self.count += 1
        try:
            self._receiver(event)
        except Exception as error:
            self._failure = SinkFailedError(error)
            raise self._failure from error

    def close(self, last: Event) -> None:
        """Pass on the last event; what the receiver raises then is raised as it is."""
        self._open = False
        self._receiver(last)
