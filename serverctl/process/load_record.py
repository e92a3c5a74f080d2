"""The last loads of a server, on disk: snapshots of its counters, taken while it works."""

import contextlib
import json
import time
from pathlib import Path

from foundation.files import write_atomically
from serverctl.load.window import Snapshot, take_snapshot
from serverctl.process.state import Folder

#: Seconds between snapshots: a load of half a minute has some.
EVERY_S = 5.0
#: Snapshots that are kept: 40 minutes of work, whenever that was. Idle time takes none.
_KEPT = 480


def record_file(folder: Folder) -> Path:
    """Where a server's snapshots are: a JSON object a line."""
    return folder.path / "load.jsonl"


def read_record(folder: Folder) -> list[Snapshot]:
    """The snapshots, the oldest first; what cannot be read is left out."""
    try:
        lines = record_file(folder).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = [snapshot for line in lines if (snapshot := _parsed(line)) is not None]
    return sorted(found, key=lambda one: one.at)


def _parsed(line: str) -> Snapshot | None:
    try:
        return Snapshot.from_json(json.loads(line))
    except ValueError:
        return None


def _finished(snapshot: Snapshot) -> float:
    return snapshot.counters.get("finished", 0.0)


class LoadRecord:
    """Writes the record of one start. The readiness probe is its first snapshot, not part of any load."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._kept: list[Snapshot] = read_record(folder)[-_KEPT:]
        self._last: Snapshot | None = None
        self._due = 0.0
        self._beats = 0

    def take(self, page: str | None, beats: int = 0) -> bool:
        """Return whether the server was used since the last snapshot, as far as is known.

        Keeps a /metrics page where anything has happened since the last one; nothing where there is none.

        A quiet moment is only remembered, and written before what comes after it: a window begins there. A moment with
        nothing but heartbeats of ours (`beats` is how many there were in all) is quiet.
        """
        if page is None:
            return True
        now, before = take_snapshot(page, time.time()), self._last
        own, self._beats = beats - self._beats, beats
        self._last = now
        only_ours = before is not None and own > 0 and _finished(now) - _finished(before) == own
        if before is not None and not now.busy and (only_ours or before.counters == now.counters):
            return False
        if before is not None and (not self._kept or self._kept[-1].at < before.at):
            self._kept.append(before)
        self._kept = [*self._kept, now][-_KEPT:]
        text = "".join(json.dumps(one.to_json(), separators=(",", ":")) + "\n" for one in self._kept)
        with contextlib.suppress(OSError):  # a full disk must not end a server that serves
            write_atomically(record_file(self._folder), text)
        return True

    def is_due(self) -> bool:
        """Whether it is time for the next snapshot."""
        if time.monotonic() < self._due:
            return False
        self._due = time.monotonic() + EVERY_S
        return True
