"""Remembers in a file which keys and buttons a hand holds down, for the case that nobody is left to release them.

X11 and some Wayland compositors keep a button down when the process that pressed it dies. A helper process releases it
(`releaser.py`); when the helper dies too, the next hand on the same desktop reads this file and releases what it names.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.desktop.input import Press
from foundation.paths import state_folder
from foundation.processes import identity_of, is_alive, read_identity


def desktop_at(name: str, socket: str) -> str:
    """Name a desktop session: a display name is used again by the next session, the inode of its socket is not."""
    with suppress(OSError):
        found = os.stat(socket)  # noqa: PTH116 -- "" is no path, and an abstract socket has none
        return f"{name} {found.st_ino} {found.st_ctime_ns}"
    return name


class PressedNotes:
    """What this process holds down on one desktop, on disk before it is pressed.

    Never raises: on a full disk the hand works without notes.

    Args:
        desktop: which desktop, as `desktop_at` names it.
    """

    def __init__(self, desktop: str) -> None:
        self._desktop = desktop
        self._down: list[Press] = []
        self._file: int | None = None
        identity = identity_of(os.getpid())
        self._process = identity and identity.to_json()
        self._folder = state_folder() / "pressed"
        self.path = self._folder / f"{os.getpid()}-{os.urandom(4).hex()}.json"
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._write()

    def press(self, press: Press) -> None:
        """Note a key or button that is about to be pressed."""
        self._down.append(press)
        self._write()

    def release(self, presses: Sequence[Press]) -> None:
        """Note what was released."""
        self._down = [press for press in self._down if press not in presses]
        self._write()

    def take_left_over(self) -> list[Press]:
        """Return what dead processes left pressed on this desktop, the last first, and forget their notes."""
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
            _remove(path)
        return found

    def close(self) -> None:
        """Forget the notes."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        _remove(self.path)

    def _write(self) -> None:
        if self._file is None:
            return
        noted = {
            "desktop": self._desktop,
            "process": self._process,
            "down": [[press.kind, press.name] for press in self._down],
        }
        data = json.dumps(noted).encode()
        with suppress(OSError):
            os.pwrite(self._file, data, 0)
            os.ftruncate(self._file, len(data))


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
