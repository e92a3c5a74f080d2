"""Notes in a file which keys and buttons a hand holds down, so that they are released even after a crash.

X11 and some Wayland compositors keep a button down when the process that pressed it dies. A helper process releases it
(`releaser_process.py`). If the helper dies too, the next hand on the same desktop releases what this file names.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from agent.desktop.protocol.hand import Press
from foundation.configs import state_folder
from foundation.files import write_atomically
from foundation.processes import identity_of, is_alive, read_identity


def desktop_at(name: str, socket: str) -> str:
    """Return a unique name of a desktop session. Display names are reused; inode and ctime of the socket are not."""
    with suppress(OSError):
        found = os.stat(socket)  # noqa: PTH116 -- "" is no path, and an abstract socket has none
        return f"{name} {found.st_ino} {found.st_ctime_ns}"
    return name


class PressedNotes:
    """The keys and buttons that this process holds down on one desktop, written to disk before they are pressed.

    Never raises: on a full disk the hand works without notes.

    Args:
        desktop: the desktop, as `desktop_at` names it.
    """

    def __init__(self, desktop: str) -> None:
        self._desktop = desktop
        self._down: list[Press] = []
        identity = identity_of(os.getpid())
        self._process = identity and identity.to_json()
        self._folder = state_folder() / "pressed"
        self.path = self._folder / f"{os.getpid()}-{os.urandom(4).hex()}.json"
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write()

    def press(self, press: Press) -> None:
        """Note a key or button that is about to be pressed."""
        self._down.append(press)
        self._write()

    def release(self, presses: Sequence[Press]) -> None:
        """Note keys and buttons that were released."""
        self._down = [press for press in self._down if press not in presses]
        self._write()

    def take_left_over(self) -> list[Press]:
        """Return what dead processes left pressed on this desktop, the last pressed first, and remove their notes."""
        found: list[Press] = []
        for path in self._folder.glob("*.json"):
            if path == self.path:
                continue
            noted: dict[str, Any] = {}
            with suppress(OSError, ValueError):
                noted = dict(json.loads(path.read_text(encoding="utf-8")))
            with suppress(KeyError, TypeError, ValueError):
                elsewhere = noted["desktop"] != self._desktop and noted["down"]
                if elsewhere or is_alive(read_identity(noted["process"])):
                    continue
                found += [Press(kind, name) for kind, name in reversed(noted["down"]) if kind in ("key", "button")]
            with suppress(OSError):
                path.unlink()
        return found

    def close(self) -> None:
        with suppress(OSError):
            self.path.unlink()

    def _write(self) -> None:
        """Write atomically: a hand that starts at this moment deletes notes that it cannot parse."""
        down = [[press.kind, press.name] for press in self._down]
        noted = {"desktop": self._desktop, "process": self._process, "down": down}
        with suppress(OSError):
            write_atomically(self.path, json.dumps(noted))
