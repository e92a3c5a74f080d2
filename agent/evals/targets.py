"""Elements of a desktop that a benchmark may ask for, and how each is distinguished from all others there."""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from rapidfuzz import fuzz

from agent.core.geometry import DesktopPoint, Region, shared
from agent.screen.outline import Element, Outline
from foundation.configs import load_config

Asks: TypeAlias = Literal["name", "role", "place", "absent"]
#: Returns, for each point in desktop pixels, what gets a click there: an identifier of a window, or None.
Tops: TypeAlias = Callable[[Sequence[tuple[int, int]]], Sequence[object]]

#: Shares of a box's sides at which it is tested.
_TESTED = (0.1, 0.5, 0.9)
#: Parts of names that people do not say: of program identifiers, of icons, and of a sandbox's folder.
_UNSAID = ("_", "-symbolic", "mai-agent")
_LEAST_SIDE, _LARGEST_SHARE, _LONGEST_NAME = 8, 0.25, 40
#: Maximum pixels from an element to the text that describes its place.
_FAR = 160
#: Pixels by which the near edges, or the middles, of two boxes in line may differ.
_IN_LINE = 16
#: Similarity (0 to 100) from which OCR may take two texts for the same, and below which a text is surely absent.
_READ_SAME, _NOT_THERE = 85, 70
#: Fewest letters of a word read by OCR that counts: OCR reads icons as single letters.
_LEAST_LETTERS = 4


@dataclass(frozen=True, slots=True)
class Target:
    """An element to ask for."""

    element: Element
    role: str  # a name of `roles` in configs/deskbench.toml
    name: str  # its name or label as it stands on the screen; "" for none


@dataclass(frozen=True, slots=True)
class Question:
    """An instruction's kind, and what its words are filled with."""

    asks: Asks
    words: str  # which sentence of the language
    role: str = ""
    name: str = ""
    window: str = ""


def targets_of(
    outline: Outline, tops: Tops, layers: Sequence[Region] = (), frame_words: Collection[str] = ()
) -> list[Target]:
    """Return the elements that can be asked for: seen whole, hit wherever they are clicked, in the outline's order.

    `layers`: regions of all windows and menus, the topmost first. An element named by one of `frame_words` is not
    asked for by name: buttons of window frames may have that name.
    """
    unsaid = frozenset(map(_plain, frame_words))
    found = [target for one in outline.elements if (target := _target(one, outline, unsaid)) is not None]
    points = [point for target in found for point in _points(target.element.box)]
    hit, count = list(tops(points)), len(_TESTED) ** 2
    return [
        target
        for index, target in enumerate(found)
        if len(here := set(hit[count * index : count * (index + 1)])) == 1
        and None not in here
        and _is_bare(target.element.box, layers)
        and _is_hit(outline, target.element)
    ]


def _is_bare(box: Region, layers: Sequence[Region]) -> bool:
    """Return whether nothing covers any part of the element whose box is given.

    An outline has only the visible part of an element. If that part ends where a window begins, the rest is covered.
    """
    for layer in layers:
        if shared(layer, box) == box:
            return True
        touches = {box.left, box.right} & {layer.left, layer.right} or {box.top, box.bottom} & {layer.top, layer.bottom}
        if touches or shared(layer, box) is not None:
            return False
    return not layers


def _target(element: Element, outline: Outline, unsaid: Collection[str]) -> Target | None:
    box, states, screen = element.box, element.states, outline.size
    role = _role_of(element, outline)
    if role is None or element.source == "words" or not element.trusted or states & {"disabled", "offscreen"}:
        return None
    inside = box.left >= 0 and box.top >= 0 and box.right <= screen.width
    if not inside or box.bottom > screen.height or min(box.width, box.height) < _LEAST_SIDE:
        return None
    if box.size.area > _LARGEST_SHARE * screen.area:
        return None
    labelled = role in load_config("deskbench.toml")["labelled"]["roles"]
    name = _shown(element.label if labelled else element.name or element.label)
    return Target(element, role, "" if _plain(name) in unsaid else name)


def _role_of(element: Element, outline: Outline) -> str | None:
    """Return what a person calls such an element; None if a benchmark does not ask for such elements."""
    parent = outline.numbered(element.parent or 0)
    if element.role == "menu item" and parent is not None and parent.role == "menu bar":
        return "menu"  # Qt's
    return _role_words().get(element.role)


def _shown(name: str) -> str:
    """Return a name as it is quoted; "" if no person would say it."""
    name = " ".join(name.split()).rstrip(":… ")
    usual = len(name) <= _LONGEST_NAME and any(letter.isalpha() for letter in name) and name.isprintable()
    return name if usual and not any(word in name for word in _UNSAID) else ""


@cache
def _role_words() -> dict[str, str]:
    return {role: word for word, roles in load_config("deskbench.toml")["roles"].items() for role in roles}


def _points(box: Region) -> list[tuple[int, int]]:
    return [
        (box.left + int(across * box.width), box.top + int(down * box.height)) for across in _TESTED for down in _TESTED
    ]


def _is_hit(outline: Outline, element: Element) -> bool:
    """Return whether an element, or a part of it, is the innermost one at all points of its box that are tested."""
    parents = {one.id: one.parent for one in outline.elements}
    for x, y in _points(element.box):
        innermost = outline.at(DesktopPoint(x, y))
        number = None if innermost is None else innermost.id
        while number is not None and number != element.id:
            number = parents.get(number)
        if number is None:
            return False
    return True


def questions_of(target: Target, outline: Outline, rng: random.Random) -> list[Question]:
    """Return the questions, in random order, to which a target is the only answer on the screen."""
    found = [*_by_name(target, outline), *_by_role(target, outline), *_by_place(target, outline)]
    rng.shuffle(found)
    return found


def _by_name(target: Target, outline: Outline) -> Iterator[Question]:
    if target.name and not _namesakes(target, outline):
        yield Question("name", "name", name=target.name)


def _by_role(target: Target, outline: Outline) -> Iterator[Question]:
    element = target.element
    same = [one for one in outline.elements if _role_of(one, outline) == target.role]
    windows = [window.title for window in outline.windows]
    alone = sum(one.window == element.window for one in same) == 1
    if target.role in load_config("deskbench.toml")["glance"]["roles"] and alone and windows.count(element.window) == 1:
        yield Question("role", "only", target.role, window=element.window)
    if target.name and not any(one in same for one in _namesakes(target, outline)):
        yield Question("role", "role", target.role, target.name)


def _namesakes(target: Target, outline: Outline) -> list[Element]:
    """Return the elements elsewhere on the screen that bear the same words."""
    return [
        one
        for one in outline.elements
        if not _overlap(one.box, target.element.box)
        and any(_plain(text) and _alike(text, target.name) >= _READ_SAME for text in _texts(one))
    ]


def _texts(element: Element) -> list[str]:
    return [element.name, element.label, element.value or ""]


def _plain(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _alike(one: str, other: str) -> float:
    """Return how alike two texts are without spaces and signs, 0 to 100."""
    return fuzz.ratio(_plain(one), _plain(other))


def _overlap(one: Region, other: Region) -> bool:
    """Return whether half of the smaller box lies in the other."""
    part = shared(one, other)
    return part is not None and 2 * part.size.area >= min(one.size.area, other.size.area)


def _by_place(target: Target, outline: Outline) -> Iterator[Question]:
    """Yield questions by a text beside the target that is on the screen only once."""
    for side, turned in _TURNED.items():
        box = turned(target.element.box)
        near = [
            one
            for one in outline.elements
            if one.window == target.element.window and one.source != "words" and _before(turned(one.box), box)
        ]
        nearest = max(near, key=lambda one: turned(one.box).right, default=None)
        if nearest is None or not nearest.trusted or "offscreen" in nearest.states:
            continue
        name = _shown(nearest.name)
        reference = Target(nearest, "", name)
        if not name or nearest.source != "both" or _namesakes(reference, outline):
            continue
        if _is_next(turned, nearest, target.element, outline):
            yield Question("place", side, target.role, name)


def _mirrored(box: Region) -> Region:
    return Region(-box.right, box.top, box.width, box.height)


def _swapped(box: Region) -> Region:
    return Region(box.top, box.left, box.height, box.width)


#: Turns boxes so that a text lies left of its target. The key is the side of the text on which the target is.
_TURNED: dict[str, Callable[[Region], Region]] = {
    "right": lambda box: box,
    "left": _mirrored,
    "below": _swapped,
    "above": lambda box: _mirrored(_swapped(box)),
}


def _before(one: Region, other: Region) -> bool:
    """Return whether a box is at most `_FAR` left of another, and in line with it."""
    apart = min(abs(one.top - other.top), abs(one.top + one.height / 2 - other.top - other.height / 2))
    return 0 <= other.left - one.right <= _FAR and apart <= _IN_LINE


def _is_next(turned: Callable[[Region], Region], one: Element, target: Element, outline: Outline) -> bool:
    """Return whether no other element lies between an element's edge and the target's far edge."""
    first, last = turned(one.box), turned(target.box)
    top, bottom = min(first.top, last.top), max(first.bottom, last.bottom)
    way = Region(first.right, top, last.right - first.right, bottom - top)
    ours = (one.box, target.box)
    return not any(
        shared(turned(seen.box), way) is not None
        and not any(_overlap(seen.box, own) for own in ours)  # a part of one of the two, or a container of one
        for seen in outline.elements
    )


def is_absent(name: str, outline: Outline) -> bool:
    """Return whether nothing on the screen looks like this name.

    Text that only OCR reads varies from one look to the next. It counts only if it or one of its words surely matches
    the name; otherwise, the same seed could make another set.
    """
    read = [one.name for one in outline.elements if one.source == "words"]
    words = [word for text in read for word in (text, *text.split()) if len(_plain(word)) >= _LEAST_LETTERS]
    texts = [text for one in outline.elements if one.source != "words" for text in _texts(one)]
    texts += [text for window in outline.windows for text in (window.title, window.app)]
    wanted, limits = _plain(name), ((texts, _NOT_THERE), (words, _READ_SAME))
    return all(
        fuzz.partial_ratio(wanted, _plain(text)) < limit for seen, limit in limits for text in seen if _plain(text)
    )
