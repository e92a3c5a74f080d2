"""The clipboard of an X11 desktop, read by xclip."""

import shutil
import subprocess

from agent.desktop.protocol.clipboard import HungError

#: Seconds for each question; a clipboard's owner that hangs answers none.
_PATIENCE = 0.3


class X11Clipboard:
    """See `Clipboard`."""

    def __init__(self) -> None:
        self.lacks = "" if shutil.which("xclip") else "the program xclip is missing."

    def kinds(self) -> list[str]:
        return (self.read("TARGETS") or b"").decode("ascii", "replace").split()

    def read(self, kind: str) -> bytes | None:
        try:
            done = subprocess.run(
                ["xclip", "-selection", "clipboard", "-o", "-t", kind],
                capture_output=True, timeout=_PATIENCE, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (subprocess.TimeoutExpired, OSError) as error:
            raise HungError from error
        return done.stdout if done.returncode == 0 else None
