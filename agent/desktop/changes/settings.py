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
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        was, is_now = (None if one is None else one.text for one in (old, new))
        setting_name = f"{store} {name(key)}"
        says_nothing = (was is None or is_now is None) and is_neutral(setting_name, was or is_now or "")
        if was == is_now or says_nothing or is_setting_of_programs(setting_name):
            continue
        data, data_now = (None if one is None else one.data for one in (old, new))
        undo: dict[str, Any] | None = {"store": store, "key": place(key), "before": data, "after": data_now}
        try:
            undo = undo if len(json.dumps(undo, allow_nan=False)) <= _LARGEST_KEPT else None
        except ValueError:  # NaN or infinity, which JSON cannot represent
            undo = None
        yield Change("setting", bounded(setting_name), was and bounded(was), is_now and bounded(is_now), undo)


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
