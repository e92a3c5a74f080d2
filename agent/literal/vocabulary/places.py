"""Where things live on each desktop: what to open, which page, which control, and the setting that proves it.

The tables are in `configs/places`: `things.toml` has the names that people use, and a file a desktop has the places.
All labels there are English; `translations.py` has what they are called on a desktop in another language.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Literal, TypeAlias, get_args

from agent.literal.vocabulary.labels import plain
from foundation.configs import load_config

Desktop: TypeAlias = Literal["xfce", "gnome", "kde", "cinnamon", "mate"]

_SWITCHES = ("switch", "check box", "check menu item")
#: Words that people put around the name of a thing without meaning anything else by it.
_AROUND = ("the ", "my ", "your ", "this ", "a ")
_AFTER = (" setting", " settings", " option", " feature", " function", " mode")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that tells whether it was done."""

    what: str  # as a `Change` names it: "dconf /org/gnome/desktop/interface/color-scheme"
    on: tuple[str, ...] = ()  # values when it is on, as patterns ("*-dark"); empty: any value may be asked for
    off: tuple[str, ...] = ()  # and when it is off; empty: any other

    def holds(self, value: str | None, *, on: bool) -> bool | None:
        """Whether a value of it means on (or off); None where the table does not say."""
        if value is None or not self.on:
            return None
        bare = value.strip().strip("'\"").casefold()
        if on or self.off:
            return any(fnmatchcase(bare, pattern.casefold()) for pattern in (self.on if on else self.off))
        return not self.holds(value, on=True)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one thing is switched, chosen or set on one desktop."""

    thing: str  # its name in the tables: "dark-mode"
    on: bool  # how the control must stand for what was asked: "light theme on" is "dark-mode off"
    app: str  # what to open, by the name that its desktop file shows in English; "" where any window may hold it
    desktop_file: str  # of that application or settings panel, without ".desktop"; "" for none
    window: str  # the title of the window that shows it then, in English
    path: tuple[str, ...]  # tabs, rows and menus on the way to the control, outermost first
    control: str  # the control's label; "" where it has none of its own and is known by role and `under`
    role: str  # the control's kind, as AT-SPI names it
    under: str  # the heading above or label beside it
    choices: tuple[str, ...]  # where the control is no switch: what to choose for what was asked, best first ("*-dark")
    above: (
        int  # a choice's text stands this many pixels under its picture's middle, at least; 0 where it can be clicked
    )
    keys: str  # a chord that does the same; "" for none
    settings: tuple[Setting, ...]  # any of these tells


def desktop_named(current: str) -> Desktop | None:
    """The desktop of an `XDG_CURRENT_DESKTOP` ("X-Cinnamon", "ubuntu:GNOME", "XFCE"); None for one not known."""
    words = [word.removeprefix("x-") for word in current.casefold().split(":")]
    return next((desktop for desktop in get_args(Desktop) for word in words if word == desktop), None)


def known_thing(name: str) -> tuple[str, bool] | None:
    """The thing that people mean by a name, and whether the name means it on (False: "light theme" is no dark one)."""
    names = _names()
    wanted = plain(name)
    for prefix in _AROUND:
        wanted = wanted.removeprefix(prefix)
    shorter = (wanted.removesuffix(suffix) for suffix in _AFTER)
    return next((names[candidate] for candidate in (wanted, *shorter) if candidate in names), None)


def find_place(name: str, desktop: Desktop, *, on: bool = True) -> Place | None:
    """Where the thing of that name is switched on (or off) or set; None where the tables do not know it."""
    if (known := known_thing(name)) is None:
        return None
    thing, same = known
    table = load_config(f"places/{desktop}.toml")
    entry = table["things"].get(thing)
    return None if entry is None else _place(thing, table["pages"][entry["page"]], entry, on=on is same)


def find_page(
    name: str, desktop: Desktop, labels: Callable[[str], Iterable[str]] = lambda label: (label,)
) -> Place | None:
    """The page or settings panel of that name ("privacy", "the mouse settings"), as a place with no control; or None.

    Args:
        name: what the person calls it.
        desktop: where it is.
        labels: what a label of the tables may be called there.
    """
    wanted = _bare(name)
    pages = load_config(f"places/{desktop}.toml")["pages"].values()
    for depth in (-1, 0):  # panels by their own names, then the page that leads to several
        for page in pages:
            path = page.get("path", ())
            shown = [label for part in path[depth:][:1] for label in labels(part)]
            titles = [title for label in shown for title in (label, *label.split(" & "))]
            if wanted and wanted in map(_bare, titles):
                whole = depth == -1
                way = {
                    "app": page["app"],
                    "file": page.get("file", "") if whole else "",
                    "path": path if whole else path[:1],
                }
                return _place("", way | {"window": page.get("window", page["app"])}, {}, on=True)
    return None


def _bare(name: str) -> str:
    """A name without what people put around it, and in the singular."""
    bare = plain(name.replace("&", "and"))
    for prefix in _AROUND:
        bare = bare.removeprefix(prefix)
    for suffix in (*_AFTER, " panel", " page"):
        bare = bare.removesuffix(suffix)
    return bare.removesuffix("s")


def is_switch(name: str) -> bool:
    """Whether the thing of that name is switched on and off, as far as any desktop tells."""
    if (known := known_thing(name)) is None:
        return False
    tables = (load_config(f"places/{desktop}.toml")["things"] for desktop in get_args(Desktop))
    entries = [table[known[0]] for table in tables if known[0] in table]
    return not entries or any("on" in entry or entry.get("role") in _SWITCHES for entry in entries)


def is_choice(name: str) -> bool:
    """Whether the thing of that name is chosen from a list, wherever a desktop has it: "hinting full" is no number."""
    if (known := known_thing(name)) is None:
        return False
    tables = (load_config(f"places/{desktop}.toml")["things"] for desktop in get_args(Desktop))
    roles = {table[known[0]].get("role") for table in tables if known[0] in table}
    return bool(roles) and roles <= {"combo box", "radio button", "table cell"}


def names_of_things() -> frozenset[str]:
    """All names that people use for things the tables know, as they are compared."""
    return frozenset(_names())


@cache
def _names() -> Mapping[str, tuple[str, bool]]:
    return {
        plain(name): (thing, same)
        for thing, entry in load_config("places/things.toml").items()
        for key, same in (("names", True), ("opposites", False))
        for name in entry.get(key, ())
    }


def _place(thing: str, page: Mapping[str, Any], entry: Mapping[str, Any], *, on: bool) -> Place:
    settings = [Setting(what, *map(tuple, values)) for what, *values in entry.get("settings", ())]
    if (switch := entry.get("setting")) is not None:
        settings.append(Setting(switch, ("true",), ("false",)))
    return Place(
        thing=thing,
        on=on is not entry.get("inverted", False),
        app=page["app"],
        desktop_file=page.get("file", ""),
        window=page.get("window", page["app"]),
        path=(*page.get("path", ()), *entry.get("path", ())),
        control=entry.get("control", ""),
        role=entry.get("role", ""),
        under=entry.get("under", ""),
        choices=tuple(entry.get("on" if on else "off", ())),
        above=entry.get("above", 0),
        keys=entry.get("keys", ""),
        settings=tuple(settings),
    )
