"""Numbers of elements that stay from one outline to the next, so that a model may speak of what it saw before."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from agent.core.geometry import Region
from agent.screen.outline import Element

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
