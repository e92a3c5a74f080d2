"""A server's log on disk: lines with timestamps, rotated by size. `logs` and `diagnose` read it."""

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, TypeAlias

#: Size at which the log is rotated, and the number of old files to keep.
MOST_BYTES = 16 * 1024**2
KEPT = 4
#: Lines are cut at this length: a base64 screenshot would fill the log.
MOST_LINE = 16_384
#: Interval at which `follow` checks for new lines, seconds.
_POLL = 0.1


class LogWriter:
    """Writes lines to `server.log`, and rotates it to server.log.1 and so on.

    Write errors do not stop the server; `trouble` then describes the error. logging's RotatingFileHandler looks at the
    file twice a line, which is too slow for a flood of short lines.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trouble = ""
        self._file: BinaryIO | None = None
        self._size = 0

    def write(self, line: str) -> None:
        """Write one line, given without its line end, after a UTC timestamp."""
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        raw = f"{stamp}Z {line}\n".encode("utf-8", "replace")
        try:
            if self._file is not None and self._size > MOST_BYTES:
                self._rotate()
            if self._file is None:
                self._file = self.path.open("ab", buffering=0)  # unbuffered, so that readers see each line at once
                self._size = self.path.stat().st_size
            self._file.write(raw)
            self._size += len(raw)
        except OSError as error:
            self.trouble = f"The log cannot be written: {error.strerror or error}."
            self.close()

    def _rotate(self) -> None:
        self.close()
        for older, newer in pairwise(reversed(_names(self.path))):
            if newer.exists():
                newer.replace(older)

    def close(self) -> None:
        """Close the file. The next `write` opens it again."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None


def _names(path: Path) -> list[Path]:
    """Return the possible paths of the log and its rotated files, the newest first."""
    return [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, KEPT + 1))]


def log_files(path: Path) -> list[Path]:
    """Return the existing log files, the oldest first."""
    return [file for file in reversed(_names(path)) if file.is_file()]


@contextmanager
def _parts(path: Path) -> Iterator[dict[int, BinaryIO]]:
    """Open the log files, the oldest first, keyed by inode, which survives renaming.

    They are opened newest first: a file that is rotated meanwhile is seen twice instead of being missed.
    """
    found: dict[int, BinaryIO] = {}
    with ExitStack() as stack:
        for name in _names(path):
            with suppress(OSError):
                file = stack.enter_context(name.open("rb"))
                found.setdefault(os.fstat(file.fileno()).st_ino, file)
        yield dict(reversed(found.items()))


#: A position between two lines of a log: the inode of a log file (0 before all files), and an offset in bytes.
Place: TypeAlias = tuple[int, int]


def _whole_lines(file: BinaryIO, offset: int) -> tuple[list[bytes], int]:
    """Return the complete lines after an offset, and the offset after them."""
    file.seek(offset)
    *lines, rest = file.read().split(b"\n")
    return lines, file.tell() - len(rest)


def tail(path: Path, count: int) -> tuple[list[str], Place]:
    """Return the last complete lines over all log files, and the position after them, for `follow`."""
    found: deque[bytes] = deque(maxlen=count)
    place: Place = (0, 0)
    with _parts(path) as parts:
        for inode, file in parts.items():
            lines, end = _whole_lines(file, 0)
            found.extend(lines)
            place = (inode, end)
    return list(map(_text, found)), place


def all_lines(path: Path) -> Iterator[str]:
    """Yield every line of all log files, the oldest first."""
    with _parts(path) as parts:
        for file in parts.values():
            yield from map(_text, file)


def follow(path: Path, place: Place = (0, 0)) -> Iterator[str]:
    """Yield new lines after a position forever, across rotations. Yields "" after each check for new lines."""
    while True:
        with _parts(path) as parts:
            begin = list(parts).index(place[0]) if place[0] in parts else 0
            for inode, file in list(parts.items())[begin:]:
                lines, end = _whole_lines(file, place[1] if inode == place[0] else 0)
                place = (inode, end)
                yield from map(_text, lines)
        yield ""
        time.sleep(_POLL)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
