"""Controls the process in `releaser_process.py`: tells it what the hand will press, before it is pressed."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from agent.safety.stop import REASONS, StopSwitch, shared_descriptor

_PROGRAM = Path(__file__).with_name("releaser_process.py")
#: The only variables that the process gets. It may outlive us, so it must get no API key and no mark of a sandbox.
_ENVIRONMENT = ("DISPLAY", "XAUTHORITY", "HOME", "PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "SYSTEMROOT")
_END_TIMEOUT = 1.0


class Releaser:
    """Releases the keys and buttons that one hand left pressed.

    Once everything is released, the process removes `notes`, the file that lists what is pressed.
    """

    def __init__(self, stop: StopSwitch, notes: Path) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        shared = shared_descriptor()
        numbers = ",".join(str(int(number)) for number in REASONS)
        with suppress(OSError):  # without it, the hand still releases by itself
            self._process = subprocess.Popen(
                # -P: no module is imported from the program's own folder
                [sys.executable, "-P", str(_PROGRAM), str(-1 if shared is None else shared), numbers, str(notes)],
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                pass_fds=() if shared is None else (shared,), start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, bufsize=0,
            )  # fmt: skip
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)  # a releaser that hangs must not hang the hand
            stop.on_stop(lambda: self.tell("stop"))

    def tell(self, line: str) -> None:
        """Send the process a line; `releaser_process.py` describes them."""
        process = self._process
        if process is None or process.stdin is None:
            return
        with suppress(OSError, ValueError):  # the process ended: the hand still releases by itself
            os.write(process.stdin.fileno(), f"{line}\n".encode())

    def close(self) -> None:
        """End the process, which first releases what is still down."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(timeout=_END_TIMEOUT)  # closes its standard input
        except subprocess.TimeoutExpired:  # the display does not answer the process either
            process.kill()
            process.wait()
