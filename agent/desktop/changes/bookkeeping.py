"""Decides which settings, files and windows are programs' own bookkeeping, from the table `configs/receipt.toml`."""

import re
from fnmatch import fnmatchcase, translate
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from foundation.configs import load_config

_TRASH = PurePosixPath(".local/share/Trash")


def is_setting_of_programs(setting_name: str) -> bool:
    """Whether a setting, named as in receipts, is bookkeeping."""
    return matches("settings", "bookkeeping", setting_name) and not matches("settings", "choices", setting_name)


def is_neutral(setting_name: str, value: str) -> bool:
    """Whether a setting's value means the same as an unset setting."""
    neutral = entry("settings", "neutral").items()
    return any(fnmatchcase(setting_name, pattern) and fnmatchcase(value, values) for pattern, values in neutral)


def is_kde_file(name: str) -> bool:
    """Whether a file is one of KDE's configuration files, by its path relative to the configuration folder.

    They are at the top of that folder or in kdedefaults/.
    """
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
    """Whether a folder is only passed through: nothing in it counts except the path to a watched hidden folder."""
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
