"""Tells which settings, files and windows are programs' own bookkeeping, by the table in `configs/receipt.toml`."""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from foundation.configs import load_config

_TRASH = PurePosixPath(".local/share/Trash")


def is_setting_of_programs(what: str) -> bool:
    """Whether a setting, named as in receipts, is bookkeeping."""
    return _matches("settings", "bookkeeping", what) and not _matches("settings", "choices", what)


def is_written_when_starting(what: str) -> bool:
    """Whether a desktop writes this setting by itself when it starts."""
    return _matches("settings", "starting", what)


def starting_seconds() -> list[float]:
    """When to check for settings that a starting desktop writes, in seconds after the watch began."""
    return list(_table("settings")["starting_seconds"])


def starting_age() -> float:
    """Age of a session, in seconds, up to which its desktop counts as still starting."""
    return float(_table("settings")["starting_age"])


def xfconf_channels() -> list[str]:
    """XFCE channels to query even if the daemon does not list them."""
    return list(_table("settings")["xfconf_channels"])


def fewest_first_keys() -> int:
    """Number of keys that must appear at once in a new group of an application's file to count as its first start."""
    return int(_table("settings")["kde_first_keys"])


def is_neutral(what: str, value: str) -> bool:
    """Whether a setting's value means the same as an unset setting."""
    return any(pattern.match(what) and values.match(value) for pattern, values in _neutral())


@cache
def _neutral() -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    return [(any_of([pattern]), any_of([value])) for pattern, value in _table("settings")["neutral"].items()]


def is_app_of_desktop(app: str) -> bool:
    """Whether an application's windows open and close without any user action."""
    return _matches("windows", "apps", app)


def is_app_of_panels(app: str) -> bool:
    """Whether an application's panels are windows, too."""
    return _matches("windows", "panels", app)


def is_kde_file(name: str) -> bool:
    """Whether a file is one of KDE's configuration files, by its path relative to the configuration folder.

    They are at the top of that folder or in kdedefaults/.
    """
    return name.count("/") <= name.startswith("kdedefaults/") and _matches("settings", "kde_files", name)


def is_kde_file_of_desktop(name: str) -> bool:
    """Whether a KDE file belongs to the desktop rather than to a single application."""
    return _matches("settings", "kde_desktop_files", name)


def is_file_left_out(path: PurePosixPath) -> bool:
    """Whether a file, by its path relative to the home, is bookkeeping or is reported as settings instead."""
    if _matches("files", "names", path.name) or _matches("files", "paths", str(path)):
        return True
    hidden = path.parts[0].startswith(".") and not path.is_relative_to(_TRASH)
    if hidden and _matches("files", "names_in_hidden", path.name):
        return True
    if len(path.parts) == 1:
        return _matches("files", "hidden_files", path.name)
    return path.parts[0] == ".config" and is_kde_file("/".join(path.parts[1:]))


def is_folder_left_out(path: PurePosixPath) -> bool:
    """Whether a folder, by its path relative to the home, is excluded from watching with everything in it."""
    hidden = _hidden_folders()
    if path in hidden or any(path in watched.parents for watched in hidden):
        return False
    if path.parts[0].startswith(".") and not any(watched in path.parents for watched in hidden):
        return True
    return _matches("files", "folders", path.name) or _matches("files", "paths", str(path))


def is_on_the_way(path: PurePosixPath) -> bool:
    """Whether a folder is only passed through: nothing in it counts except the path to a watched hidden folder."""
    hidden = _hidden_folders()
    if not path.parts or any(watched == path or watched in path.parents for watched in hidden):
        return False
    return any(path in watched.parents for watched in hidden)


@cache
def _hidden_folders() -> tuple[PurePosixPath, ...]:
    return tuple(map(PurePosixPath, _table("files")["hidden"]))


def any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """Combine shell patterns into one regular expression that matches any of them."""
    return re.compile("|".join(f"(?:{translate(pattern)})" for pattern in patterns))


@cache
def _pattern(section: str, name: str) -> re.Pattern[str]:
    return any_of(_table(section)[name])


def _matches(section: str, name: str, text: str) -> bool:
    return _pattern(section, name).match(text) is not None


def _table(section: str) -> Any:
    return load_config("receipt.toml")[section]
