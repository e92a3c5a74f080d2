"""Files of the home, watched while a run lasts.

How everything was is taken in once, in the background and within limits; then the kernel tells where something
happens, and only there is looked again. What differs is told, not what happened in between.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from agent.desktop.linux.bookkeeping import is_folder_left_out, is_on_the_way
from agent.desktop.linux.entries import Entry, entry_at, link_target
from agent.desktop.linux.inotify import Inotify, NoMoreWatchesError
from agent.desktop.linux.settings import read_bounded

#: Folders that are watched and things that are remembered, at most: 0.6 s in the background here, and 40 MB. A system
#: allows 8,192 watches at least, of all programs of a person (older kernels; newer ones 65,536 and more).
_MOST_FOLDERS = 6_000
_MOST_ENTRIES = 60_000
#: What plain files hold is remembered up to so many bytes each, and so many bytes and files in all.
LARGEST_KEPT = 16_000
_MOST_KEPT, _MOST_FILES_KEPT = 4_000_000, 1_000
#: Works so many seconds, then rests as many: the run's first step wants the processor too.
_STRETCH = 0.005


class Home:
    """Knows how the home was, and which paths something happened to since. Paths are relative to the home.

    Args:
        home: the folder.
        without: folders in it that are not watched, such as the one that the run is recorded in.
        ended: whether nobody wants to know any more.
    """

    def __init__(self, home: Path, without: tuple[Path, ...], ended: Callable[[], bool]) -> None:
        self.root = os.fspath(home)
        self._without = frozenset(os.path.realpath(path) for path in without)
        self._ended = ended
        self._news: Inotify | None = None
        self._folders: dict[int, str] = {}  # by the numbers of their watches
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
            self._news = Inotify()
        except OSError as error:
            self.remark = f"Files are not watched ({error.strerror})."
            return
        rest = time.monotonic() + _STRETCH
        for folder in self._walk(""):
            for path, entry in self._look_into(folder):
                self.before[path] = self._with_content(path, entry)
            if time.monotonic() >= rest:
                time.sleep(_STRETCH)
                rest = time.monotonic() + _STRETCH
            if self._ended():
                return

    def look(self) -> None:
        """Take in what happened since, into `touched` and `moves`."""
        if self._news is None:
            return
        left: dict[int, str] = {}
        for news in self._news.read():
            if news.lost:
                self._look_everywhere()
            folder = self._folders.get(news.watch)
            if folder is None:
                continue
            path = joined(folder, os.fsdecode(news.name))
            self.touched.add(path)
            if news.left:
                left[news.left] = path
            elif news.arrived in left:
                self.moves[left[news.arrived]] = path
        for path in list(self.touched):
            self._look_at(path)

    def at(self, path: str) -> str:
        """The full path."""
        return joined(self.root, path)

    def close(self) -> None:
        """Watch no more."""
        if self._news is not None:
            self._news.close()

    def _look_at(self, path: str) -> None:
        """Where a folder came or went, all in it did."""
        now, was = entry_at(self.at(path)), self.before.get(path)
        is_other = now is None or was is None or not was.same_thing(now)
        if is_other and was is not None and was.is_folder:
            below = f"{path}/"
            self.touched.update(known for known in self.before if known.startswith(below))
        if is_other and now is not None and now.is_folder and self._is_watched(path):
            for folder in self._walk(path):
                self.touched.update(found for found, _ in self._look_into(folder))

    def _look_everywhere(self) -> None:
        self.touched.update(self.before)
        for folder in list(self._folders.values()):
            self.touched.update(found for found, _ in self._look_into(folder))

    def _walk(self, top: str) -> Iterator[str]:
        """The watched folders from one on, each watched before it is told: the outermost first."""
        waiting = deque([top])
        while waiting:
            folder = waiting.popleft()
            if len(self._folders) >= _MOST_FOLDERS or len(self.before) >= _MOST_ENTRIES:
                self.remark = f"Your home is large: only {len(self._folders)} of its folders are watched."
                return
            try:
                assert self._news is not None
                self._folders[self._news.add(self.at(folder))] = folder
            except NoMoreWatchesError:
                self.remark = (
                    f"Only {len(self._folders)} folders are watched: the system allows no more "
                    "(fs.inotify.max_user_watches)."
                )
                return
            except OSError:  # gone, or not ours to read
                continue
            yield folder
            waiting.extend(
                path for path, entry in self._look_into(folder) if entry.is_folder and self._is_watched(path)
            )

    def _look_into(self, folder: str) -> Iterator[tuple[str, Entry]]:
        with suppress(OSError), os.scandir(self.at(folder)) as entries:
            for entry in entries:
                with suppress(OSError):
                    yield joined(folder, entry.name), Entry.of(entry.stat(follow_symlinks=False))

    def _is_watched(self, path: str) -> bool:
        if is_folder_left_out(PurePosixPath(path)) or os.path.realpath(self.at(path)) in self._without:
            return False
        try:
            return os.lstat(self.at(path)).st_dev == self._device  # network drives can hang, and tell no news
        except OSError:
            return False

    def _with_content(self, path: str, entry: Entry) -> Entry:
        if entry.is_link:
            return replace(entry, content=link_target(self.at(path)))
        if not entry.is_file or not 0 <= entry.size <= LARGEST_KEPT or is_on_the_way(PurePosixPath(path).parent):
            return entry
        if self._kept + entry.size > _MOST_KEPT or self._files_kept >= _MOST_FILES_KEPT:
            return entry
        self._kept += entry.size
        self._files_kept += 1
        content = read_bounded(Path(self.at(path)), LARGEST_KEPT)
        return replace(entry, content=content) if len(content) == entry.size else entry


def joined(folder: str, name: str) -> str:
    """The path of what is in a folder; "" for the home itself."""
    return f"{folder}/{name}" if folder else name
