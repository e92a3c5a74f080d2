"""Passes the events of a run, in order and on the loop's thread, to one function: the receiver.

An exception of the receiver (a full disk, a closed pipe) ends the run and reaches the caller. It must not count as a
failure of the run itself.
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
        if self._failure is not None:  # the receiver gets no more events, and a run must not go on unseen
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
        """Pass on the last event. An exception of the receiver is raised unchanged."""
        self._open = False
        self._receiver(last)
