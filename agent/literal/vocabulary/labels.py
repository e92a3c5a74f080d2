"""Joins OCR words to labels: pieces of text as a person sees them.

A label is a run of words with ordinary spaces between them; a word in the next column starts another label. Labels
below each other, centred or flush left, are joined too, because icon captions wrap.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.screen.ocr import Box, Word, lines_of


@dataclass(frozen=True, slots=True)
class Label:
    """A piece of text on the screen."""

    text: str
    box: Box
    words: tuple[Word, ...]


def plain(text: str) -> str:
    """Return a text in lower case, without accents and punctuation around words; a text of symbols alone is kept."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    words = [re.sub(r"^[^\w+\-=/*%]+|[^\w+\-=/*%]+$", "", word) for word in letters.split()]
    joined = " ".join(word for word in words if word)
    return joined or " ".join(letters.split())


def labels_of(words: Iterable[Word]) -> list[Label]:
    """Return the labels that the words form: single lines first, then captions of two lines."""
    lines = [_label(_without_icons(run)) for run in lines_of(word for word in words if _is_text(word))]
    return [*lines, *_captions(lines)]


def _is_text(word: Word) -> bool:
    """Return whether a word is text rather than an icon misread as text."""
    if any(char.isalnum() for char in word.text):
        return word.confidence >= 40 or len(word.text) > 3
    return word.confidence >= 70


def _label(words: Sequence[Word]) -> Label:
    return Label(" ".join(word.text for word in words), Box.around(word.box for word in words), tuple(words))


def _captions(labels: Sequence[Label]) -> list[Label]:
    """Return labels of two lines: centred or flush left, less than a line apart."""
    return [
        _label((*upper.words, *lower.words))
        for upper, lower in itertools.product(labels, repeat=2)
        if -2 <= lower.box.top - upper.box.bottom <= 0.9 * min(upper.box.height, lower.box.height)
        and (abs(upper.box.left - lower.box.left) <= 4 or abs(upper.box.center[0] - lower.box.center[0]) <= 6)
    ]


#: Real words of one or two letters, which are no misread icons.
_SHORT_WORDS = frozenset(
    "a i of on to in at by no ok go up my is it as or an do if we am pm os cd tv id ip pc us".split()  # noqa: SIM905
)


def _is_icon(word: Word) -> bool:
    """Return whether a word is probably an icon read as letters: one or two characters that are no real word."""
    text = plain(word.text)
    if len(text) > 2 or word.text.isdigit() or text in _SHORT_WORDS:
        return False
    return len(word.text) <= 3


def _without_icons(line: Sequence[Word]) -> Sequence[Word]:
    """Return the words after leading icons, or all of them if only icons are left."""
    return list(itertools.dropwhile(_is_icon, line)) or line
