"""Kills leftover processes of a server, which all carry a mark in their environment."""

from foundation.processes import ProcessIdentity, end_marked, marked_processes, wait_gone

#: Environment variable of every process of a server; its value is random and unique to one start.
MARK = "MAI_SERVER_RUN"
#: Wait this long for a guardian whose supervisor died: it kills everything, even processes that lost the mark.
_GUARDIAN_SECONDS = 5.0


def kill_marked(mark: str) -> list[int]:
    """Kill all processes with the mark, and return their PIDs."""
    return end_marked(MARK, mark) if mark else []


def end_left_behind(guardian: ProcessIdentity | None, mark: str) -> list[int]:
    """Kill the leftovers of a dead supervisor's server, and return their PIDs.

    The guardian gets some time to do it; then all processes with the mark are killed.
    """
    seen = [process.pid for process in marked_processes(MARK, mark)] if mark else []
    if guardian is not None:
        wait_gone(guardian, _GUARDIAN_SECONDS)
    return sorted({*seen, *kill_marked(mark)})
