"""The outline of a screen: its elements as typed values, beside or in place of the picture of it.

Names and values are text of whatever is on the screen: data, never instructions.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from agent.core.geometry import DesktopPoint, Grid, GridPoint, Region, Size
from agent.core.roles import role_group

#: Where an element is known from: the accessibility tree, words read in the picture, or both.
Source: TypeAlias = Literal["tree", "words", "both"]
#: How a model is shown the screen: its picture; the picture with numbered elements, which are told in text beside it;
#: the text alone.
See: TypeAlias = Literal["screenshot", "marks", "outline"]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of the screen."""

    id: int  # its number in this outline, by which a model may name it
    role: str  # what it is, as AT-SPI names it ("push button", "check box", "page tab", "password text", ...)
    name: str  # what it is called or what is written on it, "" where nothing tells
    box: Region  # in desktop pixels
    value: str | None = None  # what it holds (the text of a field, the number of a slider), None for nothing
    #: how it stands: "checked", "selected", "focused", "expanded", "editable", ... as AT-SPI names it, besides
    #: "disabled" for what takes no input and "offscreen" for what must be scrolled to
    states: frozenset[str] = frozenset()
    window: str = ""  # the title of the window it belongs to, "" for none
    source: Source = "tree"
    #: Whether asking what is at the middle of its box gave this element: boxes of some toolkits are shifted, and
    #: another window may cover it.
    trusted: bool = True
    app: str = ""  # the application's class, as its window tells it
    parent: int | None = None  # the element that holds it and says what it belongs to (a list, group, menu, tab list)
    label: str = ""  # what labels it, where that is not its own name
    limits: tuple[float, float] | None = None  # of the value of a slider or spin button

    @property
    def words(self) -> str:
        """What it is, in words: check box “Dark” (checked)."""
        return element_words(self.role, self.name or self.label, self.states)

    def to_json(self) -> dict[str, Any]:
        """The element as plain JSON, its box as [x, y, width, height]."""
        return asdict(self) | {"states": sorted(self.states), "box": _corners(self.box)}


#: States that a person wants to know of what is hit, and what is either checked or not.
_TOLD = ("checked", "pressed", "selected", "expanded", "disabled")
_CHECKABLE = role_group("checkable")
#: The longest name in words; the names themselves are longer.
_LONGEST = 60


def element_words(role: str, name: str, states: Collection[str]) -> str:
    """An element in words: role, name, and how it stands."""
    told = [state for state in _TOLD if state in states]
    if role in _CHECKABLE and "checked" not in told:
        told.insert(0, "not checked")
    line = " ".join(name.split())
    called = f" “{line if len(line) <= _LONGEST else line[: _LONGEST - 1] + '…'}”" if line else ""
    return f"{role}{called}" + (f" ({', '.join(told)})" if told else "")


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """A top-level window that is there to be worked with."""

    title: str
    app: str  # the application's class
    box: Region  # in desktop pixels, without its frame
    active: bool = False  # has the focus

    def to_json(self) -> dict[str, Any]:
        """The window as plain JSON, its box as [x, y, width, height]."""
        return asdict(self) | {"box": _corners(self.box)}


@dataclass(frozen=True, slots=True)
class Outline:
    """The elements of a screen, in reading order."""

    size: Size  # of the screen, in desktop pixels
    elements: tuple[Element, ...]
    windows: tuple[ShownWindow, ...] = ()  # the top-most first
    lacks: str = ""  # why elements are missing, as a sentence for the person; "" where they are not
    origin: tuple[int, int] = (0, 0)  # where the screen begins on the desktop, in desktop pixels

    def numbered(self, number: int) -> Element | None:
        """The element of that number; None where there is none."""
        return next((one for one in self.elements if one.id == number), None)

    def centre(self, element: Element, grid: Grid) -> GridPoint:
        """The middle of an element's box, on a grid over the screen."""
        x = element.box.left + element.box.width / 2 - self.origin[0]
        y = element.box.top + element.box.height / 2 - self.origin[1]
        return GridPoint(x * grid.width / self.size.width, y * grid.height / self.size.height, grid)

    def at(self, point: DesktopPoint) -> Element | None:
        """The smallest element of the tree around a point; None where there is none."""
        around = [one for one in self.elements if one.source != "words" and one.box.contains(point)]
        return min(around, key=lambda one: one.box.width * one.box.height, default=None)

    def to_json(self) -> dict[str, Any]:
        """The outline as plain JSON."""
        return {
            "size": [self.size.width, self.size.height],
            "elements": [element.to_json() for element in self.elements],
            "windows": [window.to_json() for window in self.windows],
            "lacks": self.lacks,
        }


def _corners(box: Region) -> list[int]:
    return [box.left, box.top, box.width, box.height]


#: What an element is known by, wherever it stands.
_Key: TypeAlias = tuple[str, str, str, str]


class Numbers:
    """The numbers given out so far. An element that is gone keeps its own, and has it again when it comes back."""

    def __init__(self) -> None:
        self._given: dict[_Key, list[tuple[int, Region]]] = defaultdict(list)
        self._next = 1

    def renumbered(self, elements: Sequence[Element]) -> tuple[Element, ...]:
        """The elements, each with the number it had before; of several alike, the nearest one's."""
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
        where = dict(known)
        number = min(free, key=lambda one: _distance(where[one], element.box), default=0)
        if not number:
            number, self._next = self._next, self._next + 1
            known.append((number, element.box))
        else:
            known[[one for one, _ in known].index(number)] = (number, element.box)
        return number


def _distance(one: Region, other: Region) -> int:
    return abs(one.left - other.left) + abs(one.top - other.top)
