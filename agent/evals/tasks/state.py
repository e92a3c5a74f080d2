"""The state of a desktop as values that are recorded and compared; pure: recorded states can be judged again."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from foundation.configs import load_config


class State(BaseModel):
    """A desktop at one moment."""

    settings: dict[str, str] = {}  # "xfconf CHANNEL /P", "dconf /path", "kde FILE/GROUP/KEY"
    asked: dict[str, str] = {}  # settings that a task names, as gsettings prints them, defaults included
    files: dict[str, str] = {}  # path in the home: "folder" or a digest
    texts: dict[str, str | None] = {}  # of files that a task names; "" for a folder, null if it does not exist
    windows: dict[str, str] = {}  # X id: "class|title|states"
    active: str = ""
    clipboard: str = ""
    controls: dict[str, str] = {}  # of watched applications, "app/role/name#n": what it holds
    nodes: list[dict[str, Any]] = []  # of applications whose controls a task names

    def setting(self, name: str) -> str:
        """Return a setting; "" for none."""
        return self.asked.get(name, "") if name.startswith("gsettings ") else self.settings.get(name, "")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was; `noise` for what programs write by themselves."""

    kind: str  # setting, file, window, clipboard, control
    what: str
    before: str | None
    after: str | None
    noise: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.what}: {_short(self.before)} -> {_short(self.after)}"


def differences(before: State, after: State) -> list[Difference]:
    """Return what differs; a window that only shows another title is noise."""
    found = [
        *_compared("setting", before.settings, after.settings, _noisy_setting),
        *_compared("file", before.files, after.files, _noisy_file),
        *_compared("control", before.controls, after.controls, lambda _: False),
    ]
    if before.clipboard != after.clipboard:
        found.append(Difference("clipboard", "", before.clipboard, after.clipboard))
    for window in sorted(before.windows.keys() | after.windows.keys()):
        was, now = before.windows.get(window), after.windows.get(window)
        if was is None or now is None:
            found.append(Difference("window", window, was, now))
        elif was.split("|")[:2] != now.split("|")[:2]:
            found.append(Difference("window", window, was, now, noise=True))
    return found


@cache
def followers() -> Mapping[str, Sequence[str]]:
    """Return regular expressions of settings, and of those that desktops set along with them."""
    found: dict[str, list[str]] = load_config("bookkeeping.toml")["followers"]
    return found


def _compared(
    kind: str, before: Mapping[str, str], after: Mapping[str, str], noisy: Callable[[str], bool]
) -> list[Difference]:
    return [
        Difference(kind, name, was, now, noisy(f"{name}: {was} -> {now}"))
        for name in sorted(before.keys() | after.keys())
        if (was := before.get(name)) != (now := after.get(name))
    ]


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile("|".join(load_config("bookkeeping.toml")[name]))


def _noisy_setting(line: str) -> bool:
    return _pattern("settings").match(line) is not None


def _noisy_file(line: str) -> bool:
    return line.startswith(".") and _pattern("hidden_files_that_count").match(line) is None


def _short(value: str | None) -> str:
    if value is None:
        return "none"
    return value if len(value) <= 80 else value[:77] + "..."
