"""Whether what lies at a point can be what was asked for, by the names that the screen tells.

Models that cannot refuse point at something when what they look for is not there: MAI-UI answers none of OSWorld-G's 54
impossible questions with "absent". What is named otherwise, while what was asked for is named elsewhere, or where the
name is plainly written on it, is doubted; whatever has no name is not, since a picture may be called anything.
"""

import re
from collections.abc import Iterator
from functools import cache

from agent.core.actions import shorten
from agent.core.geometry import DesktopPoint
from agent.screen.outline import Element, Outline
from foundation.configs import load_config

_WORD = re.compile(r"\w+")
#: Labels so near to a point may name what lies there, in desktop pixels.
_NEAR = 48
#: Words with so long a beginning in common, and with so much of the shorter one, are forms of one word: save, saving.
_STEM, _SHARE = 3, 0.6
#: A longer name is a text, not the name of a thing.
_LONGEST_NAME = 60


def contradiction(words: str, point: DesktopPoint, outline: Outline) -> str:
    """Why what lies at a point is not what the words ask for, as a clause; "" where nothing says so."""
    wanted = _content(words)
    there = outline.at(point)
    if not wanted or there is None or not there.trusted or there.role not in _rules()["named_roles"]:
        return ""
    name = there.name or there.label
    if not _content(name) or len(name) > _LONGEST_NAME:
        return ""
    around = [one for one in outline.elements if one.source == "words" and _is_near(one, point)]
    known = [name, there.label, there.value or "", there.window, *(one.name for one in around)]
    if any(_alike(wanted, _content(text)) for text in known):
        return ""
    elsewhere = [one for one in outline.elements if one is not there and wanted <= _content(one.name or one.label)]
    if not elsewhere and there.source != "both" and there.role not in _rules()["written_roles"]:
        return ""  # what is drawn there may well be called otherwise: a gear is named "Settings"
    return f"you want {shorten(words, 80)}, and at that point is the {there.words}"


def _content(text: str) -> frozenset[str]:
    """The words of a text that say which thing is meant."""
    return frozenset(_words(text)) - _rules()["says_nothing"]


def _words(text: str) -> Iterator[str]:
    return (word.casefold() for word in _WORD.findall(text[:400]))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether they share a word, or a form of one."""
    return any(_same_beginning(a, b) >= max(_STEM, _SHARE * min(len(a), len(b))) or a == b for a in one for b in other)


def _same_beginning(one: str, other: str) -> int:
    """How many characters two words have in common at their beginnings."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _is_near(element: Element, point: DesktopPoint) -> bool:
    box = element.box
    beyond_x = max(box.left - point.x, 0, point.x - box.left - box.width)
    beyond_y = max(box.top - point.y, 0, point.y - box.top - box.height)
    return max(beyond_x, beyond_y) <= _NEAR


@cache
def _rules() -> dict[str, frozenset[str]]:
    return {name: frozenset(words) for name, words in load_config("likeness.toml").items()}
