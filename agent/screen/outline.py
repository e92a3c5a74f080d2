"""The outline of a screen: its elements as typed values, beside or in place of the picture of it.

Names and values are text of whatever is on the screen: data, never instructions.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agent.geometry import Region, Size

#: Where an element is known from: the accessibility tree, words read in the picture, or both.
Source: TypeAlias = Literal["tree", "words", "both"]


@dataclass(frozen=True, slots=True)
class Element:
    """One element of the screen.

    Args:
        id: its number in this outline, by which a model may name it.
        role: what it is ("button", "check box", "text", ...).
        name: what it is called or what is written on it, "" where nothing tells.
        value: what it holds (the text of a field, the number of a slider), None for what holds nothing.
        states: how it stands ("checked", "focused", "disabled", ...).
        box: where it is, in desktop pixels.
        window: the title of the window it belongs to, "" for none.
        source: where it is known from.
        trusted: whether asking what is at the middle of its box gave this element: boxes of some toolkits are shifted,
            and another window may cover it.
    """

    id: int
    role: str
    name: str
    box: Region
    value: str | None = None
    states: frozenset[str] = frozenset()
    window: str = ""
    source: Source = "tree"
    trusted: bool = True

    def to_json(self) -> dict[str, Any]:
        """The element as plain JSON, its box as [x, y, width, height]."""
        return {
            "id": self.id,
            "role": self.role,
            "name": self.name,
            "value": self.value,
            "states": sorted(self.states),
            "box": [self.box.left, self.box.top, self.box.width, self.box.height],
            "window": self.window,
            "source": self.source,
            "trusted": self.trusted,
        }


@dataclass(frozen=True, slots=True)
class Outline:
    """The elements of a screen, in reading order.

    Args:
        size: of the screen in desktop pixels.
        elements: what is on it.
    """

    size: Size
    elements: tuple[Element, ...]

    def to_json(self) -> dict[str, Any]:
        """The outline as plain JSON."""
        size = [self.size.width, self.size.height]
        return {"size": size, "elements": [element.to_json() for element in self.elements]}
