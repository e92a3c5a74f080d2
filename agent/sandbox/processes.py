"""Finds and ends a sandbox's processes by a variable in their environment.

Desktop programs detach, fork and start each other over D-Bus, so a list of started PIDs would miss most of them. All of
them inherit the environment.
"""

import signal
import time
from contextlib import suppress

import psutil

from agent.desktop.programs import MARK
from foundation.processes import marked_processes

__all__ = ["MARK", "end_marked", "marked"]


def marked(name: str) -> list[psutil.Process]:
    """Return the running processes of a sandbox, except this one."""
    return marked_processes(MARK, name)


def end_marked(name: str, grace: float = 0.5) -> int:
    """End all processes of a sandbox, with `grace` seconds between SIGTERM and SIGKILL. Return their number."""
    total = 0
    for _ in range(5):  # a session bus that is ending may start a service again
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


def _running_after(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Return the processes that still run after this time.

    A zombie counts as ended. psutil would wait until its parent reaps it, which the first process of some containers
    never does.
    """
    deadline = time.monotonic() + seconds
    while True:
        running = []
        for process in processes:
            with suppress(psutil.Error):
                try:
                    process.wait(timeout=0)  # reaps it, if it is a child of ours
                except psutil.TimeoutExpired:
                    if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                        running.append(process)
        if not running or time.monotonic() >= deadline:
            return running
        time.sleep(0.01)
