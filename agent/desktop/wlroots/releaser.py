"""Lets go of the mouse's buttons when this process is killed: sway 1.7 keeps them down after their pointer is gone."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_PROGRAM = Path(__file__).with_name("releaser_process.py")
#: All that it needs: no key and no mark of a sandbox may end up in a process that outlives us.
_ENVIRONMENT = ("HOME", "PATH", "PYTHONHOME", "LD_LIBRARY_PATH")


class Releaser:
    """A process beside this one, told what is down; it ends with this one, or when this is closed.

    Args:
        path: of the compositor's socket.
        notes: the file that says what is pressed, which the process removes once it released everything.
    """

    def __init__(self, path: str, notes: Path) -> None:
        environ = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_PROGRAM), path, str(notes)], env=environ, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def tell(self, button: int, *, down: bool) -> None:
        """A button goes down, or came up."""
        assert self._process.stdin is not None
        with suppress(OSError):
            os.write(self._process.stdin.fileno(), f"{'+' if down else '-'}{button}\n".encode())

    def close(self) -> None:
        """End it; safe to call twice."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
