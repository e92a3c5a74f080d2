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
from datetime import datetime
from pathlib import Path

import psutil

from foundation.files import write_atomically
from foundation.paths import state_folder


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
    def alive(self) -> bool:
        """Whether its process is there."""
        return _born(self.pid) == self.born


class Registered:
    """One run's entry, from now until it is closed."""

    def __init__(self, run: str, instruction: str) -> None:
        self._file: Path | None = None
        self.remark = ""
        if not run:
            return
        file = _folder() / f"{run}.json"
        entry = {
            "run": run, "instruction": instruction, "started": datetime.now().astimezone().isoformat("T", "seconds"),
            "pid": os.getpid(), "born": _born(os.getpid()), "host": platform.node(),
        }  # fmt: skip
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(file, json.dumps(entry))  # whoever looks sees a whole entry or none
        except (OSError, UnicodeEncodeError) as error:
            self.remark = f"`mai-agent stop` will not find this run: {file.parent} cannot be written ({error})."
            return
        self._file = file

    def close(self) -> None:
        """Remove it; safe to call twice."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.unlink(missing_ok=True)


def find_running() -> list[Running]:
    """This user's runs on this machine, the oldest first; what ended runs left behind is removed."""
    found: list[Running] = []
    for file in sorted(_folder().glob("*.json")):
        entry = _read(file)
        if entry is None:
            continue
        if entry.alive:
            found.append(entry)
        else:
            with suppress(OSError):
                file.unlink(missing_ok=True)
    return sorted(found, key=lambda entry: entry.started)


def send_stop(entry: Running, *, hard: bool = False) -> bool:
    """Signal the run's process, and no other; False when it is not there any more."""
    number = signal.SIGKILL if hard and sys.platform != "win32" else signal.SIGTERM
    try:
        if not hasattr(os, "pidfd_open"):
            if not entry.alive:
                return False
            os.kill(entry.pid, number)
            return True
        process = os.pidfd_open(entry.pid)  # holds on to the process: the number cannot be given away meanwhile
        try:
            if not entry.alive:
                return False
            signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)
    except ProcessLookupError:
        return False
    return True


def wait_ended(entries: Iterable[Running], seconds: float) -> list[Running]:
    """Wait until these runs are over; those that are not after so many seconds."""
    left = list(entries)
    until = time.monotonic() + seconds
    while left := [entry for entry in left if entry.alive and entry.file.exists()]:
        if time.monotonic() >= until:
            break
        time.sleep(0.02)
    return left


def _folder() -> Path:
    return state_folder() / "running"


def _read(file: Path) -> Running | None:
    """An entry of this machine; None for those of others that share the folder, and for what is none."""
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


def _born(pid: int) -> str:
    """What tells a process from all others that had or will have its number; "" when there is none."""
    if not sys.platform.startswith("linux"):
        with suppress(psutil.Error):
            return f"{psutil.Process(pid).create_time():.2f}"
        return ""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else f"{boot}/{fields[19]}"
