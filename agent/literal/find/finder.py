"""Finds the element that a person means: by visible text first, then by accessible name, then by label.

A name that differs by more than a misread letter is never accepted.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from agent.core.roles import role_group
from agent.desktop.trees.roles import ROLES
from agent.literal.find.scene import (
    AMOUNTS,
    BUTTONS,
    CLICKABLE,
    COMBOS,
    FIELDS,
    MENU_ITEMS,
    SWITCHES,
    TEXTS,
    Scene,
    gap_between,
    holds,
)
from agent.literal.goals import BACKDROP, PANELS, Target
from agent.literal.vocabulary.lexicon import plain, programs
from agent.literal.vocabulary.places import find_page
from agent.literal.vocabulary.translations import Names
from agent.screen.outline import Element
from foundation.configs import load_config

#: A single word must make up at least this share of the name that contains it.
_LEAST_SHARE = 0.45
#: Outlines truncate names at about this many characters.
_CUT = 58
#: From this length on, OCR text may differ from the wanted name by a letter; and the least similarity for that.
_LONG = 5
_ALIKE = 0.88
#: Areas of a window by name, and the role of their container ("" for the window's left side).
AREAS = {BACKDROP: "", PANELS: "", "sidebar": ""}
AREAS |= {f"{kind}{space}bar": f"{kind} bar" for kind in ("tool", "menu", "status") for space in ("", " ")}
#: Largest share of a window's width that a sidebar takes.
_SIDE = 0.38
#: Elements whose centres are nearer than this, in pixels, are one thing that is reported twice.
_SAME_PLACE = 12
_IN_MENUS = frozenset({"menu item", "check menu item", "radio menu item", "menu", "list item"})
_ROWS = frozenset({"list item", "table row", "tree item"})
#: Roles that may be named by their group and label together.
_GROUPED = AMOUNTS | COMBOS | FIELDS | SWITCHES
#: Least fit of a whole name, and of a part of a longer name.
WHOLE, PART = 0.9, 0.5
#: Parts of a rank that tell rivals apart; what reported them does not.
_OF_RIVALS = 6


@dataclass(frozen=True, slots=True)
class Found:
    """A matching element and its fit: 1 for exactly the wanted name."""

    element: Element
    fit: float


#: Keys behind a name: "New tab (Ctrl+T)", "Hide the Sidebar (F9)", "Clear Display [Escape]".
_KEYS = re.compile(r"(?i) [(\[](?:(?:(?:ctrl|strg|alt|shift|super) ?\+ ?)+\S+|f\d{1,2}|esc(?:ape)?|del(?:ete)?)[)\]]$")


def fit_of(text: str, wanted: str, *, read: bool = False) -> float:
    """Return how well a name fits a wanted name, 0 to 1. `read`: it comes from OCR, so a letter may be wrong."""
    if not text.strip() or not wanted.strip():
        return 0.0
    if "*" in wanted and any(char.isalnum() for char in wanted):
        pattern = ".*".join(re.escape(part) for part in wanted.casefold().strip().split("*"))
        first = text.strip().split("\n")[0]
        return 0.95 if re.fullmatch(pattern, first.casefold()) else 0.0
    have, want = plain(text), plain(wanted)
    if have == want:
        return 1.0 if text.strip() == wanted.strip() else 0.99
    shown = text.strip()
    is_cut = shown.endswith("…") and len(shown) >= _CUT and len(have) <= len(want)
    if plain(_KEYS.sub("", shown.split("\n")[0])) == want or (is_cut and want.startswith(plain(shown[:-1]))):
        return 0.96
    if _bare(have) and _bare(have) == _bare(want):
        return 0.95
    if read and len(want) >= _LONG and re.findall(r"\d+", have) == re.findall(r"\d+", want):
        from rapidfuzz import fuzz

        if fuzz.ratio(have.replace(" ", ""), want.replace(" ", "")) / 100 >= _ALIKE:
            return 0.91
    return _part(have.split(), want.split(), len(want) / max(1, len(have)))


def _bare(text: str) -> str:
    """Return a text without spaces and punctuation, and with "and" for "&"."""
    return re.sub(r"[\W_]+", "", text.replace("&", "and")) or text.replace(" ", "")


def _part(have: Sequence[str], want: Sequence[str], share: float) -> float:
    """Return the fit of a longer name that contains the wanted words in sequence; 0 if it does not."""
    if len(want) > 1 and (joined := "".join(want)) in have:  # "Show Menubar"
        want = [joined]
    if not holds(have, want) or (len(want) < 2 and share < _LEAST_SHARE):
        return 0.0
    return PART + 0.35 * min(1.0, share)


class Finder:
    """Finds things on one screen, by their names in the desktop's language."""

    def __init__(self, scene: Scene, names: Names | None = None, *, in_windows: bool = False) -> None:
        self.scene = scene
        self._names = names or Names()
        #: without buttons and texts of panels and docks, if `in_windows`
        self._elements = [one for one in scene.elements if not (in_windows and scene.is_on_panel(one))]

    def all(self, target: Target, roles: Collection[str] = CLICKABLE | TEXTS, *, least: float = WHOLE) -> list[Found]:
        """Return the matching elements in the target's window and of its role, best first."""
        among = self._among(target)
        if among is None and not target.under and self._is_heading(target.inside):  # "X in Search Results"
            below = replace(target, inside="", under=target.inside, whole="")
            if found := [one for one in self.all(below, roles, least=least) if one.element.role in _GROUPED]:
                return found
        if among is None:  # there is no such window: "Show menus in new windows" may be one name
            whole = target.whole if target.inside.casefold() in target.whole.casefold() else ""
            return self.all(Target(whole, target.role), roles, least=max(least, WHOLE)) if whole else []
        named = [target.whole, target.name] if target.whole and target.whole != target.name else [target.name]
        for name in named:
            wanted = {*self._roles(target, roles)}
            if name != target.name:  # "Spaces Per Tab" is no tab
                wanted |= set(roles) - TEXTS
            found = self._named(name, among, wanted, least)
            if not found and target.role == "menu":  # GTK 4's menu buttons
                found = self._named(name, among, {"push button"} & set(roles), least)
            for other in [] if found else self._signs(name):
                found = found or self._named(other, among, self._roles(target, BUTTONS), 0.99)
            if not found:
                continue
            if target.under and name != target.whole:
                found = self._under(found, target.under, beside=target.beside)
            return self._ordinal(found, target.ordinal)
        if not target.name and target.role:
            kinds = kinds_of(target.role) & set(roles)
            tree_elements = [
                one for one in among if one.role in kinds - TEXTS and one.source != "words" and self.believes(one)
            ]
            exact = [one for one in tree_elements if one.role.endswith(target.role)]
            if target.role == "icon" and not exact and not target.inside:
                return []  # if the tree has no icons, words and buttons do not count as icons
            of_kind = [Found(one, 1.0) for one in exact or tree_elements]
            of_kind = self._under(of_kind, target.under, beside=target.beside) if target.under else of_kind
            return self._ordinal(of_kind, target.ordinal or 1)
        return []

    def _is_heading(self, name: str) -> bool:
        """Return whether a text in the front window has that name, and no application or settings dialog."""
        if name.casefold() in programs():
            return False
        texts = (one for one in self.scene.texts if one.source != "words" and self.scene.in_front(one))
        return any(fit_of(one.name, other) >= WHOLE for one in texts for other in self._names.of(name))

    def _signs(self, name: str) -> Sequence[str]:
        """Return other names of a calculator's key, if the front window has a key for every digit."""
        group = next((keys for keys in load_config("signs.toml")["keys"] if name.casefold() in keys), ())
        keys = {one.name.strip() for one in self.scene.shown(BUTTONS, without="")} if group else set()
        return group if keys >= set("0123456789") else ()

    def best(
        self, target: Target, roles: Collection[str] = CLICKABLE | TEXTS, *, least: float = WHOLE
    ) -> Element | None:
        """Return the best match; None without a match, or if two parts of longer names fit equally."""
        found = self.all(target, roles, least=least)
        if len(found) > 1 and found[0].fit < WHOLE and abs(found[0].fit - found[1].fit) < 0.02:
            return None
        return found[0].element if found else None

    def rivals(
        self, target: Target, roles: Collection[str] = CLICKABLE | TEXTS, *, least: float = WHOLE
    ) -> list[Found]:
        """Return the best matches that cannot be told apart, in reading order; a single match alone."""
        found = self.all(target, roles, least=least)
        alike = [one for one in found if self._rank(one)[:_OF_RIVALS] == self._rank(found[0])[:_OF_RIVALS]]
        alike = [one for one in alike if one.element.role == found[0].element.role and one.fit >= WHOLE]
        apart: list[Found] = []
        for one in sorted(alike, key=_place_of):
            if not any(_is_at(one.element, other.element) for other in apart):
                apart.append(one)
        return apart

    def where(self, element: Element) -> str:
        """Describe where an element is, to tell it from others of the same name."""
        parent = next((up.name for up in self.scene.parents(element) if up.name and up.name != element.name), "")
        middle = element.box.middle
        return f"the {element.role} at {round(middle.x)},{round(middle.y)}" + (f" in “{parent[:40]}”" if parent else "")

    def doubted(self, target: Target) -> Element | None:
        """Return a matching element in the front window whose position has not been confirmed yet."""
        wanted = kinds_of(target.role) if target.role else CLICKABLE
        return self._of_name(target, (one for one in self.scene.shown(wanted & CLICKABLE) if not self.believes(one)))

    def hidden(self, target: Target, roles: Collection[str] = ()) -> Element | None:
        """Return a matching element that is scrolled out of view; of any role if `roles` is empty."""
        away = (one for one in self.scene.elements if "offscreen" in one.states and self.scene.in_front(one))
        return self._of_name(target, (one for one in away if not roles or one.role in roles))

    def _of_name(self, target: Target, among: Iterable[Element]) -> Element | None:
        names = [name for one in (target.whole, target.name) if one for name in self._names.of(one)]
        fits = lambda one: any(fit_of(title, name) >= WHOLE for title in self._titles_of(one) for name in names)  # noqa: E731
        return next(filter(fits, among), None)

    def _roles(self, target: Target, roles: Collection[str]) -> Collection[str]:
        if not target.role:
            return roles
        wanted = kinds_of(target.role) & set(roles)
        if wanted and target.role == "push button" and self.scene.menu_is_open:
            wanted |= MENU_ITEMS & set(roles)  # people call a menu item a button too
        return wanted or roles

    def _among(self, target: Target) -> list[Element] | None:
        """Return the elements in the target's window or group, or all; None if that is not shown."""
        elements = [element for element in self._elements if "offscreen" not in element.states]
        if not target.inside:
            return elements
        for name in self._names.of(target.inside):
            if (window := self.scene.named_window(name)) is not None:
                front = self.scene.front
                shown = [window, front] if front is not None and front.dialog and front.app == window.app else [window]
                return [one for one in elements if any(self.scene.in_window(one, other) for other in shown)]
        desktop = self._names.desktop
        is_page = desktop is not None and find_page(target.inside, desktop, self._names.of) is not None
        # A page may have a row of its own name: "Date & Time".
        if (group := self.group(target.inside, without="list item" if is_page else "")) is not None:
            return group
        if (area := self._area(target.inside)) is not None:
            return area
        return [one for one in elements if self.scene.in_front(one)] if is_page else None

    def _area(self, name: str) -> list[Element] | None:
        """Return the elements on the desktop or in an area of the front window ("sidebar"); None for any other name."""
        if name == PANELS:
            return [one for one in self._elements if self.scene.is_on_panel(one)]
        if name == BACKDROP:
            return [one for one in self.scene.elements if not (one.window or self.scene.is_covered(one))]
        front = self.scene.front
        if front is None or name.casefold() not in AREAS:
            return None
        shown = self.scene.shown()
        if role := AREAS[name.casefold()]:
            bars = {one.id for one in shown if one.role == role}
            return [one for one in shown if any(up.id in bars for up in self.scene.parents(one))]
        edge = front.box.left + _SIDE * front.box.width
        return [one for one in shown if one.role not in MENU_ITEMS and one.box.middle.x < edge]

    def group(self, name: str, without: str = "") -> list[Element] | None:
        """Return the elements in the open group, page or list of that name, not of role `without`; None for none."""
        for element in (one for one in self.scene.elements if one.role != without):
            fits = max(fit_of(self.scene.text_of(element), one) for one in self._names.of(name))
            if fits >= WHOLE and "expanded" in element.states and self.scene.menu_is_open:  # GTK 4: it is not inside
                return [other for other in self.scene.elements if other.role in MENU_ITEMS]
            if fits >= WHOLE and element.role in ("page tab", "tab", "list item", "menu", "panel", "frame", "grouping"):
                inside = self.scene.within(element)
                if inside:
                    return inside
                if "selected" in element.states:  # its page is beside it, not inside
                    return [other for other in self.scene.elements if self.scene.in_front(other)]
        return None

    def _named(self, name: str, among: Iterable[Element], roles: Collection[str], least: float) -> list[Found]:
        names = self._names.of(name)
        found: list[Found] = []
        for element in among:
            if element.role not in roles:
                continue
            titles = [element.name] if element.role in TEXTS else self._titles_of(element)
            read = element.source == "words"
            fit = max((fit_of(title, one, read=read) for title in titles for one in names), default=0.0)
            if fit >= least and self.believes(element):
                found.append(Found(element, fit))
        return sorted(without_twins(found), key=self._rank)

    def _titles_of(self, element: Element) -> list[str]:
        """Return an element's possible names, also with its group's name first: "Double Click", "Time:"."""
        titles = self.scene.titles_of(element)
        if element.role not in _GROUPED:
            return titles
        parents = self.scene.parents(element)
        groups = [up for up in parents if up.name and up.role in ("panel", "grouping", "frame")][:2]
        alone = [
            group.name
            for group in groups[:1]
            if [one.id for one in self.scene.within(group) if one.role in _GROUPED] == [element.id]
        ]
        return [*titles, *(f"{group.name} {title}" for group in groups for title in titles), *alone]

    def believes(self, element: Element) -> bool:
        """Return whether an element's name and box are confirmed by itself, the words on it or its row.

        For some switches, a hit test in GTK 4 returns another element.
        """
        if element.trusted or element.source in ("words", "both"):
            return True
        return any(
            up.trusted and up.source != "words" and up.role in _ROWS and up.name == (element.name or up.name)
            and up.box.contains(element.box.middle)
            for up in self.scene.parents(element)
        )  # fmt: skip

    def _rank(self, one: Found) -> tuple[float, ...]:
        """Return a key that sorts by fit; the front window first, enabled and clickable elements before texts."""
        element, scene = one.element, self.scene
        return (
            -min(1.0, one.fit + 1 - WHOLE) if one.fit < WHOLE else -1.0,
            not scene.in_front(element),
            scene.menu_is_open and element.role not in _IN_MENUS,  # an open menu would receive the click instead
            "disabled" in element.states,
            -round(one.fit, 2),
            element.role in TEXTS,
            element.source != "both",  # visible text before the name of an image
            element.role not in CLICKABLE,
        )

    def _ordinal(self, found: list[Found], ordinal: int) -> list[Found]:
        """Return the match of that number in reading order."""
        if not ordinal:
            return found
        front = [one for one in found if self.scene.in_front(one.element)] or found
        rows = sorted(front, key=_place_of)
        at = ordinal - 1 if ordinal > 0 else ordinal
        return [rows[at]] if -len(rows) <= at < len(rows) else []

    def _under(self, found: list[Found], under: str, *, beside: bool) -> list[Found]:
        """Return the matches that belong to a heading, group or label: inside it, in its row, or next below it.

        `beside`: not those below it, which in a table belong to the next row.
        """
        heads = [
            element
            for element in self._elements
            if element.name and (element.role != "page tab" or "selected" in element.states)  # else its page is hidden
            and max(fit_of(element.name, one, read=element.source == "words") for one in self._names.of(under)) >= WHOLE
        ]  # fmt: skip
        inside = [
            one
            for one in found
            if any(head in heads for head in self.scene.parents(one.element)) or (one.element.label and any(
                fit_of(one.element.label, name) >= WHOLE for name in self._names.of(under)))
        ]  # fmt: skip
        if inside:
            return inside
        near = [(distance, one) for one in found if (distance := _distance(heads, one.element, beside)) is not None]
        return [one for _, one in sorted(near, key=lambda pair: pair[0])]


def _distance(heads: Iterable[Element], element: Element, only_beside: bool) -> float | None:
    """Return how far an element is below or beside the nearest heading; None if there is none."""
    best: float | None = None
    for head in heads:
        if head.id == element.id:
            continue
        down = element.box.top - head.box.bottom
        beside = abs(element.box.middle.y - head.box.middle.y) < max(head.box.height, element.box.height) / 2
        if beside and (only_beside or element.box.left >= head.box.left):
            cost = gap_between(head.box, element.box) / 4
        elif (
            not only_beside
            and down >= -4
            and element.box.left < head.box.right + 500
            and element.box.right > head.box.left - 40
        ):
            cost = 10 + down + abs(element.box.left - head.box.left) / 10
        else:
            continue
        best = cost if best is None else min(best, cost)
    return best


def _place_of(one: Found) -> tuple[int, int]:
    return one.element.box.top, one.element.box.left


def _is_at(one: Element, other: Element) -> bool:
    """Return whether a click on either element does the same: same place, or cells of one row."""
    here, there = one.box.middle, other.box.middle
    cells = one.role == other.role == "table cell"
    return abs(here.y - there.y) <= _SAME_PLACE and (cells or abs(here.x - there.x) <= _SAME_PLACE)


def without_twins(found: list[Found]) -> list[Found]:
    """Keep one of several matches in the same place, such as a word and its button, or a button in a button."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda item: (item.element.role in TEXTS, item.element.role not in CLICKABLE)):
        twin = any(
            other.element.box.contains(one.element.box.middle)
            and (one.element.role in TEXTS or one.element.box.contains(other.element.box.middle))
            and other.element.box.height <= max(80, 2.5 * one.element.box.height)
            for other in kept
        )
        if not twin:
            kept.append(one)
    return kept


def kinds_of(role: str) -> frozenset[str]:
    """Return the roles that people mean by a role: a "button" may be any of several."""
    return role_group(f"a {role}") if f"a {role}" in load_config("roles.toml") else frozenset({role})


def is_role(role: str) -> bool:
    """Whether elements have this role, or people mean some role by it."""
    return role in ROLES or kinds_of(role) != {role}
