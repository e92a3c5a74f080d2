"""Finds and ends the processes of a sandbox by the mark in their environment.

Desktop programs detach, fork and start each other over D-Bus, so a list of started pids misses most of them. Every one
of them inherits the environment, and with it the sandbox's name.
"""

import signal
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

from agent.desktop.programs import MARK
from foundation.processes import marked_processes

__all__ = ["MARK", "end_marked", "marked"]


def marked(name: str) -> list[psutil.Process]:
    """The running processes of a sandbox, except this one."""
    return marked_processes(MARK, name)


def end_marked(name: str, grace: float = 0.5) -> int:
    """End every process of a sandbox, with `grace` seconds between SIGTERM and SIGKILL; returns how many there were."""
    total = 0
    for _ in range(5):  # a dying bus may start a service once more
        processes = marked(name)
        if not processes:
            break
        total += len(processes)
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 2.0)):
            for process in processes:
                with suppress(psutil.Error):
                    process.send_signal(number)
            processes = _running_after(processes, patience)
    return total


def _running_after(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that still run after this time, or none of them as soon as none does.

    A zombie has ended. Waiting for it to be gone, as psutil does, is waiting for its parent: most of these have none
    left but the first process of the machine or container, and not every one of those reaps at once, or at all.
    """
    deadline = time.monotonic() + seconds
    while (running := [process for process in processes if _runs(process)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return running


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        with suppress(psutil.TimeoutExpired):
            process.wait(timeout=0)  # reaps it, if it is a child of ours
            return False
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
