"""The registry of this user's active runs, so that another terminal can stop them.

While a run is active, it has a file in the user's state folder with its PID and the process's start time. The PID alone
is not enough, because PIDs are reused and another process must never be signalled.
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
    """An active run: id, instruction, start time and process."""

    run: str
    instruction: str
    started: str
    pid: int
    born: str
    file: Path

    @property
    def process(self) -> ProcessIdentity:
        """The process of the run."""
        return ProcessIdentity(self.pid, self.born)

    @property
    def alive(self) -> bool:
        """Whether the process still exists."""
        return is_alive(self.process)


class Registered:
    """The registry entry of a run, from construction until `close`."""

    def __init__(self, run: str, instruction: str) -> None:
        self._file: Path | None = None
        self.remark = ""
        if not run:
            return
        from datetime import datetime  # imported here because the import takes longer than `mai-agent stop` itself

        file = _folder() / f"{run}.json"
        me = identity_of(os.getpid()) or ProcessIdentity(os.getpid(), "")
        started = datetime.now().astimezone().isoformat("T", "seconds")
        entry = {"run": run, "instruction": instruction, "started": started, **me.to_json(), "host": platform.node()}
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(file, json.dumps(entry))  # readers see a complete entry or none
            self._file = file
        except (OSError, UnicodeEncodeError) as error:
            self.remark = f"`mai-agent stop` will not find this run: {file.parent} cannot be written ({error})."

    def close(self) -> None:
        """Delete the entry. Safe to call twice."""
        if self._file is not None:
            _remove(self._file)


def find_running() -> list[Running]:
    """Return this user's runs on this machine, oldest first. Delete the entries of ended runs."""
    entries = [entry for file in _folder().glob("*.json") if (entry := _read(file)) is not None]
    for entry in entries:
        if not entry.alive:
            _remove(entry.file)
    return sorted((entry for entry in entries if entry.alive), key=lambda entry: (entry.started, entry.run))


def send_stop(entry: Running, *, hard: bool = False) -> bool:
    """Signal the run's process, and no other. Return False if it no longer exists."""
    return send_signal(entry.process, signal.SIGKILL if hard and sys.platform != "win32" else signal.SIGTERM)


def wait_ended(entries: Iterable[Running], seconds: float) -> list[Running]:
    """Wait until these runs have ended. Return those that have not after the timeout."""
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
            entry = json.load(opened)
        if entry["host"] != platform.node():
            return None
        texts = [str(entry[name]) for name in ("run", "instruction", "started")]
        return Running(texts[0], texts[1], texts[2], int(entry["pid"]), str(entry["born"]), file)
    except (OSError, ValueError, KeyError, TypeError):
        return None
