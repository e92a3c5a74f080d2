"""Files of the home, watched while a run lasts.

How everything was is taken in once, in the background and within limits; then the kernel tells where something
happens, and only there is looked again. What differs is told, not what happened in between.
"""

import errno
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from inotify_simple import INotify, flags

from agent.desktop.evidence.bookkeeping import is_folder_left_out
from agent.desktop.evidence.entries import Entry, entry_at, link_target
from agent.desktop.evidence.settings import read_bounded

#: Folders that are watched, at most: a system allows 8,192 watches at least, of all programs of a person (older
#: kernels; newer ones 65,536 and more).
_MOST_FOLDERS = 6_000
#: Things that are remembered, at most: some 15 MB. In the folders beyond, it is told what happened, but not what was.
_MOST_ENTRIES = 40_000
#: What plain files hold is remembered up to so many bytes each, and so many bytes and files in all.
LARGEST_KEPT = 16_000
_MOST_KEPT, _MOST_FILES_KEPT = 4_000_000, 1_000
#: Works so many seconds, then rests as many: the run's first step wants the processor too.
_STRETCH = 0.005
_WAS_THERE = flags.MODIFY | flags.MOVED_FROM | flags.DELETE
_WATCHED = _WAS_THERE | flags.MOVED_TO | flags.CREATE | flags.ONLYDIR | flags.DONT_FOLLOW | flags.EXCL_UNLINK


class Home:
    """Knows how the home was, and which paths something happened to since. Paths are relative to the home.

    Args:
        home: the folder.
        without: folders in it that are not watched, such as the one that the run is recorded in.
        ended: whether nobody wants to know any more.
    """

    def __init__(self, home: Path, without: tuple[Path, ...], ended: Callable[[], bool]) -> None:
        self.root = os.fspath(home)
        real = os.path.realpath(home)
        self._without = frozenset(os.path.relpath(os.path.realpath(path), real) for path in without)
        self._ended = ended
        self._inotify: INotify | None = None
        self._folders: dict[int, str] = {}  # by the numbers of their watches
        self._unlisted: set[str] = set()  # watched, but it was too much to remember what was in them
        self._device = 0
        self._kept = self._files_kept = 0
        self.before: dict[str, Entry] = {}
        self.touched: set[str] = set()
        self.moves: dict[str, str] = {}  # where each went, as far as the kernel told
        self.remark = ""

    def begin(self) -> None:
        """Take in how it is. Takes as long as it takes: call it in the background."""
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
                if is_folder or folder not in self._unlisted:
                    self._remember(joined(folder, name))
            if time.monotonic() >= rest:
                time.sleep(_STRETCH)
                rest = time.monotonic() + _STRETCH
            if self._ended():
                return

    def look(self) -> None:
        """Take in what happened since, into `touched` and `moves`."""
        left: dict[int, str] = {}  # by the cookies of moves
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
        """The full path."""
        return joined(self.root, path)

    def close(self) -> None:
        """Watch no more."""
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def _look_at(self, path: str) -> None:
        """Where a folder came or went, all in it did."""
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
        """The kernel could not keep up with what happened: it may be anywhere."""
        self.touched.update(self.before)
        for folder in list(self._folders.values()):
            if folder not in self._unlisted:
                self.touched.update(joined(folder, name) for name in self._names(folder))
        if self._unlisted:
            self.remark = "Too much happened at once in a large home: not all changes of files are told."

    def _walk(self, top: str) -> Iterator[tuple[str, dict[str, bool]]]:
        """The folders from one on and the names in them, the outermost first, each watched before it is read."""
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
                    much = f"Only {len(self._folders)} folders are watched"
                    self.remark = f"{much}: the system allows no more (fs.inotify.max_user_watches)."
                    return
                continue  # gone, or not ours to read
            if self._folders.get(watch) in self._unlisted:  # moved here: what is in it is as unknown as before
                self._unlisted.add(folder)
            self._folders[watch] = folder
            names = self._names(folder)
            yield folder, names
            inner = (joined(folder, name) for name, is_folder in names.items() if is_folder)
            waiting.extend(path for path in inner if self._is_watched(path))

    def _names(self, folder: str) -> dict[str, bool]:
        """The names in a folder, and which are folders."""
        try:
            with os.scandir(self.at(folder)) as entries:
                return {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        except OSError:
            return {}

    def _is_watched(self, path: str) -> bool:
        if path in self._without or is_folder_left_out(PurePosixPath(path)):
            return False
        try:
            return os.lstat(self.at(path)).st_dev == self._device  # network drives can hang, and tell no news
        except OSError:
            return False

    def _remember(self, path: str) -> None:
        entry = entry_at(self.at(path))
        if entry is not None:
            self.before[path] = replace(entry, content=self._content(path, entry))

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
    """The path of what is in a folder; "" for the home itself."""
    return f"{folder}/{name}" if folder else name


def told_as(path: str) -> str:
    """A path below the home as people are told it: where a sandbox has its home, and who lives here, says nothing."""
    return f"~/{path}" if path else "~"
