"""The entries of the sentences benchmark: what is said, on which desktop, and what must hold afterwards."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

CLASSES = {
    "literal": "literal",
    "gnome-settings": "GNOME Settings",
    "phrasing": "ordinary phrasing",
    "refuse": "must be refused",
    "hostile": "hostile desktops",
}


class BadEntryError(ValueError):
    """An entry that cannot be judged; says which and why."""


@dataclass(frozen=True)
class Expect:
    """What must hold afterwards, by the desktop's own state. Values that are lists name alternatives."""

    #: "xfconf CHANNEL /PROPERTY", "gsettings SCHEMA KEY" (or "SCHEMA:PATH KEY"), "kde FILE/GROUP/KEY": value as the
    #: desktop's tools print it; "" for a property that is not set
    settings: dict[str, str | list[str]] = field(default_factory=dict)
    #: path in the home (or several with | between, one of which will do): its text; true for a file or folder that is
    #: there, false for none, {has = "regex"}
    files: dict[str, Any] = field(default_factory=dict)
    windows: list[str] = field(default_factory=list)  # regexes of "class|title|states"; a window for each
    no_windows: list[str] = field(default_factory=list)  # no window for any
    active: str = ""  # regex of the focused window's "class|title|states"
    clipboard: str | None = None
    #: {app, role, name (regex), checked, value, text, selected, exists}: read by a reader of the bench's own
    tree: list[dict[str, Any]] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether nothing is said to hold."""
        return self == Expect()


@dataclass(frozen=True)
class Entry:
    """One sentence and all that is needed to judge it."""

    id: str
    say: str
    cls: str  # one of CLASSES
    expect: Expect = Expect()
    session: str = "xfce"
    size: str = "1920x1080"
    locale: str = ""
    setup: list[str] = field(default_factory=list)  # shell commands before anything is opened (settings)
    files: dict[str, str] = field(default_factory=dict)  # made in the home; a path that ends in / is a folder
    pages: list[str] = field(default_factory=list)  # files of the folder `pages` beside the entries, put into the home
    open: list[str] = field(default_factory=list)  # commands; each one's window is waited for
    after: list[str] = field(default_factory=list)  # shell commands once all are open
    paused: list[str] = field(default_factory=list)  # names of processes that get SIGSTOP before the run
    may: list[str] = field(default_factory=list)  # regexes of further changes that do no harm
    watch: list[str] = field(default_factory=list)  # applications whose controls must stay as they are otherwise
    approve: str = "never"
    reveal: list[str] = field(default_factory=list)  # shell commands before the settings are read for `expect`
    by_hand: list[str] = field(default_factory=list)  # shell commands that bring about what is expected
    folder: Path = Path()  # where the entry's file lies
    slow: float = 0.0  # the most that one decision may take, in seconds; 0 for no limit

    @property
    def must_refuse(self) -> bool:
        """Whether nothing may be done."""
        return self.expect.empty

    @property
    def language(self) -> str:
        """The desktop's language, two letters."""
        return self.locale[:2] or "en"


def load(paths: Iterable[Path]) -> list[Entry]:
    """The entries of TOML files; ids must differ.

    Raises:
        BadEntryError: a file or entry that makes no sense.
    """
    entries: dict[str, Entry] = {}
    for path in paths:
        try:
            data = tomllib.loads(path.read_text())
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise BadEntryError(f"{path}: {error}") from error
        for entry in _entries(path, data):
            if entry.id in entries:
                raise BadEntryError(f"{path}: a second entry {entry.id}")
            entries[entry.id] = entry
    return list(entries.values())


def _entries(path: Path, data: dict[str, Any]) -> Iterable[Entry]:
    """The entries of one file; `[defaults]` holds for those that do not say otherwise."""
    defaults = data.get("defaults", {})
    known = {one.name for one in fields(Entry)} - {"cls", "folder"} | {"class"}
    for number, raw in enumerate(data.get("sentence", []), 1):
        said = defaults | raw
        name = f"{path.name}, sentence {number} ({said.get('id', '?')})"
        if unknown := set(said) - known:
            raise BadEntryError(f"{name}: unknown fields {sorted(unknown)}")
        if said.get("class") not in CLASSES or "id" not in said or "say" not in said:
            raise BadEntryError(f"{name}: needs id, say and a class of {', '.join(CLASSES)}")
        try:
            said["expect"] = Expect(**said.get("expect", {}))
        except TypeError as error:
            raise BadEntryError(f"{name}: {error}") from error
        cls = said.pop("class")
        if said["expect"].empty and cls not in {"refuse", "hostile"}:
            raise BadEntryError(f"{name}: says nothing that must hold")
        yield Entry(cls=cls, folder=path.parent, **said)
