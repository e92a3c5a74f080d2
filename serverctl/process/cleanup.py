"""Kills leftover processes of a server, which all carry a mark in their environment."""

import contextlib
import time

from foundation.processes import ProcessIdentity, marked_processes, wait_gone

#: Environment variable of every process of a server; its value is random and unique to one start.
MARK = "MAI_SERVER_RUN"
#: Wait this long for a guardian whose supervisor died: it kills everything, even processes that lost the mark.
_GUARDIAN_SECONDS = 5.0


def kill_marked(mark: str, seconds: float = 10.0) -> list[int]:
    """Kill all processes with the mark, and return their PIDs."""
    import psutil

    seen: set[int] = set()
    end = time.monotonic() + seconds
    while mark and time.monotonic() < end:
        left = marked_processes(MARK, mark)
        if not left:
            break
        seen.update(process.pid for process in left)
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.02)
    return sorted(seen)


def end_left_behind(guardian: ProcessIdentity | None, mark: str) -> list[int]:
    """Kill the leftovers of a dead supervisor's server, and return their PIDs.

    The guardian gets some time to do it; then all processes with the mark are killed.
    """
    seen = [process.pid for process in marked_processes(MARK, mark)] if mark else []
    if guardian is not None:
        wait_gone(guardian, _GUARDIAN_SECONDS)
    return sorted({*seen, *kill_marked(mark)})
