"""Tells the window of a terminal from others by its title, where a desktop tells titles and not whose windows they are.

For a moment the title is a word of ours. The terminal keeps the one that it had (xterm's control sequences: 22 and 23
of "window manipulation") and gets it back from a program of its own, which notices every end of ours, also by force.
"""

import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agent.desktop.protocol.windows import WindowId, Windows

_KEEP = b"\033[22;2t"
_TITLE = b"\033]2;%s\033\\"
#: Reads until we, or this process, close the pipe. Terminals that keep no titles go back to their own way of naming.
_GIVE_BACK = r"read -r _; printf '\033]2;\033\\\033[23;2t'"
#: Seconds for a title to be told: 0.05 were seen, on a busy machine 0.3.
_TOLD, _POLL = 1.0, 0.02
#: Seconds for the title to be given back.
_GIVEN_BACK = 3.0


def titled_window(terminal: str, windows: Windows) -> frozenset[WindowId]:
    """The windows that show what is said on a terminal to be its title: one, or none.

    Args:
        terminal: the path of its device.
        windows: of the desktop.

    Raises:
        EnvironmentLacksError: the desktop is gone.
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
    """Has the title of a terminal be a word that is given, until the end of this or of the process. Raises OSError."""
    word = f"mai-agent {secrets.token_hex(4)}"
    # One that is stopped (ctrl+s) must not stop us.
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
