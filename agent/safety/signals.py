"""Hears signals while the main thread cannot.

Python runs signal handlers between two bytecodes of the main thread: not while that sits in a long call into C, or in
a read that never returns. But the number of every signal is written to the wake-up descriptor at the moment it arrives,
so a thread that reads it can set the stop switch; and so can another process that looks at the same descriptor, even
while that call holds the interpreter's lock and no thread of ours runs at all.

Ordinary handlers must still be installed (`StopSignals`): without one, a signal has its default effect.
"""

import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
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


class StopSignals:
    """While it is entered, Ctrl-C, SIGTERM and a closed terminal set the stop switch."""

    def __init__(self, stop: StopSwitch) -> None:
        self._signalled = _Signalled(stop)
        self._before: dict[int, object] = {}

    def __enter__(self) -> "StopSignals":
        for number in REASONS:
            self._before[number] = signal.signal(number, self._signalled)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal gave us


class SignalWatch:
    """Sets the stop switch when a signal arrives, whatever the main thread does; a context manager of that thread.

    Code that sets another wake-up descriptor meanwhile (asyncio's `add_signal_handler` does; nothing of ours or of
    Textual calls it) takes the watch out of service until it ends: the ordinary handlers remain.
    """

    def __init__(self, stop: StopSwitch) -> None:
        self._signalled = _Signalled(stop)
        self._closed = False
        self._before = -1

    def __enter__(self) -> "SignalWatch":
        global _current  # noqa: PLW0603 -- there is one wake-up descriptor in a process
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            return self  # asyncio uses the descriptor itself there; and elsewhere it is not ours to set
        self._reading, self._writing = socket.socketpair()
        self._writing.setblocking(False)
        self._before = signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        _current = self._reading
        self._thread = threading.Thread(target=self._watch, name="signals", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        global _current  # noqa: PLW0603
        if _current is None or _current is not getattr(self, "_reading", None):
            return
        _current = None
        if signal.set_wakeup_fd(-1) == self._writing.fileno():
            signal.set_wakeup_fd(self._before)
        self._closed = True
        with suppress(OSError):
            self._writing.send(b"\0")  # no signal has this number: the thread wakes up and sees that it is over
        self._thread.join(1)
        self._writing.close()
        self._reading.close()

    def _watch(self) -> None:
        while not self._closed:
            numbers = self._reading.recv(4096, socket.MSG_PEEK)
            heard = next((number for number in numbers if number in REASONS), None)
            if heard is not None and not self._closed:
                self._signalled(heard)
                time.sleep(0.02)  # another process may look at the same bytes
            self._reading.recv(len(numbers))


def shared_descriptor() -> int | None:
    """What another process can look at (and leave there) to see signals arrive; None without a watch."""
    return None if _current is None else _current.fileno()
