"""What the settings stores share: comparing two states, and limits for values from other programs."""

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from agent.core.changes import Change
from agent.desktop.changes.bookkeeping import is_neutral, is_setting_of_programs

#: Longest name or value to show, in characters: both come from other programs.
_LONGEST = 300
#: Largest undo data to keep, in characters of JSON.
_LARGEST_KEPT = 16_000

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting's value."""

    text: str  # as the store's own tools write it
    data: Any  # as plain JSON from which the store can restore it


def differences(
    store: str,
    before: Mapping[Key, Setting],
    after: Mapping[Key, Setting],
    name: Callable[[Key], str],
    place: Callable[[Key], Any],
) -> Iterator[Change]:
    """Yield the settings that differ, without bookkeeping. `place` gives a key as plain JSON."""
    for key in [*before, *(key for key in after if key not in before)]:
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None and old.text == new.text:
            continue
        what = f"{store} {name(key)}"
        if is_setting_of_programs(what) or _says_nothing(what, old, new):
            continue
        undo = {
            "store": store,
            "key": place(key),
            "before": None if old is None else old.data,
            "after": None if new is None else new.data,
        }
        kept = undo if _can_be_kept(undo) else None
        was, is_now = (None if one is None else bounded(one.text) for one in (old, new))
        yield Change("setting", bounded(what), was, is_now, kept)


def _says_nothing(what: str, old: Setting | None, new: Setting | None) -> bool:
    one = old or new
    return (old is None or new is None) and one is not None and is_neutral(what, one.text)


def _can_be_kept(undo: Mapping[str, Any]) -> bool:
    try:
        return len(json.dumps(undo, allow_nan=False)) <= _LARGEST_KEPT
    except ValueError:  # NaN or infinity, which JSON cannot represent
        return False


def bounded(text: str) -> str:
    """Shorten untrusted text to the longest length that is shown."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


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
