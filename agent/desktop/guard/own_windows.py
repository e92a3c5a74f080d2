"""Finds the terminal that runs us among the windows of a desktop, to keep it out of sight and reach.

What the program prints there would otherwise be read back by the model as if it were part of the task, and a click in
it could answer our own questions.
"""

import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass

import psutil

from agent.desktop.guard.titled_terminal import titled_window
from agent.desktop.protocol.windows import OpenWindows, WindowId, Windows
from foundation.errors import EnvironmentLacksError
from foundation.printing import is_terminal

_TMUX_TIMEOUT = 1.0
_REMARK = (
    "The window of this terminal cannot be told from others here: keep it off the screen that the agent works on, "
    "because the agent sees it and could click in it."
)


_UNPLACED = (
    "Where the window of this terminal is, is not told here: nothing is typed into it, but keep it off the screen that "
    "the agent works on, because the agent sees it and could click in it."
)
#: Terminals, by TERM, that have no window with a title.
_UNTITLED = ("", "dumb", "linux")


@dataclass(frozen=True, slots=True)
class Own:
    """Our own windows (several where one program shows several and does not say which is ours), and what to tell."""

    windows: frozenset[WindowId] = frozenset()
    remark: str = ""
    placed: bool = True  # the desktop tells where they are, so that they can be hidden


def find_own(open_windows: OpenWindows, shows: Callable[[Mapping[str, str]], bool]) -> Own:
    """The windows of the terminal that runs us; nothing over SSH, or where it is on another desktop.

    Args:
        open_windows: of a desktop.
        shows: whether the windows of a program with an environment appear on it.
    """
    here = [process for process in _terminal_ends() if _is_local(_environ(process)) and shows(_environ(process))]
    if not here:
        return Own()
    served = bool(os.environ.get("TEXTUAL_DRIVER"))  # in some browser, on this desktop or another
    visible = served or is_terminal("output")
    found: frozenset[WindowId] = frozenset()
    placed = True
    if windows := open_windows():
        with closing(windows), suppress(EnvironmentLacksError):
            found = frozenset(one for process in here for one in _windows_of(process, windows))
            if not found and not served and all(one.pid is None for one in windows.windows()):
                found = frozenset(one for process in here for one in _titled(process, windows))
            placed = all(windows.region(one) is not None for one in found)
    if found and not placed:
        return Own(found, _UNPLACED, placed=False)
    return Own(found, "" if found or not visible else _REMARK)


def processes_above() -> frozenset[int]:
    """The processes above us, of which one is the terminal that runs us; none over SSH, or without a terminal."""
    if not is_terminal("output"):
        return frozenset()
    ends = [process for process in _terminal_ends() if _is_local(_environ(process))]
    return frozenset(parent.pid for process in ends for parent in process.parents())


def _terminal_ends() -> list[psutil.Process]:
    """The processes that hang on a terminal for us: this one, or the clients of the tmux or screen that we run in."""
    environ = os.environ
    with suppress(psutil.Error, OSError, subprocess.SubprocessError, ValueError):
        if environ.get("TMUX"):
            target = ["-t", environ["TMUX_PANE"]] if environ.get("TMUX_PANE") else []
            told = subprocess.run(
                ["tmux", "list-clients", *target, "-F", "#{client_pid}"],
                capture_output=True, text=True, timeout=_TMUX_TIMEOUT, stdin=subprocess.DEVNULL, check=True,
            )  # fmt: skip
            return [psutil.Process(int(line)) for line in told.stdout.split()]
        if environ.get("STY"):
            named = (one for one in psutil.process_iter(["name", "uids", "terminal"]) if one.info["name"] == "screen")
            return [one for one in named if one.info["terminal"] and one.info["uids"].real == os.getuid()]
        return [psutil.Process()]
    return []


def _environ(process: psutil.Process) -> Mapping[str, str]:
    """The environment that a process was started with: ours too, because a sandbox changes the running one."""
    with suppress(psutil.Error, OSError):
        return process.environ()
    return {}


def _is_local(environ: Mapping[str, str]) -> bool:
    return not (environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))


def _titled(process: psutil.Process, windows: Windows) -> frozenset[WindowId]:
    """The window of the terminal that a process hangs on, as it shows what is written there."""
    if _environ(process).get("TERM", "") in _UNTITLED:
        return frozenset()
    with suppress(psutil.Error, OSError):
        if terminal := process.terminal():
            return titled_window(terminal, windows)
    return frozenset()


def _windows_of(process: psutil.Process, windows: Windows) -> list[WindowId]:
    """The window that a terminal's process says it is in, or else those of the nearest process above that has any."""
    above = [parent.pid for parent in process.parents()]
    window = windows.of_terminal(_environ(process))
    if window is not None and (window.pid is None or window.pid in above):  # a stale number may be anybody's
        return [window.id]
    listed = [window for window in windows.windows() if window.pid is not None and windows.is_ordinary(window.id)]
    active = windows.active()
    for pid in above:
        theirs = [window.id for window in listed if window.pid == pid]
        if active is not None and active.id in theirs:  # the command was just typed there
            return [active.id]
        if theirs:
            return theirs
    return []
