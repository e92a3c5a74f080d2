"""The stop switch: one flag that every input primitive checks before it moves or presses anything.

It does not depend on the loop: setting it from a signal handler or any thread is enough for the hand to stop between
two events, while a long drag or key hold is under way. A signal handler runs in the middle of whatever the main thread
does, so nothing here takes a lock that the interrupted code could hold: a `threading.Event` would.

Python runs signal handlers between two bytecodes of the main thread: not while that thread sits in a long call into C
or in a read that never returns. But the number of every signal is written to the wake-up descriptor at once, so a
thread that reads it can set the switch. Another process can do so too, even while no thread of ours runs. Ordinary
handlers are still installed: without one, a signal has its default effect.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType

from foundation.errors import ExitStatus, MaiError, StoppedError


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
        """Stop everything because of an error; every waiting call raises this error."""
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


#: Signals that stop a run, and what each means.
REASONS: dict[int, str] = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "a signal asked for it"}
if sys.platform != "win32":
    REASONS[signal.SIGHUP] = "the terminal was closed"

#: Seconds that a stopped run may need to let go of keys and buttons; a signal after that ends the program at once.
_LET_GO = 2.0

#: The reading end of the watch that is under way, for other processes.
_current: socket.socket | None = None


class _Signalled:
    """Stops the run at the first signal, and ends the program at once at a much later signal.

    Not at the second one in a row: people press Ctrl-C several times, and keys that are held down must be released
    first.
    """

    def __init__(self, stop: StopSwitch) -> None:
        self._stop = stop
        self._first: float | None = None

    def __call__(self, number: int, _frame: FrameType | None = None) -> None:
        now = time.monotonic()
        self._first = self._first or now
        if now - self._first > _LET_GO:
            os._exit(ExitStatus.STOPPED)
        self._stop.stop(REASONS[number])


@contextmanager
def stop_signals(stop: StopSwitch) -> Iterator[None]:
    """While it is entered, Ctrl-C, SIGTERM and a closed terminal set the stop switch, whatever the main thread does.

    Code that sets another wake-up descriptor meanwhile (asyncio's `add_signal_handler` does; nothing of ours or of
    Textual calls it) takes the watch out of service until it ends: the ordinary handlers remain. On any other thread
    than the main one, nothing is heard: handlers and descriptor are not that thread's to set.
    """
    with ExitStack() as opened:
        if threading.current_thread() is threading.main_thread():
            handler = _Signalled(stop)
            for number in REASONS:
                opened.callback(signal.signal, number, signal.signal(number, handler))
            if sys.platform != "win32":  # asyncio uses the descriptor itself there
                opened.enter_context(_watched_descriptor(stop))
        yield


@contextmanager
def _watched_descriptor(stop: StopSwitch) -> Iterator[None]:
    global _current  # noqa: PLW0603 -- there is one wake-up descriptor in a process
    reading, writing = socket.socketpair()
    with reading, writing:
        writing.setblocking(False)
        before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        outer, _current = _current, reading
        thread = threading.Thread(target=_watch, args=(reading, _Signalled(stop)), name="signals", daemon=True)
        thread.start()
        try:
            yield
        finally:
            _current = outer
            if signal.set_wakeup_fd(-1) == writing.fileno():
                signal.set_wakeup_fd(before)
            writing.shutdown(socket.SHUT_WR)  # the thread reads an end
            thread.join(1)


def _watch(reading: socket.socket, signalled: _Signalled) -> None:
    while numbers := reading.recv(4096, socket.MSG_PEEK):
        heard = next((number for number in numbers if number in REASONS), None)
        if heard is not None:
            signalled(heard)
            time.sleep(0.02)  # another process may look at the same bytes
        reading.recv(len(numbers))


def shared_descriptor() -> int | None:
    """What another process can look at (and leave there) to see signals arrive; None without a watch."""
    return None if _current is None else _current.fileno()
