"""Finds the window of the terminal that runs us, and browsers with our page, to keep them out of sight and reach.

Otherwise the model would read our own output, and its clicks could answer our own questions.
"""

import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

import psutil

from agent.desktop.protocol.windows import OpenWindows, WindowId, Windows
from foundation.errors import EnvironmentLacksError
from foundation.printing import is_terminal

_TMUX_TIMEOUT = 1.0
_UNKNOWN = (
    "The window of this terminal cannot be told from others here: keep it off the screen that the agent works on, "
    "because the agent sees it and could click in it."
)
_UNPLACED = (
    "This desktop does not tell where this terminal's window is: nothing is typed into it, but keep it off the screen "
    "that the agent works on, because the agent sees it and could click in it."
)
#: Values of TERM for terminals without a window title.
_UNTITLED = ("", "dumb", "linux")
#: Push the title on the terminal's stack (xterm's "window manipulation", 22 and 23), then set it.
_KEEP, _TITLE = b"\033[22;2t", b"\033]2;%s\033\\"
#: Waits until the pipe is closed, by us or because we were killed. Terminals without a title stack get an empty title,
#: which makes them use their default title again.
_GIVE_BACK = r"read -r _; printf '\033]2;\033\\\033[23;2t'"
#: Seconds until a new title is visible in the window list: measured 0.05, on a busy machine 0.3.
_TOLD, _POLL = 1.0, 0.02
#: Seconds to wait until the title is restored.
_GIVEN_BACK = 3.0
_MARK = f"mai-agent {secrets.token_hex(4)}"
_served = threading.Event()


@dataclass(frozen=True, slots=True)
class Own:
    """Our own windows, and a remark for the person.

    There are several windows if the terminal has several and does not say which of them is ours.
    """

    windows: frozenset[WindowId] = frozenset()
    remark: str = ""
    placed: bool = True  # whether the desktop knows where they are, so that they can be blanked


def find_own(open_windows: OpenWindows, shows: Callable[[Mapping[str, str]], bool]) -> Own:
    """Return the windows of the terminal that runs us; none over SSH, or if the terminal is on another desktop.

    `shows` returns whether windows of a program with a given environment appear on this desktop.
    """
    here = [process for process in _local_terminal_ends() if shows(_environ(process))]
    if not here:
        return Own()
    served = bool(os.environ.get("TEXTUAL_DRIVER"))  # shown in a browser, on this desktop or another
    found: frozenset[WindowId] = frozenset()
    placed = True
    if windows := open_windows():
        with closing(windows), suppress(EnvironmentLacksError):
            found = frozenset(one for process in here for one in _windows_of(process, windows))
            if not found and not served and all(one.pid is None for one in windows.windows()):
                found = frozenset(one for process in here for one in _titled(process, windows))
            placed = all(windows.region(one) is not None for one in found)
    if found:
        return Own(found, "" if placed else _UNPLACED, placed)
    return Own(remark=_UNKNOWN if served or is_terminal("output") else "")


def processes_above() -> frozenset[int]:
    """Return the PIDs of our ancestors, including the terminal that runs us; none over SSH or without a terminal."""
    if not is_terminal("output"):
        return frozenset()
    return frozenset(parent.pid for process in _local_terminal_ends() for parent in process.parents())


def titled_window(terminal: str, windows: Windows) -> frozenset[WindowId]:
    """Find the window of a terminal device, or none: set the terminal's title, and see which window title changes.

    Raises EnvironmentLacksError.
    """
    found: frozenset[WindowId] = frozenset()
    with suppress(OSError), marked(terminal) as word:
        deadline = time.monotonic() + _TOLD
        while not found and time.monotonic() < deadline:
            time.sleep(_POLL)
            found = frozenset(one.id for one in windows.windows() if word in one.title)
    return found


@contextmanager
def marked(terminal: str) -> Iterator[str]:
    """Set the title of a terminal to a random word inside the block. Raises OSError.

    A helper process restores the old title, so that it is restored even if this process is killed.
    """
    word = f"mai-agent {secrets.token_hex(4)}"
    # Non-blocking: a terminal that is stopped (ctrl+s) must not block us.
    device = os.open(terminal, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        keeper = subprocess.Popen(
            ["sh", "-c", _GIVE_BACK], start_new_session=True,
            stdin=subprocess.PIPE, stdout=device, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            os.write(device, _KEEP + _TITLE % word.encode())
            yield word
        finally:
            assert keeper.stdin is not None
            keeper.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                keeper.wait(_GIVEN_BACK)
    finally:
        os.close(device)


def _local_terminal_ends() -> list[psutil.Process]:
    """Return the processes on our local terminal: this one, or the clients of our tmux or screen; none over SSH."""
    environ = os.environ
    found: list[psutil.Process] = []
    with suppress(psutil.Error, OSError, subprocess.SubprocessError, ValueError):
        if environ.get("TMUX"):
            target = ["-t", environ["TMUX_PANE"]] if environ.get("TMUX_PANE") else []
            result = subprocess.run(
                ["tmux", "list-clients", *target, "-F", "#{client_pid}"],
                capture_output=True, text=True, timeout=_TMUX_TIMEOUT, stdin=subprocess.DEVNULL, check=True,
            )  # fmt: skip
            found = [psutil.Process(int(line)) for line in result.stdout.split()]
        elif environ.get("STY"):
            named = (one for one in psutil.process_iter(["name", "uids", "terminal"]) if one.info["name"] == "screen")
            found = [one for one in named if one.info["terminal"] and one.info["uids"].real == os.getuid()]
        else:
            found = [psutil.Process()]
    return [one for one in found if not any(_environ(one).get(name) for name in ("SSH_CONNECTION", "SSH_TTY"))]


def _environ(process: psutil.Process) -> Mapping[str, str]:
    """Return the environment that a process was started with, also for ours: `os.environ` changes for a sandbox."""
    with suppress(psutil.Error, OSError):
        return process.environ()
    return {}


def _titled(process: psutil.Process, windows: Windows) -> frozenset[WindowId]:
    if _environ(process).get("TERM", "") in _UNTITLED:
        return frozenset()
    with suppress(psutil.Error, OSError):
        if terminal := process.terminal():
            return titled_window(terminal, windows)
    return frozenset()


def _windows_of(process: psutil.Process, windows: Windows) -> list[WindowId]:
    """Return the window that WINDOWID names, or else the windows of the nearest ancestor process that has any."""
    above = [parent.pid for parent in process.parents()]
    window = windows.of_terminal(_environ(process))
    if window is not None and (window.pid is None or window.pid in above):  # a stale WINDOWID may be anybody's
        return [window.id]
    listed = [window for window in windows.windows() if window.pid is not None and windows.is_ordinary(window.id)]
    active = windows.active()
    for pid in above:
        theirs = [window.id for window in listed if window.pid == pid]
        if active is not None and active.id in theirs:  # the person has just typed the command there
            return [active.id]
        if theirs:
            return theirs
    return []


def serve_page() -> str:
    """Return the mark for the title of our page. From now on, windows with the mark in their title are ours."""
    _served.set()
    return _MARK


def is_page_served() -> bool:
    """Return whether this process serves a page."""
    return _served.is_set()


def shows_our_page(title: str) -> bool:
    """Return whether a window of this title shows our page."""
    return _served.is_set() and _MARK in title
