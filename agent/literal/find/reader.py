"""OCR for screenshots without an accessibility tree: reads the words and joins them to labels, as a person sees them.

There are two passes, which run in parallel. The first reads the image itself. The second reads every pixel's difference
from its surroundings: no single threshold suits light text on dark, dark text on light and selected rows at once.

A label is a run of words with ordinary spaces between them; a word in the next column starts another label. Labels
below each other, centred or flush left, are joined too, because icon captions wrap.
"""

import itertools
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from agent.core.geometry import Region, Size
from agent.literal.vocabulary.lexicon import plain
from agent.screen.ocr import Box, Ocr, Word, lines_of, relief
from agent.screen.outline import Element, Outline
from agent.screen.words import merge

if TYPE_CHECKING:
    from PIL.Image import Image

#: The part that needs tesseract, for the error message.
WHO = "The literal engine"
#: Wider screenshots (4K, HiDPI) have text that is large enough for OCR without enlarging.
_LARGE_WIDTH = 2600


class Reader:
    """Two tesseract instances, one for each pass; loaded on first use."""

    def __init__(self) -> None:
        self._plain = Ocr(WHO)
        self._relief = Ocr(WHO)

    def outline(self, image: "Image") -> Outline:
        """Return the labels of a screenshot as elements; boxes are in image pixels."""
        elements: list[Element] = []
        for label in labels_of(self._words(image)):
            box = Box.around(word.box for word in label)
            text, region = " ".join(word.text for word in label), Region(box.left, box.top, box.width, box.height)
            elements.append(Element(len(elements) + 1, "label", text, region, source="words"))
        return Outline(Size(*image.size), tuple(elements), lacks="Only the words on the screen are known.")

    def _words(self, image: "Image") -> list[Word]:
        """Return the words of an image; takes about 0.5 s at 1080p on two cores."""
        scale = 1.0 if image.width > _LARGE_WIDTH else 2.0
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(self._plain.words, image, scale)
            second = pool.submit(self._relief.words, relief(image), scale)
            return merge([*first.result(), *second.result()])


def labels_of(words: Iterable[Word]) -> list[list[Word]]:
    """Return the words of each label: single lines first, then captions of two lines."""
    runs = (list(run) for run in lines_of(word for word in words if _is_text(word)))
    lines = [list(itertools.dropwhile(_is_icon, run)) or run for run in runs]
    placed = [(line, Box.around(word.box for word in line)) for line in lines]
    pairs = itertools.product(placed, repeat=2)
    return [*lines, *([*upper, *lower] for (upper, one), (lower, other) in pairs if _goes_on(one, other))]


def _is_text(word: Word) -> bool:
    """Return whether a word is text rather than an icon misread as text."""
    if any(char.isalnum() for char in word.text):
        return word.confidence >= 40 or len(word.text) > 3
    return word.confidence >= 70


def _goes_on(upper: Box, lower: Box) -> bool:
    """Return whether two lines are one caption: centred or flush left, less than a line apart."""
    near = -2 <= lower.top - upper.bottom <= 0.9 * min(upper.height, lower.height)
    return near and (abs(upper.left - lower.left) <= 4 or abs(upper.center[0] - lower.center[0]) <= 6)


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
