"""Ends what a server left behind: all its processes carry a mark in their environment."""

import contextlib
import time

from foundation.processes import ProcessIdentity, marked_processes, wait_gone

#: Environment variable that every process of a server carries, with the server's own random value.
MARK = "MAI_SERVER_RUN"
#: A guardian whose supervisor died ends everything by itself; it also knows processes that lost the mark.
_GUARDIAN_SECONDS = 5.0


def kill_marked(mark: str, seconds: float = 10.0) -> list[int]:
    """Kills what a server left behind, and only that; gives the processes that were there."""
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
    """Ends what a dead supervisor's server left behind: its guardian gets the chance to, then the mark decides."""
    seen = [process.pid for process in marked_processes(MARK, mark)] if mark else []
    if guardian is not None:
        wait_gone(guardian, _GUARDIAN_SECONDS)
    return sorted({*seen, *kill_marked(mark)})
