"""Describes an element by the texts beside, above and around it, to distinguish it from others with its name."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.core.geometry import DesktopPoint, Region
from agent.core.roles import role_group
from agent.screen.outline import Element, Outline

_CONTAINERS = role_group("containers")
_FIELDS = role_group("texts")
_ITEMS = role_group("menu items")
_ROWS = role_group("rows")
#: Roles whose text may describe a neighbour. A button's text describes only the button.
_SPEAKING = frozenset(
    {"label", "heading", "static", "caption", "check box", "radio button", "section", "paragraph", ""}
)
#: Longest text that describes something else, in characters.
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Described:
    """An element that an action went to."""

    element: Element  # the element, as it stood before the action
    alike: int = 1  # how many elements of its window have its role and name, itself included
    near: tuple[str, ...] = ()  # the texts beside, above and around it that the others do not have


def described_at(outline: Outline | None, point: DesktopPoint) -> Described | None:
    """Return the element at a point, or else the words there; None if there is neither."""
    if outline is None:
        return None
    around = [one for one in outline.elements if _is_there(one) and one.box.contains(point)]
    items = [one for one in around if one.role in _ITEMS]  # an open menu covers all else
    found = min(items or around, key=lambda one: one.box.width * one.box.height, default=None)
    if found is None:  # the tree has nothing here: use the words
        read = [one for one in outline.elements if one.source == "words" and one.box.contains(point)]
        found = min(read, key=lambda one: one.box.width * one.box.height, default=None)
    if found is not None and not (found.name or found.label) and found.role in _ROWS:
        named = [one for one in around if one.id == found.parent and one.role in _ROWS and one.name]
        found = next(iter(named), found)  # a cell's picture is a cell of its own
    return described(outline, found) if found is not None else None


def described_field(outline: Outline | None, box: Region | None) -> Described | None:
    """Return the field at a box, or else the focused field; None if neither is known."""
    fields = [one for one in outline.elements if one.role in _FIELDS] if outline is not None else []
    found = [one for one in fields if one.box == box] or [one for one in fields if "focused" in one.states]
    return described(outline, found[0]) if outline is not None and len(found) == 1 else None


def described(outline: Outline, element: Element) -> Described:
    """Describe an element."""
    own = _key(element)
    others = [
        one for one in outline.elements
        if _key(one) == own and (one.box.left, one.box.top) != (element.box.left, element.box.top)
        and (one.source == "words") is (element.source == "words")
    ]  # fmt: skip
    shared = {text for other in others for text in near(outline.elements, other)}
    apart = tuple(text for text in near(outline.elements, element) if text not in shared)
    return Described(element, 1 + len(others), apart)


def near(elements: Sequence[Element], element: Element) -> tuple[str, ...]:
    """Return the texts beside, above and around an element that are not its own."""
    window = [one for one in elements if (one.window, one.app) == (element.window, element.app)]
    texts = [one for one in window if one.role in _SPEAKING and one.source != "words" and one.id != element.id]
    found = (_beside(texts, element), _above(texts, element), *_around(elements, element))
    own = {element.name, element.label}
    return tuple(dict.fromkeys(text[:_LONGEST] for text in found if text and text not in own))


def _beside(texts: Sequence[Element], element: Element) -> str:
    """Return the nearest text in the same row."""
    box = element.box
    row = [one for one in texts if one.box.top <= box.middle.y < one.box.bottom]
    return min(row, key=lambda one: max(one.box.left - box.right, box.left - one.box.right)).name if row else ""


def _above(texts: Sequence[Element], element: Element) -> str:
    """Return the nearest text above that is not right or left of the element."""
    box = element.box
    over = [
        one for one in texts if one.box.bottom <= box.top + 4 and one.box.left < box.right and box.left < one.box.right
    ]
    return max(over, key=lambda one: one.box.top).name if over else ""


def _around(elements: Sequence[Element], element: Element) -> Iterator[str]:
    """Yield the names of the element's containers, the innermost first."""
    by_id = {one.id: one for one in elements}
    seen = {element.id}
    while element.parent is not None and element.parent not in seen and element.parent in by_id:
        element = by_id[element.parent]
        seen.add(element.id)
        yield element.name


def _is_there(element: Element) -> bool:
    return (
        element.source != "words" and element.trusted and element.role not in _CONTAINERS
        and "offscreen" not in element.states
    )  # fmt: skip


def _key(element: Element) -> tuple[str, str, str, str]:
    return element.role, element.name or element.label, element.window, element.app
