"""Which runs of this user are going on, so that another terminal can stop them.

Every run has a file in the user's state folder while it goes on, with the number of its process and what makes that
process unmistakable: a number alone is given to another process some day, which must never be signalled.
"""

import json
import os
import platform
import signal
import stat
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from foundation.configs import state_folder
from foundation.files import write_atomically
from foundation.processes import ProcessIdentity, identity_of, is_alive, send_signal


@dataclass(frozen=True, slots=True)
class Running:
    """A run under way: its id, what it is to do, when it began, and whose it is."""

    run: str
    instruction: str
    started: str
    pid: int
    born: str
    file: Path

    @property
    def process(self) -> ProcessIdentity:
        """The process it goes on in."""
        return ProcessIdentity(self.pid, self.born)

    @property
    def alive(self) -> bool:
        """Whether its process is there."""
        return is_alive(self.process)


class Registered:
    """One run's entry, from now until it is closed."""

    def __init__(self, run: str, instruction: str) -> None:
        self._file: Path | None = None
        self.remark = ""
        if not run:
            return
        from datetime import datetime  # takes `mai-agent stop` longer to import than to stop

        file = _folder() / f"{run}.json"
        me = identity_of(os.getpid()) or ProcessIdentity(os.getpid(), "")
        started = datetime.now().astimezone().isoformat("T", "seconds")
        entry = {"run": run, "instruction": instruction, "started": started, **me.to_json(), "host": platform.node()}
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(file, json.dumps(entry))  # whoever looks sees a whole entry or none
            self._file = file
        except (OSError, UnicodeEncodeError) as error:
            self.remark = f"`mai-agent stop` will not find this run: {file.parent} cannot be written ({error})."

    def close(self) -> None:
        """Remove it; safe to call twice."""
        if self._file is not None:
            _remove(self._file)


def find_running() -> list[Running]:
    """This user's runs on this machine, the oldest first; what ended runs left behind is removed."""
    entries = [entry for file in _folder().glob("*.json") if (entry := _read(file)) is not None]
    for entry in entries:
        if not entry.alive:
            _remove(entry.file)
    return sorted((entry for entry in entries if entry.alive), key=lambda entry: (entry.started, entry.run))


def send_stop(entry: Running, *, hard: bool = False) -> bool:
    """Signal the run's process, and no other; False when it is not there any more."""
    return send_signal(entry.process, signal.SIGKILL if hard and sys.platform != "win32" else signal.SIGTERM)


def wait_ended(entries: Iterable[Running], seconds: float) -> list[Running]:
    """Wait until these runs are over; those that are not after so many seconds."""
    left = list(entries)
    until = time.monotonic() + seconds
    while left := [entry for entry in left if entry.alive and entry.file.exists()]:
        if time.monotonic() >= until:
            break
        time.sleep(0.02)
    return left


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)


def _folder() -> Path:
    return state_folder() / "running"


def _read(file: Path) -> Running | None:
    """Read an entry; None if it is damaged or from another machine that shares the folder."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(handle, encoding="utf-8") as opened:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or (hasattr(os, "getuid") and status.st_uid != os.getuid()):
                return None
            told = json.load(opened)
        if told["host"] != platform.node():
            return None
        texts = [str(told[name]) for name in ("run", "instruction", "started")]
        return Running(texts[0], texts[1], texts[2], int(told["pid"]), str(told["born"]), file)
    except (OSError, ValueError, KeyError, TypeError):
        return None
