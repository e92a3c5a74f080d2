"""Records the recent load of a server on disk: snapshots of its counters, taken while it works."""

import contextlib
import json
import time
from pathlib import Path

from foundation.files import write_atomically
from serverctl.load.window import Snapshot, take_snapshot
from serverctl.process.state import Folder

#: Seconds between snapshots: short enough for several snapshots of a half-minute load.
EVERY_S = 5.0
#: Number of snapshots to keep: 40 minutes of work. Idle time adds none.
_KEPT = 480


def record_file(folder: Folder) -> Path:
    """Return the path of a server's snapshots: JSON lines."""
    return folder.path / "load.jsonl"


def read_record(folder: Folder) -> list[Snapshot]:
    """Return the snapshots, the oldest first, without unreadable lines."""
    try:
        lines = record_file(folder).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):
            found.append(Snapshot.from_json(json.loads(line)))
    return sorted(filter(None, found), key=lambda one: one.at)


class LoadRecord:
    """Writes the record of one start. Its first snapshot follows the readiness probe, which is not part of any load."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._kept: list[Snapshot] = read_record(folder)[-_KEPT:]
        self._last: Snapshot | None = None
        self._due = 0.0
        self._beats = 0

    def take(self, page: str | None, beats: int = 0) -> bool:
        """Record a /metrics page if there was load. Return whether the server was used, True if the page is None.

        An idle snapshot is only kept in memory. It is written before the next one with load, as the start of a window.
        A period with only our own heartbeats is idle; `beats` is their total number so far.
        """
        if page is None:
            return True
        now, before = take_snapshot(page, time.time()), self._last
        own, self._beats = beats - self._beats, beats
        self._last = now
        if before is not None and not now.busy:
            done = now.counters.get("finished", 0.0) - before.counters.get("finished", 0.0)
            if before.counters == now.counters or (own > 0 and done == own):
                return False
        if before is not None and (not self._kept or self._kept[-1].at < before.at):
            self._kept.append(before)
        self._kept = [*self._kept, now][-_KEPT:]
        text = "".join(json.dumps(one.to_json(), separators=(",", ":")) + "\n" for one in self._kept)
        with contextlib.suppress(OSError):  # a full disk must not stop a working server
            write_atomically(record_file(self._folder), text)
        return True

    def is_due(self) -> bool:
        """Return whether the next snapshot is due, and schedule the one after it if so."""
        if time.monotonic() < self._due:
            return False
        self._due = time.monotonic() + EVERY_S
        return True
