"""OCR for screenshots that come without elements.

There are two passes, which run in parallel. The first reads the image itself. The second reads every pixel's difference
from its surroundings: no single threshold suits light text on dark, dark text on light and selected rows at once.
"""

import itertools
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from agent.core.geometry import Size, Viewport
from agent.literal.vocabulary.lexicon import plain
from agent.screen.join import join
from agent.screen.ocr import Ocr, Word, lines_of, relief
from agent.screen.outline import Outline
from agent.screen.words import merge

if TYPE_CHECKING:
    from PIL.Image import Image

#: The part that needs tesseract, for the error message.
WHO = "The literal engine"
#: Wider screenshots (4K, HiDPI) have text that is large enough for OCR without enlarging.
_LARGE_WIDTH = 2600
#: Real words of one or two letters, which are no misread icons.
_SHORT_WORDS = frozenset(
    "a i of on to in at by no ok go up my is it as or an do if we am pm os cd tv id ip pc us".split()  # noqa: SIM905
)


class Reader:
    """Two tesseract instances, one for each pass; loaded on first use."""

    def __init__(self) -> None:
        self._plain, self._relief = Ocr(WHO), Ocr(WHO)

    def outline(self, image: "Image") -> Outline:
        """Return the lines and captions of a screenshot as elements; boxes are in image pixels.

        Takes about 0.5 s at 1080p on two cores.
        """
        scale = 1.0 if image.width > _LARGE_WIDTH else 2.0
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(self._plain.words, image, scale)
            second = pool.submit(self._relief.words, relief(image), scale)
            return outline_of(merge([*first.result(), *second.result()]), Size(*image.size))


def outline_of(words: Iterable[Word], size: Size) -> Outline:
    """Return the lines and captions that words form, without icons that were read as letters before them."""
    lines = lines_of(word for word in words if word.is_text)
    texts = [word for line in lines for word in (list(itertools.dropwhile(_is_icon, line)) or line)]
    return join(Outline(size, ()), texts, Viewport.of_image(size))


def _is_icon(word: Word) -> bool:
    """Return whether a word is probably an icon read as letters: one or two characters that are no real word."""
    text = plain(word.text)
    return len(text) <= 2 and len(word.text) <= 3 and not word.text.isdigit() and text not in _SHORT_WORDS
