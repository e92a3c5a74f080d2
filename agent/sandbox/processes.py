"""Finds and ends the processes of a sandbox by the mark in their environment.

Desktop programs detach, fork and start each other over D-Bus, so a list of started pids misses most of them. Every one
of them inherits the environment, and with it the sandbox's name.
"""

from collections.abc import Iterable

import psutil

from foundation.processes import marked_processes

#: The environment variable that names the sandbox a process belongs to.
MARK = "MAI_AGENT_SANDBOX"


def marked(name: str) -> list[psutil.Process]:
    """The running processes of a sandbox, except this one."""
    return marked_processes(MARK, name)


def end_marked(name: str, grace: float = 0.5) -> int:
    """End every process of a sandbox, at first politely; returns how many there were.

    Args:
        name: the sandbox.
        grace: seconds between SIGTERM and SIGKILL.
    """
    total = 0
    for _ in range(5):  # a dying bus may start a service once more
        processes = marked(name)
        if not processes:
            break
        total += len(processes)
        _signal(processes, kill=False)
        _, alive = psutil.wait_procs(processes, timeout=grace)
        _signal(alive, kill=True)
        psutil.wait_procs(alive, timeout=2)
    return total


def _signal(processes: Iterable[psutil.Process], *, kill: bool) -> None:
    for process in processes:
        try:
            if kill:
                process.kill()
            else:
                process.terminate()
        except psutil.Error:
            continue
