"""Tracks the files of the home folder during a run, and tells which were made, changed, moved, trashed or deleted.

A background scan, with limits, records the initial state; inotify then reports the paths to look at again. Only the
difference between start and end counts, not the steps in between.
"""

import errno
import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from inotify_simple import INotify, flags

from agent.core.changes import Change
from agent.desktop.changes.bookkeeping import is_file_left_out, is_folder_left_out, is_on_the_way
from agent.desktop.changes.entries import Entry, entry_at, link_target, read_bounded, state

#: The trash, relative to the home (FreeDesktop.org Trash specification, with the default data folder).
TRASH = ".local/share/Trash/files"
#: Most file entries in a receipt; the rest is only counted.
_MOST = 2000
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

Entries = Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences between two states of some paths."""

    made: dict[str, Entry]
    gone: dict[str, Entry]
    changed: dict[str, tuple[Entry, Entry]]  # by present path; candidates, whose content is still to be compared
    moved: dict[str, tuple[str, Entry]]  # from the initial path to the present one


def compare(before: Entries, after: Entries, moves: Mapping[str, str]) -> Differences:
    """Compare two states of the same paths; `moves` are the moves that the kernel reported.

    A path that was replaced by something else of the same kind counts as changed, not as deleted and created.
    """
    changed = {
        path: (old, after[path])
        for path, old in before.items()
        if path in after and _kind(old, after[path]) and not _moved_away(path, old, after, moves)
    }
    gone = {path: old for path, old in before.items() if path not in after or path not in changed}
    made = {path: new for path, new in after.items() if path not in before or path not in changed}
    moved: dict[str, tuple[str, Entry]] = {}
    for path in sorted(gone):  # a folder before its contents
        old = gone.get(path)
        target = None if old is None else _target(path, old, made, moves)
        if old is None or target is None:
            continue
        del gone[path]
        moved[path] = (target, made.pop(target))
        if old.is_folder:
            # Compare the contents with those at the new place, so that only real differences count.
            for inner in [other for other in gone if other.startswith(f"{path}/")]:
                now = target + inner[len(path) :]
                if now in made and _kind(gone[inner], made[now]):
                    changed[now] = (gone.pop(inner), made.pop(now))
        elif old.inode:
            changed[target] = (old, moved[path][1])  # may have been written to as well
    return Differences(made, gone, changed, moved)


def _moved_away(path: str, old: Entry, after: Entries, moves: Mapping[str, str]) -> bool:
    """Whether the file that was at a path has moved elsewhere, and a new file took its place."""
    entry = after.get(moves.get(path, path))
    return entry is not None and entry.inode == old.inode != after[path].inode


def _kind(old: Entry, new: Entry) -> bool:
    return (old.is_folder, old.is_file) == (new.is_folder, new.is_file)


def _target(path: str, old: Entry, made: Entries, moves: Mapping[str, str]) -> str | None:
    """Return the present path of something that moved, or None."""
    target, known = path, {path}
    while target in moves and moves[target] not in known:
        target = moves[target]
        known.add(target)
    if target != path and target in made and old.inode in (0, made[target].inode):  # 0: unknown
        return target
    return next((other for other, new in made.items() if other != path and old.same_thing(new)), None)


class Files:
    """The files of the home folder: how they were, and what changed since. Paths are relative to the home.

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
        self._states: dict[tuple[str, int, int, int], dict[str, Any]] = {}

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

    def changes(self) -> list[Change]:
        self.look()
        paths = sorted(self.touched)
        before = {path: self.before[path] for path in paths if path in self.before}
        after = {path: entry for path in paths if (entry := entry_at(self.at(path)))}
        differences = compare(before, after, self.moves)
        found = [*self._told(differences), *self._made_and_trashed(differences.made)]
        if len(found) > _MOST:
            more = len(found) - _MOST
            remark = f"{more} more files changed; they are not listed and cannot be undone"
            found[_MOST:] = [Change("file", home_path(""), None, remark)]
        return found

    def _told(self, differences: Differences) -> Iterator[Change]:
        made, gone = dict(differences.made), dict(differences.gone)
        for path, (target, entry) in differences.moved.items():
            if _is_left_out(path, entry):
                made[target] = entry
            elif not _in_trash(target) and _is_left_out(target, entry):
                gone[path] = entry
            else:
                after = f"{'in the trash, as' if _in_trash(target) else 'moved to'} {home_path(target)}"
                to = _quoted(self.at(target))
                yield self._change(path, str(entry), after, "moved", entry, to=to, inode=entry.inode)
        moved_to = {target for target, _ in differences.moved.values()}
        for path, (old, new) in differences.changed.items():
            in_trash = _in_trash(path) and path not in moved_to  # written to, then trashed
            if not (old.is_folder or _is_left_out(path, new) or in_trash):
                yield from self._told_change(path, old, new)
        for path, entry in made.items():
            if not _is_left_out(path, entry) and not _in_trash(path):
                yield self._change(path, None, str(entry), "made", entry, state=self._state(path, entry))
        for path, entry in gone.items():
            if not _is_left_out(path, entry):
                mode = entry.mode & 0o777
                yield self._change(path, str(entry), None, "gone", entry, content=_text(entry), mode=mode)

    def _made_and_trashed(self, made: Entries) -> Iterator[Change]:
        """Report what the run created and then moved to the trash. There is nothing to undo."""
        origins = {target: source for source, target in self.moves.items()}
        for target, entry in made.items():
            origin = origins.get(target)
            if origin is None or not _in_trash(target) or _in_trash(origin) or _is_left_out(origin, entry):
                continue
            after = f"made, and then in the trash, as {home_path(target)}"
            yield self._change(origin, None, after, "made", entry, state=None)

    def _told_change(self, path: str, old: Entry, new: Entry) -> Iterator[Change]:
        known = None if old.content is None else hashlib.sha256(old.content).hexdigest()
        if known is None and old.same_thing(new):
            return
        now = self._state(path, new)
        if known == now["digest"]:
            return
        before, after = str(old), str(new)
        if before == after:
            before += "" if known is None else f" (sha256 {known[:8]})"
            after += f" (sha256 {now['digest'][:8]})"
        yield self._change(path, before, after, "changed", new, state=now, content=_text(old))

    def _change(self, path: str, before: str | None, after: str | None, how: str, entry: Entry, **undo: Any) -> Change:
        full = _quoted(self.at(path))
        kept = {"store": "file", "how": how, "path": full, "folder": entry.is_folder} | undo
        return Change("file", home_path(path), before, after, kept)

    def _state(self, path: str, entry: Entry) -> dict[str, Any]:
        """Return the state of a file, read only once per version of it."""
        key = (path, entry.inode, entry.size, entry.modified)
        if key not in self._states:
            self._states[key] = state(self.at(path), entry)
        return self._states[key]

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
            self.remark = "Too much happened at once in a large home: some file changes are not reported."

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


def home_path(path: str) -> str:
    """Return the path for display, with ~ as the home: the real path of a home or a sandbox adds nothing."""
    return f"~/{path}" if path else "~"


def _is_left_out(path: str, entry: Entry) -> bool:
    pure = PurePosixPath(path)
    if is_on_the_way(pure.parent):
        return True
    if entry.is_folder:  # a new hidden folder, such as one in .config, is not reported; its contents are
        return is_folder_left_out(pure) or (pure.parts[0].startswith(".") and not _in_trash(path))
    return is_file_left_out(pure) or any(map(is_folder_left_out, list(pure.parents)[:-1]))


def _in_trash(path: str) -> bool:
    return path.startswith(f"{TRASH}/")


def _quoted(path: str) -> str:
    """Percent-encode a path: file names need not be valid text."""
    return quote(os.fsencode(path))


def _text(entry: Entry) -> str | None:
    """Return the content of a small text file, or None if it cannot be restored."""
    with suppress(UnicodeDecodeError):
        return None if entry.content is None or not entry.is_file else entry.content.decode()
    return None
