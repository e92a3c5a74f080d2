"""A helper process of a hand, which releases what is pressed if the hand cannot."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agent.desktop.programs import bare_environ

_END_TIMEOUT = 2.0


class HelperProcess:
    """Runs a program of ours that reads lines from standard input, until it is closed or this process ends.

    Never raises: without the helper, the hand still releases by itself.
    """

    def __init__(self, program: Path, *arguments: str, files: Sequence[int] = ()) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            self._process = subprocess.Popen(
                # -P: no module is imported from the program's own folder
                [sys.executable, "-P", str(program), *arguments], env=bare_environ(), pass_fds=files, bufsize=0,
                start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)  # a helper that hangs must not hang the hand

    def tell(self, line: str) -> None:
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(OSError, ValueError):  # the process ended
                os.write(process.stdin.fileno(), f"{line}\n".encode())

    def close(self) -> None:
        """End the process, which first releases what is still down. Safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(timeout=_END_TIMEOUT)  # closes its standard input
        except subprocess.TimeoutExpired:  # the display does not answer the process either
            process.kill()
            process.wait()
