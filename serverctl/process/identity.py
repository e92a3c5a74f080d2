"""Who a process is: its number is reused, so it goes with its start time; what a server started carries a mark."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from typing import Any

#: Environment variable that every process of a server carries, with the server's own random value.
MARK = "MAI_SERVER_RUN"
#: A guardian whose supervisor died ends everything by itself; it also knows processes that lost the mark.
_GUARDIAN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Identity:
    """A process by number and start time (seconds since the epoch, as psutil gives it)."""

    pid: int
    started: float

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {"pid": self.pid, "started": self.started}


def identity_of(pid: int) -> Identity | None:
    """A living process's identity; None where it is gone or a zombie."""
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return Identity(pid, process.create_time())
    except psutil.Error:
        return None


def read_identity(document: Any) -> Identity | None:
    """An identity from its JSON; None where there is none."""
    try:
        found = Identity(int(document["pid"]), float(document["started"]))
    except (TypeError, KeyError, ValueError, OverflowError):
        return None
    return found if 0 < found.pid < 2**31 else None


def is_alive(identity: Identity | None) -> bool:
    """Whether exactly this process still runs."""
    if identity is None:
        return False
    now = identity_of(identity.pid)
    # Start times are rounded to clock ticks, and the boot time they are added to may be adjusted.
    return now is not None and abs(now.started - identity.started) < 2.0


def marked_processes(mark: str) -> list[int]:
    """Living processes that carry a server's mark."""
    import psutil

    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if (
                process.pid != os.getpid()
                and process.environ().get(MARK) == mark
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def kill_marked(mark: str, seconds: float = 10.0) -> list[int]:
    """Kills what a server left behind, and only that; gives the processes that were there."""
    seen: set[int] = set()
    end = time.monotonic() + seconds
    while mark and time.monotonic() < end:
        left = marked_processes(mark)
        if not left:
            break
        seen.update(left)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return sorted(seen)


def end_left_behind(guardian: Identity | None, mark: str) -> list[int]:
    """Ends what a dead supervisor's server left behind: its guardian gets the chance to, then the mark decides."""
    seen = marked_processes(mark) if mark else []
    if guardian is not None:
        wait_gone(guardian, _GUARDIAN_SECONDS)
    return sorted({*seen, *kill_marked(mark)})


def wait_gone(identity: Identity, seconds: float) -> bool:
    """Waits until a process has ended; False where it has not within that time."""
    end = time.monotonic() + seconds
    while is_alive(identity):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
