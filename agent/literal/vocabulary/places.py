"""Where each desktop has a setting: the application, the page, the control, and the setting that proves a change.

The tables are in `configs/places`: `things.toml` has the names that people use, and one file per desktop has the
places. All labels are English; `translations.py` translates them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Literal, TypeAlias, get_args

from agent.literal.vocabulary.lexicon import applications, plain
from foundation.configs import config_names, load_config

Desktop: TypeAlias = Literal["xfce", "gnome", "kde", "cinnamon", "mate"]

_SWITCHES = ("switch", "check box", "check menu item")
#: Words around a name that do not change its meaning.
_AROUND = re.compile("^(?:the )?(?:my )?(?:your )?(?:this )?(?:a )?")
_AFTER = (" setting", " settings", " option", " feature", " function", " mode")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the desktop whose value proves that a thing is on or off."""

    what: str  # `Change.what`: "dconf /org/gnome/desktop/interface/color-scheme"
    on: tuple[str, ...] = ()  # patterns of values for on ("*-dark"); empty: any value can be asked for
    off: tuple[str, ...] = ()  # patterns of values for off; empty: all other values

    def holds(self, value: str | None, *, on: bool) -> bool | None:
        """Return whether a value means on (or off); None if the table does not say."""
        if value is None or not self.on:
            return None
        bare = value.strip().strip("'\"").casefold()
        if on or self.off:
            return any(fnmatchcase(bare, pattern.casefold()) for pattern in (self.on if on else self.off))
        return not self.holds(value, on=True)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thing is switched, chosen or set on one desktop."""

    thing: str  # its name in the tables: "dark-mode"
    on: bool  # the state that the control must have: "light theme on" is "dark-mode off"
    app: str  # application to open, by its desktop file's English name; "" if any window may contain the control
    desktop_file: str  # of that application or settings panel, without ".desktop"; "" for none
    window: str  # English title of the window that opens
    path: tuple[str, ...]  # tabs, rows and menus that lead to the control, outermost first
    choices: tuple[str, ...]  # for a control that is no switch: patterns of the choice, best first ("*-dark")
    settings: tuple[Setting, ...]  # any of them proves the change
    control: str = ""  # the control's label; "" if it has none and is identified by role and `under`
    role: str = ""  # the control's AT-SPI role
    under: str = ""  # the heading above or label beside it
    above: int = 0  # least pixels from a choice's picture down to its text; 0 if the text can be clicked
    unit: str = ""  # the unit of its control, if the control does not show it: "ms"
    thing_on: bool = True  # the state that the thing itself must have; settings report this state, not the control's
    unset: float = 0  # the value in effect if nothing is set, although the control shows less; 0 for none

    @property
    def is_switch(self) -> bool:
        """Whether it can only be switched on and off here, as GNOME's large text."""
        return self.role in _SWITCHES


def desktop_named(current: str) -> Desktop | None:
    """Parse `XDG_CURRENT_DESKTOP` ("X-Cinnamon", "ubuntu:GNOME", "XFCE"); None for an unknown desktop."""
    words = [word.removeprefix("x-") for word in current.casefold().split(":")]
    return next((desktop for desktop in get_args(Desktop) for word in words if word == desktop), None)


def known_thing(name: str) -> tuple[str, bool] | None:
    """Return the thing that a name means, and False if the name is its opposite ("light theme" for dark mode)."""
    names = names_of_things()
    wanted = re.sub(_AROUND, "", plain(name))
    shorter = (wanted.removesuffix(suffix) for suffix in _AFTER)
    return next((names[candidate] for candidate in (wanted, *shorter) if candidate in names), None)


def is_vague(name: str) -> bool:
    """Return whether a word means no thing by itself, and ends the names of several: "delay"."""
    ending = f" {plain(name)}"
    things = {thing for one, (thing, _) in names_of_things().items() if one.endswith(ending)}
    return known_thing(name) is None and len(things) > 1


def find_places(name: str, desktop: Desktop, *, on: bool = True) -> list[Place]:
    """Return the places where a thing of that name is switched on (or off) or set; empty if the tables lack it.

    The usual meaning of the name comes first. All other places whose control has exactly this label follow, such as the
    panel's own "Dark mode".
    """
    table = load_config(f"places/{desktop}.toml")
    thing, same = known_thing(name) or ("", True)
    wanted = plain(name)
    things = table["things"]
    label = {one: entry.get("control") or entry.get("under", "") for one, entry in things.items()}
    labelled = [one for one in things if label[one] and plain(label[one].rstrip(":")) == wanted]
    return [
        _place(one, table["pages"][things[one]["page"]], things[one], on=on is (same or one != thing))
        for one in dict.fromkeys([thing, *labelled])
        if one in things
    ]


def find_page(name: str, desktop: Desktop, labels: Callable[[str], Iterable[str]]) -> Place | None:
    """Return a page or settings panel ("privacy", "the mouse settings") as a place without a control; or None.

    `labels` returns a label and its translations.
    """
    wanted = _bare(name)
    pages = load_config(f"places/{desktop}.toml")["pages"].values()
    for depth in (-1, 0):  # panels by their own names first, then pages that contain several panels
        for page in pages:
            path = page.get("path", ())
            shown = [label for part in path[depth:][:1] for label in labels(part)]
            titles = [title for label in shown for title in (label, *label.split(" & "))]
            if wanted and wanted in map(_bare, titles):
                return _place("", page if depth else page | {"file": "", "path": path[:1]}, {}, on=True)
    return None


def find_dialog(name: str, desktop: Desktop, labels: Callable[[str], Iterable[str]]) -> str:
    """Return the English name of a settings dialog of its own ("Keyboard", "Window Manager"); "" for none."""
    pages = load_config(f"places/{desktop}.toml")["pages"].values()
    alone = (page["app"] for page in pages if page.get("file") and not page.get("path"))
    return next((app for app in alone if plain(name) in map(plain, labels(app))), "")


def find_panel(name: str, desktop: Desktop) -> str:
    """Return the English name of the settings dialog that a short name means ("mouse"); "" for none."""
    wanted, pages = _bare(name), load_config(f"places/{desktop}.toml")["pages"].items()
    for key, page in pages if name.casefold() not in applications() else ():
        if page.get("file") and not page.get("path") and wanted in map(_bare, (key, *page["app"].split(" and "))):
            return str(page["app"])
    return ""


def is_same_page(one: str, other: str) -> bool:
    """Return whether two names mean one page: "Notifications" and "notification settings"."""
    return _bare(one) == _bare(other)


@cache
def panel_names() -> frozenset[str]:
    """Return the names of settings dialogs and their pages on all desktops, in lower case and with "and" for &."""
    tables = (load_config(f"places/{desktop}.toml") for desktop in config_names("places") if desktop != "things")
    pages = [page for table in tables for page in table["pages"].values()]
    labels = (label for page in pages for label in (page["app"], *page.get("path", ())))
    return frozenset(label.casefold().replace(" & ", " and ") for label in labels)


def _bare(name: str) -> str:
    """Return a name in the singular, without the words around it."""
    bare = re.sub(_AROUND, "", plain(name.replace("&", "and")))
    for suffix in (*_AFTER, " panel", " page"):
        bare = bare.removesuffix(suffix)
    return bare.removesuffix("s")


def is_switch(name: str) -> bool:
    """Return whether a known thing is a switch on any desktop, or has no place in any table."""
    entries = _entries(name)
    return entries == [] or any("on" in entry or entry.get("role") in _SWITCHES for entry in entries or ())


def is_choice(name: str) -> bool:
    """Return whether a thing is a choice from a list on all desktops that have it: "hinting full" is no number."""
    roles = [entry.get("role") for entry in _entries(name) or ()]
    return bool(roles) and all(role in ("combo box", "radio button", "table cell") for role in roles)


def _entries(name: str) -> list[Mapping[str, Any]] | None:
    """Return a thing's entries in the tables of all desktops; None if the name means no thing."""
    if (known := known_thing(name)) is None:
        return None
    tables = (load_config(f"places/{desktop}.toml")["things"] for desktop in get_args(Desktop))
    return [table[known[0]] for table in tables if known[0] in table]


@cache
def names_of_things() -> Mapping[str, tuple[str, bool]]:
    """Return what each name in the tables means, see `known_thing`. The names are normalized by `plain`."""
    return {
        plain(name): (thing, same)
        for thing, entry in load_config("places/things.toml").items()
        for key, same in (("names", True), ("opposites", False))
        for name in entry.get(key, ())
    }


def _place(thing: str, page: Mapping[str, Any], entry: Mapping[str, Any], *, on: bool) -> Place:
    settings = [Setting(name, *map(tuple, values)) for name, *values in entry.get("settings", ())]
    if (switch := entry.get("setting")) is not None:
        settings.append(Setting(switch, ("true",), ("false",)))
    return Place(
        thing=thing,
        thing_on=on,
        on=on is not entry.get("inverted", False),
        app=page["app"],
        desktop_file=page.get("file", ""),
        window=page.get("window", page["app"]),
        path=(*page.get("path", ()), *entry.get("path", ())),
        choices=tuple(entry.get("on" if on else "off", ())),
        settings=tuple(settings),
        **{key: entry[key] for key in ("control", "role", "under", "above", "unit", "unset") if key in entry},
    )
