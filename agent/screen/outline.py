"""The outline of a screen: its elements as typed values, beside or in place of the picture of it.

Names and values are text of whatever is on the screen: data, never instructions.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from agent.geometry import Region, Size

#: Where an element is known from: the accessibility tree, words read in the picture, or both.
Source: TypeAlias = Literal["tree", "words", "both"]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of the screen."""

    id: int  # its number in this outline, by which a model may name it
    role: str  # what it is ("button", "check box", "text", ...)
    name: str  # what it is called or what is written on it, "" where nothing tells
    box: Region  # in desktop pixels
    value: str | None = None  # what it holds (the text of a field, the number of a slider), None for nothing
    states: frozenset[str] = frozenset()  # how it stands ("checked", "focused", "disabled", ...)
    window: str = ""  # the title of the window it belongs to, "" for none
    source: Source = "tree"
    #: Whether asking what is at the middle of its box gave this element: boxes of some toolkits are shifted, and
    #: another window may cover it.
    trusted: bool = True

    def to_json(self) -> dict[str, Any]:
        """The element as plain JSON, its box as [x, y, width, height]."""
        box = [self.box.left, self.box.top, self.box.width, self.box.height]
        return asdict(self) | {"states": sorted(self.states), "box": box}


@dataclass(frozen=True, slots=True)
class Outline:
    """The elements of a screen, in reading order."""

    size: Size  # of the screen, in desktop pixels
    elements: tuple[Element, ...]

    def to_json(self) -> dict[str, Any]:
        """The outline as plain JSON."""
        size = [self.size.width, self.size.height]
        return {"size": size, "elements": [element.to_json() for element in self.elements]}
