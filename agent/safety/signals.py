"""Hears signals while the main thread cannot.

Python runs signal handlers between two bytecodes of the main thread: not while that sits in a long call into C, or in
a read that never returns. But the number of every signal is written to the wake-up descriptor at the moment it arrives,
so a thread that reads it can set the stop switch; and so can another process that looks at the same descriptor, even
while that call holds the interpreter's lock and no thread of ours runs at all. Ordinary handlers are still installed:
without one, a signal has its default effect.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from agent.safety.stop import StopSwitch
from foundation.errors import ExitStatus

#: Signals that stop a run, and what each means.
REASONS: dict[int, str] = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "a signal asked for it"}
if sys.platform != "win32":
    REASONS[signal.SIGHUP] = "the terminal was closed"

#: Seconds that a stopped run may need to let go of keys and buttons; a signal after that ends the program at once.
_LET_GO = 2.0

#: The reading end of the watch that is under way, for other processes.
_current: socket.socket | None = None


class _Signalled:
    """Stops the run at the first signal, and ends the program at once at one that comes much later.

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
