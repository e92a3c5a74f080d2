"""The outline of a screen: its elements as typed values, in addition to or instead of its screenshot; and as text, one
line per element, with the number by which a model refers to it:

    window "Settings" (xfce4-settings-manager), active
    12 push button "Close" @ 703,790
    13 check box "Dark" (not checked) @ 120,340

Names and values come from whatever is on the screen: they are data, never instructions; in the text, each is on one
line and without control characters.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from agent.core.geometry import DesktopPoint, Grid, GridPoint, Region, Size
from agent.core.roles import role_group
from foundation.foreign_text import on_one_line

#: How an element was found: in the accessibility tree, by OCR, or both.
Source: TypeAlias = Literal["tree", "words", "both"]
#: How a model is shown the screen: as a screenshot; as a screenshot with numbered elements and a text that lists them;
#: as the text alone.
See: TypeAlias = Literal["screenshot", "marks", "outline"]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of the screen."""

    id: int  # its number in this outline, by which a model can refer to it
    role: str  # AT-SPI's role name ("push button", "check box", "page tab", "password text", ...)
    name: str  # its name or the text on it, "" if unknown
    box: Region  # in desktop pixels
    value: str | None = None  # its value (the text of a field, the number of a slider), None for none
    #: its AT-SPI states ("checked", "selected", "focused", "expanded", "editable", ...), plus "disabled" if it takes no
    #: input and "offscreen" if it must be scrolled into view
    states: frozenset[str] = frozenset()
    window: str = ""  # title of its window, "" for none
    source: Source = "tree"
    #: Whether a hit test at the middle of its box returned this element. Some toolkits report shifted boxes, and
    #: another window may cover it.
    trusted: bool = True
    app: str = ""  # the application's class, as its window reports it
    parent: int | None = None  # the container that it belongs to (a list, group, menu, tab list)
    label: str = ""  # the text of its label, if that is not its own name
    limits: tuple[float, float] | None = None  # smallest and largest value of a slider or spin button

    @property
    def words(self) -> str:
        """The element in words: check box “Dark” (checked)."""
        return element_words(self.role, self.name or self.label, self.states)

    def to_json(self) -> dict[str, Any]:
        """Return the element as plain JSON, its box as [x, y, width, height]."""
        return asdict(self) | {"states": sorted(self.states), "box": _corners(self.box)}


#: States worth mentioning for a target, and the roles that are either checked or not.
_TOLD = ("checked", "pressed", "selected", "expanded", "disabled")
_CHECKABLE = role_group("checkable")
#: Longest name in a description, in characters.
_LONGEST = 60


def element_words(role: str, name: str, states: Collection[str]) -> str:
    """Describe an element by role, name and states."""
    shown_states = [state for state in _TOLD if state in states]
    if role in _CHECKABLE and "checked" not in shown_states:
        shown_states.insert(0, "not checked")
    line = " ".join(name.split())
    called = f" “{line if len(line) <= _LONGEST else line[: _LONGEST - 1] + '…'}”" if line else ""
    return f"{role}{called}" + (f" ({', '.join(shown_states)})" if shown_states else "")


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """A visible top-level window that can be used."""

    title: str
    app: str  # the application's class
    box: Region  # in desktop pixels, without its frame
    active: bool = False  # whether it has the focus
    dialog: bool = False  # whether it has the focus and says that it is a dialog; not every compositor tells

    def to_json(self) -> dict[str, Any]:
        """Return the window as plain JSON, its box as [x, y, width, height]."""
        return asdict(self) | {"box": _corners(self.box)}


@dataclass(frozen=True, slots=True)
class Outline:
    """The elements of a screen, in reading order."""

    size: Size  # of the screen, in desktop pixels
    elements: tuple[Element, ...]
    windows: tuple[ShownWindow, ...] = ()  # the top-most first
    lacks: str = ""  # why elements are missing, as a sentence for the user; "" if none are
    origin: tuple[int, int] = (0, 0)  # the screen's top left on the desktop, in desktop pixels

    def numbered(self, number: int) -> Element | None:
        """Return the element of that number, or None."""
        return next((one for one in self.elements if one.id == number), None)

    def centre(self, element: Element, grid: Grid) -> GridPoint:
        """Return the middle of an element's box on a grid over the screen."""
        x = element.box.left + element.box.width / 2 - self.origin[0]
        y = element.box.top + element.box.height / 2 - self.origin[1]
        return GridPoint(x * grid.width / self.size.width, y * grid.height / self.size.height, grid)

    def at(self, point: DesktopPoint) -> Element | None:
        """Return the smallest element of the accessibility tree that contains a point, or None."""
        around = [one for one in self.elements if one.source != "words" and one.box.contains(point)]
        return min(around, key=lambda one: one.box.width * one.box.height, default=None)

    def to_json(self) -> dict[str, Any]:
        """Return the outline as plain JSON."""
        return {
            "size": [self.size.width, self.size.height],
            "elements": [element.to_json() for element in self.elements],
            "windows": [window.to_json() for window in self.windows],
            "lacks": self.lacks,
        }


def _corners(box: Region) -> list[int]:
    return [box.left, box.top, box.width, box.height]


#: What identifies an element, whatever its position.
_Key: TypeAlias = tuple[str, str, str, str]


class Numbers:
    """The element numbers given out so far. An element that disappears gets its number back when it returns."""

    def __init__(self) -> None:
        self._given: dict[_Key, list[tuple[int, Region]]] = defaultdict(list)
        self._next = 1

    def renumbered(self, elements: Sequence[Element]) -> tuple[Element, ...]:
        """Return the elements with the numbers they had before; among identical elements, the nearest one's."""
        numbers: dict[int, int] = {}
        taken: set[int] = set()
        for element in elements:
            numbers[element.id] = number = self._number(element, taken)
            taken.add(number)
        return tuple(
            replace(one, id=numbers[one.id], parent=None if one.parent is None else numbers.get(one.parent))
            for one in elements
        )

    def _number(self, element: Element, taken: set[int]) -> int:
        known = self._given[(element.app, element.window, element.role, element.name or element.label)]
        free = [number for number, _ in known if number not in taken]
        boxes = dict(known)
        number = min(free, key=lambda one: _distance(boxes[one], element.box), default=0)
        if not number:
            number, self._next = self._next, self._next + 1
            known.append((number, element.box))
        else:
            known[[one for one, _ in known].index(number)] = (number, element.box)
        return number


def _distance(one: Region, other: Region) -> int:
    return abs(one.left - other.left) + abs(one.top - other.top)


#: Longest text of an outline, in characters: about 5,000 tokens, half of a small model's context.
MOST_CHARS = 12_000
#: Longest value of an element, and longest title of a window, in characters.
_LONGEST_VALUE = 80
_TOLD_APART = ("focused", "editable", "collapsed", "indeterminate")
_DESKTOP = "the desktop"
#: Role of words that belong to no element.
WORDS_ROLE = "label"


@dataclass(frozen=True, slots=True)
class OutlineText:
    """An outline as text, and the elements listed in it."""

    text: str
    elements: tuple[Element, ...]


def write_outline(outline: Outline, grid: Grid, most_chars: int = MOST_CHARS) -> OutlineText:
    """Write the visible elements under their windows, top-most first, with centres on the grid.

    If there is not enough room, plain words are left out first, then elements of the windows at the back. A line states
    how many.
    """
    groups = _grouped(outline)
    kept = _within([one for _, members in groups for one in members], outline, grid, most_chars)
    lines: list[str] = []
    listed: list[Element] = []
    left_out = 0
    for title, members in groups:
        shown = [one for one in members if one.id in kept]
        left_out += len(members) - len(shown)
        if shown:
            lines += [title, *(_line(one, outline, grid) for one in shown)]
            listed += shown
    if left_out:
        lines.append(f"({left_out} more elements are not listed)")
    return OutlineText("\n".join(lines) or "(no element is known)", tuple(listed))


def _grouped(outline: Outline) -> list[tuple[str, list[Element]]]:
    """Group the visible elements by window, top-most first; each group with its title."""
    seen = _without_parts([one for one in outline.elements if is_seen(one, outline)])
    order = [(window.title, window.app) for window in outline.windows]
    keys = [key for key in dict.fromkeys((one.window, one.app) for one in seen) if key not in order]
    active = {(window.title, window.app) for window in outline.windows if window.active}
    groups: list[tuple[str, list[Element]]] = []
    for key in dict.fromkeys([*order, *keys]):
        members = [one for one in seen if (one.window, one.app) == key]
        title, app = (_plain(word) for word in key)
        named = f'window "{title}"' + (f" ({app})" if app and app != title else "") if title or app else _DESKTOP
        if members or key in order:
            groups.append((named + (", active" if key in active else ""), members))
    return [group for group in groups if group[1]]


def is_seen(element: Element, outline: Outline) -> bool:
    """Whether an element is on the screen and has a name, label or value, or is trusted. Only these are listed."""
    if "offscreen" in element.states or not (element.name or element.label or element.value or element.trusted):
        return False
    x, y = element.box.left - outline.origin[0], element.box.top - outline.origin[1]
    return -element.box.width < x < outline.size.width and -element.box.height < y < outline.size.height


def _without_parts(elements: Sequence[Element]) -> list[Element]:
    """Leave out words that are part of a longer caption in the list."""
    words = [one for one in elements if one.source == "words"]
    return [
        one
        for one in elements
        if one.source != "words"
        or not any(
            one is not longer and one.name != longer.name and one.name in longer.name and _inside(one.box, longer.box)
            for longer in words
        )
    ]


def _inside(box: Region, around: Region) -> bool:
    return (
        around.left <= box.left + 2
        and around.top <= box.top + 2
        and box.right <= around.right + 2
        and box.bottom <= around.bottom + 2
    )


def _within(elements: Sequence[Element], outline: Outline, grid: Grid, most_chars: int) -> set[int]:
    """Return the ids of the elements that fit: controls before plain words, front before back."""
    kept: set[int] = set()
    room = most_chars
    for element in sorted(elements, key=lambda one: one.role == WORDS_ROLE):
        room -= len(_line(element, outline, grid)) + 1
        if room < 0:
            break
        kept.add(element.id)
    return kept


def _line(element: Element, outline: Outline, grid: Grid) -> str:
    words = element_words(element.role, _plain(element.name or element.label), element.states)
    words = words.replace("“", '"').replace("”", '"')
    told_value = element.value and "password" not in element.role
    value = f' = "{_plain(element.value or "")}"' if told_value else ""
    shown_states = [state for state in _TOLD_APART if state in element.states]
    centre = outline.centre(element, grid)
    states = f" [{', '.join(shown_states)}]" if shown_states else ""
    return f"{element.id} {words}{value}{states} @ {centre.x:.0f},{centre.y:.0f}"


def _plain(text: str) -> str:
    """Return the text on one line, shortened, with double quotes replaced, so that they cannot end our own quotes."""
    line = on_one_line(text).replace('"', "'")
    return line if len(line) <= _LONGEST_VALUE else line[: _LONGEST_VALUE - 1] + "…"
