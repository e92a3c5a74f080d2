"""Our end of the process in `releaser_process.py`: tells it what the hand presses, before it is pressed."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from agent.safety.stop import REASONS, StopSwitch, shared_descriptor

_PROGRAM = Path(__file__).with_name("releaser_process.py")
#: All that it needs: no key and no mark of a sandbox may end up in a process that outlives us.
_ENVIRONMENT = ("DISPLAY", "XAUTHORITY", "HOME", "PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "SYSTEMROOT")
_END_TIMEOUT = 1.0


class Releaser:
    """Releases what one hand left pressed.

    The process removes `notes`, the file that says what is pressed, once it has released everything.
    """

    def __init__(self, stop: StopSwitch, notes: Path) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        shared = shared_descriptor()
        numbers = ",".join(str(int(number)) for number in REASONS)
        with suppress(OSError):  # the hand still lets go by itself
            self._process = subprocess.Popen(
                # -P: the program's own folder is not searched for modules, whatever they may be called
                [sys.executable, "-P", str(_PROGRAM), str(-1 if shared is None else shared), numbers, str(notes)],
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                pass_fds=() if shared is None else (shared,), start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, bufsize=0,
            )  # fmt: skip
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)  # a releaser that hangs must not hang the hand
            stop.on_stop(lambda: self.tell("stop"))

    def tell(self, line: str) -> None:
        """Tell it something, in the words of `releaser_process.py`."""
        process = self._process
        if process is None or process.stdin is None:
            return
        with suppress(OSError, ValueError):  # it ended: the hand still lets go by itself
            os.write(process.stdin.fileno(), f"{line}\n".encode())

    def close(self) -> None:
        """End it; what is still down is let go."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(timeout=_END_TIMEOUT)  # the end of what it is told
        except subprocess.TimeoutExpired:  # the display does not answer it either
            process.kill()
            process.wait()
