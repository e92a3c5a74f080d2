"""Recognizes bookkeeping: settings, files and windows that programs change by themselves. Compares the others.

The table is `configs/receipt.toml`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import cache
from pathlib import PurePosixPath
from typing import Any, TypeVar

from agent.core.changes import Change
from foundation.configs import load_config

#: Longest name or value to show, in characters: both come from other programs.
_LONGEST = 300
#: Largest undo data to keep, in characters of JSON.
_LARGEST_KEPT = 16_000

_TRASH = PurePosixPath(".local/share/Trash")

Key = TypeVar("Key")


def is_setting_of_programs(setting_name: str) -> bool:
    """Whether a setting, named as in receipts, is bookkeeping."""
    return matches("settings", "bookkeeping", setting_name) and not matches("settings", "choices", setting_name)


def is_neutral(setting_name: str, value: str) -> bool:
    """Whether a setting's value means the same as an unset setting."""
    neutral = entry("settings", "neutral").items()
    return any(fnmatchcase(setting_name, pattern) and fnmatchcase(value, values) for pattern, values in neutral)


def is_kde_file(name: str) -> bool:
    """Whether a file has KDE settings: at the top of the configuration folder or in kdedefaults/."""
    return name.count("/") <= name.startswith("kdedefaults/") and matches("settings", "kde_files", name)


def is_file_left_out(path: PurePosixPath) -> bool:
    """Whether a file, by its path relative to the home, is bookkeeping or is reported as settings instead."""
    if matches("files", "names", path.name) or matches("files", "paths", str(path)):
        return True
    hidden = path.parts[0].startswith(".") and not path.is_relative_to(_TRASH)
    if hidden and matches("files", "names_in_hidden", path.name):
        return True
    if len(path.parts) == 1:
        return matches("files", "hidden_files", path.name)
    return path.parts[0] == ".config" and is_kde_file("/".join(path.parts[1:]))


def is_folder_left_out(path: PurePosixPath) -> bool:
    """Whether a folder, by its path relative to the home, is excluded from watching with everything in it."""
    hidden = _hidden_folders()
    if path in hidden or any(path in watched.parents for watched in hidden):
        return False
    if path.parts[0].startswith(".") and not any(watched in path.parents for watched in hidden):
        return True
    return matches("files", "folders", path.name) or matches("files", "paths", str(path))


def is_on_the_way(path: PurePosixPath) -> bool:
    """Whether a folder counts only as a parent of a watched hidden folder. Nothing else in it is watched."""
    hidden = _hidden_folders()
    if not path.parts or any(watched == path or watched in path.parents for watched in hidden):
        return False
    return any(path in watched.parents for watched in hidden)


@cache
def _hidden_folders() -> tuple[PurePosixPath, ...]:
    return tuple(map(PurePosixPath, entry("files", "hidden")))


@cache
def _pattern(section: str, name: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{translate(pattern)})" for pattern in entry(section, name)))


def matches(section: str, name: str, text: str) -> bool:
    """Whether one of the patterns of an entry of the table matches a text."""
    return _pattern(section, name).match(text) is not None


def entry(section: str, name: str) -> Any:
    """Return an entry of the table."""
    return load_config("receipt.toml")[section][name]


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
