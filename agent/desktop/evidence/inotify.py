"""The kernel's news of folders (inotify), as a thin cover of the C library's three functions."""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

# Numbers of <sys/inotify.h>.
_MODIFY, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _IGNORED, _IS_FOLDER = 0x4000, 0x8000, 0x40000000
_ONLYDIR, _DONT_FOLLOW, _EXCL_UNLINK = 0x1000000, 0x2000000, 0x4000000
_MASK = _MODIFY | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _ONLYDIR | _DONT_FOLLOW | _EXCL_UNLINK
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 16


class NoMoreWatchesError(OSError):
    """The system allows no more watches (fs.inotify.max_user_watches)."""


@dataclass(frozen=True, slots=True)
class News:
    """One thing that happened in a watched folder."""

    watch: int
    name: bytes
    left: int = 0  # of a move away: what the arrival elsewhere is told by too; else 0
    arrived: int = 0  # of a move here
    was_there: bool = False  # before it happened
    is_folder: bool = False
    lost: bool = False  # too much happened for the kernel to keep; nothing else is told by this


class Inotify:
    """Watches folders; safe to add from one thread while another reads.

    Raises:
        OSError: the system lets nobody watch any more.
    """

    def __init__(self) -> None:
        self._handle = _library().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._handle < 0:
            raise _error("watching files")

    def add(self, folder: str) -> int:
        """Watch a folder; the number that news of it carry, the same for a folder that was moved.

        Raises:
            NoMoreWatchesError: there are too many.
            OSError: it cannot be watched.
        """
        watch: int = _library().inotify_add_watch(self._handle, os.fsencode(folder), _MASK)
        if watch < 0:
            error = _error(folder)
            raise NoMoreWatchesError(*error.args) if error.errno == errno.ENOSPC else error
        return watch

    def read(self) -> Iterator[News]:
        """What happened since; does not wait."""
        while True:
            try:
                data = os.read(self._handle, _BUFFER)
            except (BlockingIOError, OSError):
                return
            yield from _parse(data)

    def close(self) -> None:
        """Watch no more; safe to call twice."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def _parse(data: bytes) -> Iterator[News]:
    at = 0
    while at < len(data):
        watch, mask, cookie, length = _EVENT.unpack_from(data, at)
        name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
        at += _EVENT.size + length
        if mask & _OVERFLOW:
            yield News(watch, b"", lost=True)
        elif not mask & _IGNORED and name:
            yield News(
                watch,
                name,
                left=cookie if mask & _MOVED_FROM else 0,
                arrived=cookie if mask & _MOVED_TO else 0,
                was_there=bool(mask & (_MODIFY | _MOVED_FROM | _DELETE)),
                is_folder=bool(mask & _IS_FOLDER),
            )


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)


@cache
def _library() -> Any:
    return ctypes.CDLL(None, use_errno=True)
