"""The stop switch: a flag that every input primitive checks before it moves or presses anything.

It is independent of the run loop: setting it from a signal handler or any thread stops the hand between two events,
even during a long drag or key hold. A signal handler interrupts the main thread anywhere, so nothing here waits for a
lock that the interrupted code could hold; a `threading.Event` would.

Python runs signal handlers between two bytecodes of the main thread, so not during a long C call or a read that never
returns. But each signal's number is written to the wake-up descriptor at once. A thread that reads it can set the
switch, and so can another process, even while no thread of ours runs. Ordinary handlers are still installed: without
one, a signal has its default effect.

The list of this user's runs, by which `mai-agent stop` finds them, is kept here as well.
"""

import json
import os
import platform
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from foundation.configs import state_folder
from foundation.errors import ExitStatus, MaiError, StoppedError
from foundation.files import write_atomically
from foundation.processes import ProcessIdentity, identity_of, is_alive, read_identity, send_signal


class StopSwitch:
    """Set once and never reset. Safe from any thread and from signal handlers."""

    def __init__(self) -> None:
        self._stopped = False
        self._once = threading.Lock()  # only tried without blocking
        self._gates: list[threading.Lock] = []  # one per waiter, released when the switch is set
        self._reason = ""
        self._error: MaiError = StoppedError("Stopped.")
        self._listeners: list[Callable[[], object]] = []

    def stop(self, reason: str) -> None:
        """Stop everything. The first reason is kept."""
        self._set(reason, StoppedError(f"Stopped: {reason}."))

    def fail(self, error: MaiError) -> None:
        """Stop everything because of an error; every waiting call raises this error."""
        self._set(error.what.rstrip("."), error)

    def _set(self, reason: str, error: MaiError) -> None:
        if not self._once.acquire(blocking=False):  # the first call is running (perhaps interrupted by us) or done
            return
        self._reason, self._error = reason, error
        self._stopped = True
        for gate in list(self._gates):
            with suppress(RuntimeError):  # the waiter timed out
                gate.release()
        for listener in list(self._listeners):
            with suppress(Exception):  # a failing listener must not stop the others
                listener()

    def on_stop(self, listener: Callable[[], object]) -> None:
        """Call `listener` when the switch is set, on the thread that sets it; immediately if it is already set."""
        self._listeners.append(listener)
        if self._stopped:
            listener()

    @property
    def stopped(self) -> bool:
        """Whether the switch is set."""
        return self._stopped

    @property
    def reason(self) -> str:
        """The reason, as one clause; "" while it is not set."""
        return self._reason

    def check(self) -> None:
        """Raise StoppedError, or the error of `fail`, if the switch is set."""
        if self._stopped:
            raise self._error

    def sleep(self, seconds: float) -> None:
        """Sleep, but wake up and raise as `check` does when the switch is set."""
        if self.wait(seconds):
            self.check()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the switch is set. Return False after the timeout."""
        gate = threading.Lock()
        gate.acquire()
        self._gates.append(gate)
        try:
            if not self._stopped:  # checked after registering the gate, or a stop in between would be missed
                gate.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
        finally:
            self._gates.remove(gate)
        return self._stopped


#: Signals that stop a run, with the reason for each.
REASONS: dict[int, str] = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "a signal asked for it"}
if sys.platform != "win32":
    REASONS[signal.SIGHUP] = "the terminal was closed"

#: Seconds that a stopped run may need to release keys and buttons. A signal after that ends the program at once.
_LET_GO = 2.0

#: The reading end of the active watch's socket, for other processes.
_current: socket.socket | None = None


class _Signalled:
    """Stops the run at the first signal, and ends the program at once at a signal much later.

    A second signal soon after the first does not end it: users press Ctrl-C several times, and held keys must be
    released first.
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
    """Make Ctrl-C, SIGTERM and a closed terminal set the stop switch inside the context, whatever the main thread does.

    Code that sets another wake-up descriptor meanwhile (asyncio's `add_signal_handler` does; neither our code nor
    Textual calls it) disables the watch until it ends; the ordinary handlers remain. Outside the main thread this does
    nothing, because only the main thread may set handlers and the descriptor.
    """
    with ExitStack() as opened:
        if threading.current_thread() is threading.main_thread():
            handler = _Signalled(stop)
            for number in REASONS:
                opened.callback(signal.signal, number, signal.signal(number, handler))
            if sys.platform != "win32":  # on Windows, asyncio uses the descriptor itself
                opened.enter_context(_watched_descriptor(stop))
        yield


@contextmanager
def _watched_descriptor(stop: StopSwitch) -> Iterator[None]:
    global _current  # noqa: PLW0603 -- a process has only one wake-up descriptor
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
            writing.shutdown(socket.SHUT_WR)  # the thread then reads the end of the stream
            thread.join(1)


def _watch(reading: socket.socket, signalled: _Signalled) -> None:
    while numbers := reading.recv(4096, socket.MSG_PEEK):
        signal_number = next((number for number in numbers if number in REASONS), None)
        if signal_number is not None:
            signalled(signal_number)
            time.sleep(0.02)  # another process may peek at the same bytes
        reading.recv(len(numbers))


def shared_descriptor() -> int | None:
    """Return the descriptor on which another process can peek at arriving signals, leaving them there; None without a
    watch.
    """
    return None if _current is None else _current.fileno()


# The registry of this user's active runs, so that another terminal can stop them. While a run is active, it has a file
# in the user's state folder with its PID and the process's start time. The PID alone is not enough, because PIDs are
# reused and another process must never be signalled.


@dataclass(frozen=True, slots=True)
class Running:
    """An active run: id, instruction, start time and process."""

    run: str
    instruction: str
    started: str
    process: ProcessIdentity
    file: Path

    @property
    def alive(self) -> bool:
        """Whether the process still exists."""
        return is_alive(self.process)


class Registered:
    """The registry entry of a run, from construction until `close`."""

    def __init__(self, run: str, instruction: str) -> None:
        self._file: Path | None = None
        self.remark = ""
        if not run:
            return
        from datetime import datetime  # imported here because the import takes longer than `mai-agent stop` itself

        file = _folder() / f"{run}.json"
        me = identity_of(os.getpid()) or ProcessIdentity(os.getpid(), "")
        started = datetime.now().astimezone().isoformat("T", "seconds")
        entry = {"run": run, "instruction": instruction, "started": started, **me.to_json(), "host": platform.node()}
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(file, json.dumps(entry))  # readers see a complete entry or none
            self._file = file
        except (OSError, UnicodeEncodeError) as error:
            self.remark = f"`mai-agent stop` will not find this run: {file.parent} cannot be written ({error})."

    def close(self) -> None:
        """Delete the entry. Safe to call twice."""
        if self._file is not None:
            _remove(self._file)


def find_running() -> list[Running]:
    """Return this user's runs on this machine, oldest first. Delete the entries of ended runs."""
    entries = [entry for file in _folder().glob("*.json") if (entry := _read(file)) is not None]
    for entry in entries:
        if not entry.alive:
            _remove(entry.file)
    return sorted((entry for entry in entries if entry.alive), key=lambda entry: (entry.started, entry.run))


def send_stop(entry: Running, *, hard: bool = False) -> bool:
    """Signal the run's process, and no other. Return False if it no longer exists."""
    return send_signal(entry.process, signal.SIGKILL if hard and sys.platform != "win32" else signal.SIGTERM)


def wait_ended(entries: Iterable[Running], seconds: float) -> list[Running]:
    """Wait until these runs have ended. Return those that have not after the timeout."""
    left = list(entries)
    until = time.monotonic() + seconds
    while left := [entry for entry in left if entry.alive and entry.file.exists()]:
        if time.monotonic() >= until:
            break
        time.sleep(0.02)
    return left


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)


def _folder() -> Path:
    return state_folder() / "running"


def _read(file: Path) -> Running | None:
    """Read an entry; None if it is damaged or from another machine that shares the folder."""
    try:
        entry = json.loads(file.read_text(encoding="utf-8"))
        process = read_identity(entry)
        if process is None or entry["host"] != platform.node():
            return None
        run, instruction, started = (str(entry[name]) for name in ("run", "instruction", "started"))
        return Running(run, instruction, started, process, file)
    except (OSError, ValueError, KeyError, TypeError):
        return None
