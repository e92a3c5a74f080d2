"""A server's log on disk: every line with its time, rotated by size, and read back by `logs` and `diagnose`."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

#: One file's size before the next is begun, and how many old ones are kept.
MOST_BYTES = 16 * 1024**2
KEPT = 4
#: A line longer than this is cut: one base64 screenshot in a log would fill it.
MOST_LINE = 16_384


def stamp() -> str:
    """Now, in UTC, as it stands before each line."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class LogWriter:
    """Writes lines to `server.log`, and moves it to server.log.1 and so on when it is full.

    A disk that cannot be written does not stop the server: `trouble` then says so.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        self.path = path
        self.trouble = ""
        self._most = most_bytes
        self._file: BinaryIO | None = None
        self._size = 0

    def write(self, line: str) -> None:
        """One line, without its end."""
        text = line if len(line) <= MOST_LINE + 16 else f"{line[:MOST_LINE]} ... (cut)"
        raw = f"{stamp()} {text}\n".encode("utf-8", "replace")
        try:
            if self._file is None:
                self._open()
            if self._size > self._most:
                self._rotate()
            assert self._file is not None
            self._file.write(raw)
            self._size += len(raw)
        except OSError as error:
            self.trouble = f"The log cannot be written: {error.strerror or error}."
            self.close()

    def _open(self) -> None:
        self._file = self.path.open("ab", buffering=0)  # a line is there for readers as soon as it was written
        self._size = self.path.stat().st_size

    def _rotate(self) -> None:
        self.close()
        for number in range(KEPT, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number}")
            newer = self.path if number == 1 else self.path.with_name(f"{self.path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)
        self._open()

    def close(self) -> None:
        """Closes the file; the next line opens it again."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


def log_files(path: Path) -> list[Path]:
    """The log and its older parts, oldest first."""
    older = [path.with_name(f"{path.name}.{number}") for number in range(KEPT, 0, -1)]
    return [file for file in (*older, path) if file.is_file()]


@dataclass(frozen=True, slots=True)
class Place:
    """A place between two lines of a log: a file, whatever its name is by now, and an offset in bytes."""

    inode: int
    offset: int


def tail(path: Path, count: int) -> tuple[list[str], Place | None]:
    """The last whole lines of a log, over its parts, and the place after them, for `follow`."""
    found: list[bytes] = []
    place: Place | None = None
    for file in reversed(log_files(path)):
        try:
            with file.open("rb") as opened:
                inode = _inode(opened)
                whole = opened.read()
        except OSError:  # rotated away this instant
            continue
        end = whole.rfind(b"\n") + 1
        if place is None:
            place = Place(inode, end)
        lines = whole[:end].split(b"\n")[:-1]
        found = lines[max(0, len(lines) - (count - len(found))) :] + found if count > len(found) else found
        if len(found) >= count:
            break
    return [_text(line) for line in found], place


def all_lines(path: Path) -> Iterator[str]:
    """Every line that is kept, oldest first."""
    for file in log_files(path):
        with file.open("rb") as lines:
            for line in lines:
                yield _text(line)


def follow(path: Path, place: Place | None = None, poll_seconds: float = 0.1) -> Iterator[str]:
    """New lines as they come, for ever, across rotations; "" when nothing came for a while.

    Args:
        path: the log.
        place: where to go on; None for the beginning of what is there.
        poll_seconds: how long "a while" is.
    """
    file: BinaryIO | None = None
    pending = b""
    while True:
        if file is None:
            file = _open_at(path, place)
        if file is not None:
            here = _inode(file)
            is_current = _inode_of(path) == here  # asked before reading: what is read then is all of an older part
            while chunk := file.read(1 << 16):
                *whole, pending = (pending + chunk).split(b"\n")
                yield from (_text(line) for line in whole)
            if not is_current:
                file.close()
                file, pending = _open_after(path, here), b""
                continue
        yield ""
        time.sleep(poll_seconds)


def _open_at(path: Path, place: Place | None) -> BinaryIO | None:
    """The part of a log that a place is in, from there; the newest where there is no such part, None without a log."""
    for candidate in reversed(log_files(path)) if place is not None else ():
        with contextlib.suppress(OSError):
            file = candidate.open("rb")
            if place is not None and _inode(file) == place.inode:
                file.seek(place.offset)
                return file
            file.close()
    with contextlib.suppress(OSError):
        return path.open("rb")
    return None


def _open_after(path: Path, inode: int) -> BinaryIO | None:
    """The part of a log that follows another; the oldest where that one is gone, None where there is none."""
    while True:
        opened: list[BinaryIO] = []
        for candidate in log_files(path):
            with contextlib.suppress(OSError):
                opened.append(candidate.open("rb"))
        numbers = [_inode(file) for file in opened]
        if numbers == [_inode_of(candidate) for candidate in log_files(path)]:
            break
        for file in opened:  # rotated this instant
            file.close()
    wanted = numbers.index(inode) + 1 if inode in numbers else 0
    for position, file in enumerate(opened):
        if position != wanted:
            file.close()
    return opened[wanted] if wanted < len(opened) else None


def _inode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino


def _inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
