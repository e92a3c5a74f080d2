"""Identities of processes. PIDs are reused, so an identity contains the start time too."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil

#: Tolerance in seconds for start times, which are rounded to clock ticks and added to an adjustable boot time.
_CLOCK_SLACK = 2.0


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process, identified by its PID and start time."""

    pid: int
    #: on Linux "BOOT/TICKS", the kernel's boot id and the start in clock ticks; elsewhere seconds since the epoch
    born: str

    def to_json(self) -> dict[str, Any]:
        """Return the identity as JSON values."""
        return {"pid": self.pid, "born": self.born}


def identity_of(pid: int) -> ProcessIdentity | None:
    """Return a running process's identity; None if it has ended or is a zombie."""
    if not sys.platform.startswith("linux"):
        started = _start_seconds(pid)
        return None if started is None else ProcessIdentity(pid, f"{started:.2f}")
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return None if fields[0] in "ZX" else ProcessIdentity(pid, f"{boot}/{fields[19]}")


def read_identity(document: Any) -> ProcessIdentity | None:
    """Parse an identity from JSON values; None if they are invalid."""
    try:
        pid, born = int(document["pid"]), str(document["born"])
    except (TypeError, KeyError, ValueError, OverflowError):
        return None
    return ProcessIdentity(pid, born) if 0 < pid < 2**31 else None


def is_alive(identity: ProcessIdentity | None) -> bool:
    """Return whether exactly this process still runs."""
    if identity is None:
        return False
    if "/" in identity.born:
        return identity_of(identity.pid) == identity
    with suppress(ValueError):
        born, started = float(identity.born), _start_seconds(identity.pid)
        return started is not None and abs(started - born) < _CLOCK_SLACK
    return False


def has_run_since(pid: int, seconds: float) -> bool:
    """Return whether the process with this PID started before a time (since the epoch); True if unknown."""
    import psutil

    try:
        return psutil.Process(pid).create_time() <= seconds + _CLOCK_SLACK
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def wait_gone(identity: ProcessIdentity, seconds: float) -> bool:
    """Wait until a process has ended. Return False on timeout."""
    end = time.monotonic() + seconds
    while (alive := is_alive(identity)) and time.monotonic() <= end:
        time.sleep(0.02)
    return not alive


def send_signal(identity: ProcessIdentity, number: int) -> bool:
    """Signal exactly this process. Return False if it has ended. Raises PermissionError for another user's process."""
    with suppress(ProcessLookupError):
        if is_alive(identity):
            os.kill(identity.pid, number)
            return True
    return False


def marked_processes(variable: str, value: str) -> "list[psutil.Process]":
    """Return the running processes with this environment variable, except this one and zombies."""
    import psutil

    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        # The process may have ended, or belong to another user.
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(variable) == value and _runs(process):
                found.append(process)
    return found


def end_marked(variable: str, value: str, grace: float = 0.0, seconds: float = 10.0) -> list[int]:
    """End all processes with this environment variable, also those that start meanwhile, and return their PIDs.

    Between SIGTERM and SIGKILL, they get `grace` seconds. Processes that still run after `seconds` are left running.
    """
    import psutil

    began, ended = time.monotonic(), dict[int, psutil.Process]()
    # An ending process loses its environment before it is gone: PID 1 of a PID namespace waits for the other processes.
    while (left := marked_processes(variable, value)) or any(map(_runs, ended.values())):
        waited = time.monotonic() - began
        if waited >= seconds:
            break
        late = [process for process in ended.values() if waited >= grace and _runs(process)]
        for process in (*left, *late):
            with suppress(psutil.Error):
                if waited >= grace:
                    process.kill()
                elif process.pid not in ended:
                    process.terminate()
            ended[process.pid] = process
        time.sleep(0.02)
    return sorted(ended)


def _runs(process: "psutil.Process") -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def pid_here(pid: int, variable: str, value: str | None) -> int:
    """Translate a PID from another PID namespace into ours; unchanged if no process matches.

    All processes of the other namespace have this environment variable and value; None if there is no other namespace.
    """
    if not value:
        return pid
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError, ValueError, IndexError):
            numbers = status.read_text("utf-8", "replace").partition("\nNSpid:")[2].partition("\n")[0].split()
            if len(numbers) > 1 and int(numbers[-1]) == pid:
                environ = status.with_name("environ").read_bytes().split(b"\0")
                if f"{variable}={value}".encode() in environ:
                    return int(numbers[0])
    return pid


def _start_seconds(pid: int) -> float | None:
    import psutil

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    return None


@contextmanager
def signals_raise(error: Callable[[], BaseException]) -> Iterator[None]:
    """Raise an error in the block on SIGTERM and the end of the terminal, so that it cleans up as after Ctrl-C.

    Signals that are ignored (nohup) or handled already stay so. Does nothing outside of the main thread.
    """

    def stop(*_: object) -> None:
        raise error()

    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, signal.SIGHUP) if is_main else ()
    heeded = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    for number in heeded:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)
