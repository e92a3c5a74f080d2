"""Track changes to the files of the home folder during a run.

A background scan, with limits, records the initial state; inotify then reports the paths to look at again. Only the
difference between start and end counts, not the steps in between.
"""

import errno
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from inotify_simple import INotify, flags

from agent.desktop.changes.bookkeeping import is_folder_left_out
from agent.desktop.changes.entries import Entry, entry_at, link_target, read_bounded

#: Most folders to watch. The kernel's limit for all programs of a user is at least 8,192 watches (older kernels; newer
#: ones allow 65,536 and more).
_MOST_FOLDERS = 6_000
#: Most entries to remember: some 15 MB. In folders beyond this limit, changes are reported without the earlier state.
_MOST_ENTRIES = 40_000
#: Limits for remembered file contents: bytes per file, then bytes and files in total.
LARGEST_KEPT = 16_000
_MOST_KEPT, _MOST_FILES_KEPT = 4_000_000, 1_000
#: The scan works for this many seconds, then sleeps as long, so that the run's first step gets processor time.
_STRETCH = 0.005
_WAS_THERE = flags.MODIFY | flags.MOVED_FROM | flags.DELETE
_WATCHED = _WAS_THERE | flags.MOVED_TO | flags.CREATE | flags.ONLYDIR | flags.DONT_FOLLOW | flags.EXCL_UNLINK


class Home:
    """The initial state of the home folder, and the paths touched since then. Paths are relative to the home.

    Folders of `without`, such as the run's recording, are not watched. `ended` returns whether the scan should stop.
    """

    def __init__(self, home: Path, without: tuple[Path, ...], ended: Callable[[], bool]) -> None:
        self.root = os.fspath(home)
        real = os.path.realpath(home)
        self._without = frozenset(os.path.relpath(os.path.realpath(path), real) for path in without)
        self._ended = ended
        self._inotify: INotify | None = None
        self._folders: dict[int, str] = {}  # by watch descriptor
        self._unlisted: set[str] = set()  # watched, but their contents exceeded the limit and are not recorded
        self._device = 0
        self._kept = self._files_kept = 0
        self.before: dict[str, Entry] = {}
        self.touched: set[str] = set()
        self.moves: dict[str, str] = {}  # from the old path to the new one, as far as the kernel reported it
        self.remark = ""

    def begin(self) -> None:
        """Record the initial state. This can take long in a large home: call it in the background."""
        try:
            self._device = Path(self.root).stat().st_dev
            self._inotify = INotify()
        except OSError as error:
            self.remark = f"Files are not watched ({error.strerror})."
            return
        rest = time.monotonic() + _STRETCH
        for folder, names in self._walk(""):
            if len(self.before) + len(names) > _MOST_ENTRIES:
                self._unlisted.add(folder)
            for name, is_folder in names.items():
                path = joined(folder, name)
                if (is_folder or folder not in self._unlisted) and (entry := entry_at(self.at(path))):
                    self.before[path] = replace(entry, content=self._content(path, entry))
            if time.monotonic() >= rest:
                time.sleep(_STRETCH)
                rest = time.monotonic() + _STRETCH
            if self._ended():
                return

    def look(self) -> None:
        """Read the pending inotify events into `touched` and `moves`."""
        left: dict[int, str] = {}  # old paths of moves, by cookie
        for watch, mask, cookie, name in self._inotify.read(timeout=0) if self._inotify is not None else ():
            folder = self._folders.get(watch)
            if mask & flags.Q_OVERFLOW:
                self._look_everywhere()
            elif folder is not None and name and not mask & flags.IGNORED:
                path = joined(folder, name)
                if mask & _WAS_THERE and folder in self._unlisted and path not in self.touched:
                    self.before.setdefault(path, Entry.unknown(is_folder=bool(mask & flags.ISDIR)))
                self.touched.add(path)
                if mask & flags.MOVED_FROM:
                    left[cookie] = path
                elif mask & flags.MOVED_TO and cookie in left:
                    self.moves[left[cookie]] = path
        for path in list(self.touched):
            self._look_at(path)

    def at(self, path: str) -> str:
        return joined(self.root, path)

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def _look_at(self, path: str) -> None:
        """Add everything below a folder that appeared or disappeared."""
        now, was = entry_at(self.at(path)), self.before.get(path)
        is_other = now is None or was is None or not was.same_thing(now)
        if is_other and was is not None and was.is_folder:
            below = f"{path}/"
            self.touched.update(known for known in self.before if known.startswith(below))
        if is_other and now is not None and now.is_folder and self._is_watched(path):
            for folder, names in self._walk(path):
                if folder not in self._unlisted:
                    self.touched.update(joined(folder, name) for name in names)

    def _look_everywhere(self) -> None:
        """Add all paths: after an overflow of the inotify queue, changes may be anywhere."""
        self.touched.update(self.before)
        for folder in list(self._folders.values()):
            if folder not in self._unlisted:
                self.touched.update(joined(folder, name) for name in self._names(folder))
        if self._unlisted:
            self.remark = "Too much happened at once in a large home: not all changes of files are told."

    def _walk(self, top: str) -> Iterator[tuple[str, dict[str, bool]]]:
        """Yield the folders from `top` down, outermost first, with their names. Each is watched before it is read."""
        assert self._inotify is not None
        waiting = deque([top])
        while waiting:
            folder = waiting.popleft()
            if len(self._folders) >= _MOST_FOLDERS:
                self.remark = f"Your home is large: only {len(self._folders)} of its folders are watched."
                return
            try:
                watch = self._inotify.add_watch(self.at(folder), _WATCHED)
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    coverage = f"Only {len(self._folders)} folders are watched"
                    self.remark = f"{coverage}: the system allows no more (fs.inotify.max_user_watches)."
                    return
                continue  # deleted meanwhile, or not readable
            if self._folders.get(watch) in self._unlisted:  # moved here: its contents are still not recorded
                self._unlisted.add(folder)
            self._folders[watch] = folder
            names = self._names(folder)
            yield folder, names
            inner = (joined(folder, name) for name, is_folder in names.items() if is_folder)
            waiting.extend(path for path in inner if self._is_watched(path))

    def _names(self, folder: str) -> dict[str, bool]:
        """Return the names in a folder, and whether each is a folder."""
        with suppress(OSError), os.scandir(self.at(folder)) as entries:
            return {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        return {}

    def _is_watched(self, path: str) -> bool:
        if path in self._without or is_folder_left_out(PurePosixPath(path)):
            return False
        with suppress(OSError):
            return os.lstat(self.at(path)).st_dev == self._device  # network drives can hang, and send no inotify events
        return False

    def _content(self, path: str, entry: Entry) -> bytes | None:
        if entry.is_link:
            return link_target(self.at(path))
        if not entry.is_file or entry.size > LARGEST_KEPT:
            return None
        if self._kept + entry.size > _MOST_KEPT or self._files_kept >= _MOST_FILES_KEPT:
            return None
        self._kept += entry.size
        self._files_kept += 1
        content = read_bounded(Path(self.at(path)), LARGEST_KEPT, entry.inode)
        return content if len(content) == entry.size else None


def joined(folder: str, name: str) -> str:
    """Return the path of a name in a folder; "" is the home itself."""
    return f"{folder}/{name}" if folder else name


def told_as(path: str) -> str:
    """Return the path for display, with ~ as the home: the real path of a home or a sandbox adds nothing."""
    return f"~/{path}" if path else "~"
