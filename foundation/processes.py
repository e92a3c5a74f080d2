"""Identities of processes. PIDs are reused, so an identity holds the birth time too."""

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil

#: Start times in seconds are rounded to clock ticks, and the boot time they are added to may be adjusted.
_CLOCK_SLACK = 2.0


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process by its PID and its birth."""

    pid: int
    #: on Linux "BOOT/TICKS", the kernel's id of this boot and the start in clock ticks; elsewhere seconds since 1970
    born: str

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {"pid": self.pid, "born": self.born}


def identity_of(pid: int) -> ProcessIdentity | None:
    """A living process's identity; None if it is gone or a zombie."""
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
    """An identity from its JSON; None if it is not one."""
    try:
        pid, born = int(document["pid"]), str(document["born"])
    except (TypeError, KeyError, ValueError, OverflowError):
        return None
    return ProcessIdentity(pid, born) if 0 < pid < 2**31 else None


def is_alive(identity: ProcessIdentity | None) -> bool:
    """Whether exactly this process still runs."""
    if identity is None:
        return False
    if "/" in identity.born:
        return identity_of(identity.pid) == identity
    try:
        born = float(identity.born)
    except ValueError:
        return False
    started = _start_seconds(identity.pid)
    return started is not None and abs(started - born) < _CLOCK_SLACK


def has_run_since(pid: int, seconds: float) -> bool:
    """Whether the process with this PID began before a time (since the epoch); True if unknown."""
    import psutil

    try:
        return psutil.Process(pid).create_time() <= seconds + _CLOCK_SLACK
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def wait_gone(identity: ProcessIdentity, seconds: float) -> bool:
    """Waits until a process has ended; False where it has not within that time."""
    end = time.monotonic() + seconds
    while is_alive(identity):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def send_signal(identity: ProcessIdentity, number: int) -> bool:
    """Signals exactly this process; False when it is not there any more. Raises PermissionError for another user's."""
    held: int | None = None
    try:
        # Holding on to the process keeps its number from being given away meanwhile; some sandboxes do not allow that.
        with suppress(OSError, AttributeError):
            held = os.pidfd_open(identity.pid)
        if not is_alive(identity):
            return False
        if held is None:
            os.kill(identity.pid, number)
        else:
            signal.pidfd_send_signal(held, number)
    except ProcessLookupError:
        return False
    finally:
        if held is not None:
            os.close(held)
    return True


def marked_processes(variable: str, value: str) -> "list[psutil.Process]":
    """Living processes with a value in a variable of their environment, except this one."""
    import psutil

    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        # It ended meanwhile, or is another user's.
        with suppress(psutil.Error, OSError):
            if process.pid == os.getpid() or process.environ().get(variable) != value:
                continue
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def number_here(pid: int, variable: str, value: str | None) -> int:
    """The number, in this process's view, of one that has another in its own, as it is told from within a container.

    Args:
        pid: the number as it is told.
        variable: what all processes in there have in their environment.
        value: what it says; None where there is no such place, and the number is what it seems.
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
    """When a living process started, in seconds since the epoch."""
    import psutil

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    return None
