"""The recorded state of a file or folder, its fingerprint, and reading files that other programs may replace."""

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foundation.printing import counted

#: Files up to this size, in bytes, are compared by content; larger files by size and modification time.
LARGEST_READ = 1_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """The state of a file, folder or link at one point in time."""

    mode: int
    inode: int
    size: int
    modified: int  # in nanoseconds
    content: bytes | None = None  # content of a small file, or target of a link

    @classmethod
    def of(cls, status: os.stat_result, content: bytes | None = None) -> "Entry":
        return cls(status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, content)

    @classmethod
    def unknown(cls, *, is_folder: bool) -> "Entry":
        """Return the entry of a file or folder that existed; everything but its kind is unknown."""
        return cls(stat.S_IFDIR if is_folder else stat.S_IFREG, 0, -1, 0)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder; a link to a folder does not count."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    def same_thing(self, other: "Entry") -> bool:
        """Whether both are the same, unmodified file. Inodes of deleted files are reused, so times count too."""
        if self.inode != other.inode or stat.S_IFMT(self.mode) != stat.S_IFMT(other.mode):
            return False
        return self.is_folder or (self.modified == other.modified and self.size == other.size)

    def __str__(self) -> str:
        if self.is_folder:
            return "a folder"
        if self.is_link:
            return "a link"
        if self.size < 0:
            return "a file"
        return counted(self.size, "byte") if self.is_file else "no plain file"


def read_bounded(path: Path, largest: int, inode: int | None = None) -> bytes:
    """Return a file's content, or b"" if it cannot be read, is not a regular file, or is larger than `largest` bytes.

    With `inode`, also return b"" if the path now leads to another file, for example through a new link.
    """
    try:
        # Opening a pipe or a device must not block.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 -- a number
            status = os.fstat(file.fileno())
            plain = stat.S_ISREG(status.st_mode) and inode in (None, status.st_ino)
            return file.read(largest) if plain and status.st_size <= largest else b""
    except OSError:
        return b""


def entry_at(path: str) -> Entry | None:
    """Return the entry at a path, or None if nothing is there."""
    try:
        return Entry.of(os.lstat(path))
    except (OSError, ValueError):
        return None


def link_target(path: str) -> bytes:
    """Return the target of a symbolic link, or b"" if the path is no longer a link."""
    try:
        return os.fsencode(Path(path).readlink())
    except OSError:
        return b""


def digest(path: str, entry: Entry) -> str:
    """Return a fingerprint of what is at a path.

    It covers the target of a link, the names in a folder, and the content of a file of up to `LARGEST_READ` bytes. For
    anything else it consists of size and modification time.
    """
    if entry.is_link:
        return hashlib.sha256(link_target(path)).hexdigest()
    if entry.is_file and entry.size <= LARGEST_READ:
        return hashlib.sha256(read_bounded(Path(path), LARGEST_READ, entry.inode)).hexdigest()
    if entry.is_folder:
        names: list[bytes] = []
        with suppress(OSError):
            names = os.listdir(os.fsencode(path))  # noqa: PTH208 -- names need not be text
        return hashlib.sha256(b"\0".join(sorted(names))).hexdigest()
    return f"{entry.size}-{entry.modified}"


def state(path: str, entry: Entry) -> dict[str, Any]:
    """Return plain JSON by which a later call can tell whether the file or folder is unchanged."""
    return {"folder": entry.is_folder, "size": 0 if entry.is_folder else entry.size, "digest": digest(path, entry)}
