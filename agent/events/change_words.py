"""The changes of a receipt in a person's words: "Dark mode: off -> on".

The meanings of settings come from the tables in `configs/places`, which the built-in engine uses, too. A setting in
none of the tables is named by the end of its key.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

from agent.core.changes import Change
from foundation.configs import config_names, load_config

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_CALLED = {"true": "on", "false": "off"}


class Told(NamedTuple):
    """One change in words, and its exact name; "" if the words contain the name."""

    words: str
    exactly: str = ""


class _Meaning(NamedTuple):
    name: str
    key: str  # a pattern
    on: Sequence[str]  # patterns of values; none if it is no switch
    off: Sequence[str]


def told(changes: Iterable[Change]) -> list[Told]:
    """Return what changed, settings and files before windows; equal lines once."""
    lines: dict[str, str] = {}
    rest = []
    for change in changes:
        if change.kind in ("window", "app"):
            rest.append(change)
        elif (words := _setting(change) if change.kind == "setting" else _other(change)) not in lines:
            lines[words] = change.what if change.kind == "setting" else ""
    return [*(Told(words, exactly) for words, exactly in lines.items()), *map(Told, _windows(rest))]


def in_words(text: str, changes: Iterable[Change]) -> str:
    """Return a text in which changes that it names exactly are replaced by a person's words."""
    for change in changes:
        if change.kind == "setting":
            text = re.sub(re.escape(str(change)), _setting(change).replace("\\", r"\\"), text, flags=re.IGNORECASE)
    return text


def _setting(change: Change) -> str:
    meanings = [one for one in _meanings() if fnmatchcase(change.what, one.key)]
    before, after = (None if value is None else value.strip("'") for value in (change.before, change.after))
    for one in meanings:
        was, now = _switch(one, before), _switch(one, after)
        if now and now != was:
            return f"{one.name}: {was} -> {now}" if was else f"{one.name}: {now}"
    name = next((one.name for one in meanings if not one.on), "") or _called(change.what)
    if after is None:
        return f"{name}: back to its default"
    values = [_CALLED.get(value, value or "empty") for value in (before, after) if value is not None]
    return f"{name}: {' -> '.join(values)}"


def _switch(meaning: _Meaning, value: str | None) -> str:
    if value is None or not meaning.on:
        return ""
    if any(fnmatchcase(value, pattern) for pattern in meaning.on):
        return "on"
    return "off" if not meaning.off or any(fnmatchcase(value, pattern) for pattern in meaning.off) else ""


def _called(key: str) -> str:
    """The end of a key as words: "org/gnome/clock-show-date" is "Clock show date"."""
    end = re.split(r"[/\\]", key.rstrip("/"))[-1]
    return " ".join(_WORD.findall(end)).capitalize() or key


def _other(change: Change) -> str:
    if change.kind != "file":
        return str(change)
    if change.before is None:
        return f"new: {change.what} ({change.after})"
    if change.after is None:
        return f"gone: {change.what}"
    moved = (change.undo or {}).get("how") == "moved"
    return f"{change.what}: {change.after}" if moved else f"{change.what}: {change.before} -> {change.after}"


def _windows(changes: Sequence[Change]) -> Iterator[str]:
    """Windows and applications: opened, closed and retitled, each named once."""
    for verb, titles in (
        ("opened", [_window(one.what, one.after) for one in changes if one.before is None]),
        ("closed", [_window(one.what, one.before) for one in changes if one.after is None]),
    ):
        if titles:
            yield f"{verb} {', '.join(dict.fromkeys(titles))}"
    for one in changes:
        if one.before is not None and one.after is not None:
            yield f"the window “{one.before}” became “{one.after}”"


def _window(app: str, title: str | None) -> str:
    if not title:
        return app
    return f"“{title}”" if app.casefold() in title.casefold() else f"“{title}” ({app})"


@cache
def _meanings() -> list[_Meaning]:
    tables = (load_config(f"places/{name}.toml")["things"] for name in config_names("places") if name != "things")
    return [
        _Meaning(thing.replace("-", " ").capitalize(), key, *(*values, (), ())[:2])
        for table in tables
        for thing, entry in table.items()
        for key, *values in entry.get("settings", ())
    ]
