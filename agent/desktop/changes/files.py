"""Compares the home's initial and present state: files created, changed, moved, trashed or deleted."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from agent.core.changes import Change
from agent.desktop.changes.bookkeeping import is_file_left_out, is_folder_left_out, is_on_the_way
from agent.desktop.changes.entries import Entry, entry_at, state
from agent.desktop.changes.home import Home, told_as

#: The trash, relative to the home (FreeDesktop.org Trash specification, with the default data folder).
TRASH = ".local/share/Trash/files"
#: Most file entries in a receipt; the rest is only counted.
_MOST = 2000

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
    """Whether what was at a path is at another one now, so that something new took its place."""
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
    """Reports what changed in a home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._states: dict[tuple[str, int, int, int], dict[str, Any]] = {}

    def changes(self) -> list[Change]:
        home = self._home
        home.look()
        paths = sorted(home.touched)
        before = {path: home.before[path] for path in paths if path in home.before}
        after = {path: entry for path in paths if (entry := entry_at(home.at(path)))}
        differences = compare(before, after, home.moves)
        found = [*self._told(differences), *self._made_and_trashed(differences.made)]
        if len(found) > _MOST:
            more = len(found) - _MOST
            remark = f"{more} more files changed than are listed and can be undone"
            found[_MOST:] = [Change("file", told_as(""), None, remark)]
        return found

    def _told(self, differences: Differences) -> Iterator[Change]:
        made, gone = dict(differences.made), dict(differences.gone)
        for path, (target, entry) in differences.moved.items():
            if _is_left_out(path, entry):
                made[target] = entry
            elif not _in_trash(target) and _is_left_out(target, entry):
                gone[path] = entry
            else:
                after = f"{'in the trash, as' if _in_trash(target) else 'moved to'} {told_as(target)}"
                to = _quoted(self._home.at(target))
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
        origins = {target: source for source, target in self._home.moves.items()}
        for target, entry in made.items():
            origin = origins.get(target)
            if origin is None or not _in_trash(target) or _in_trash(origin) or _is_left_out(origin, entry):
                continue
            after = f"made, and then in the trash, as {told_as(target)}"
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
        full = _quoted(self._home.at(path))
        kept = {"store": "file", "how": how, "path": full, "folder": entry.is_folder} | undo
        return Change("file", told_as(path), before, after, kept)

    def _state(self, path: str, entry: Entry) -> dict[str, Any]:
        """Return the state of a file, read only once per version of it."""
        key = (path, entry.inode, entry.size, entry.modified)
        if key not in self._states:
            self._states[key] = state(self._home.at(path), entry)
        return self._states[key]


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
