"""Reads one screenshot: two looks at once, a third one for single characters only when asked.

The first look takes the image as it is. The second takes every pixel's difference from its surroundings, so that light
text on dark, dark on light and text on a selected row all look the same: a page with several windows has no one
threshold that suits all of them. Together they find nearly every word of the desktops they were tried on.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from agent.literal.glyphs import Glyphs
from agent.literal.labels import Label, Match, find, labels_of
from agent.screen.ocr import Box, Ocr, Word, relief
from agent.screen.words import merge

if TYPE_CHECKING:
    from PIL.Image import Image

#: What needs tesseract, for the error.
WHO = "The literal engine"
#: Wider screenshots (4K, HiDPI) have text large enough to be read without enlarging.
_LARGE_WIDTH = 2600
#: A desktop shows a few icons; a window has more text than this.
_WINDOW_LABELS = 12


class Reader:
    """Two tesseracts, one for each look; loaded when first used."""

    def __init__(self) -> None:
        self._plain = Ocr(WHO)
        self._relief = Ocr(WHO)

    def read(self, image: "Image") -> "Page":
        """The page of a screenshot; about 0.5 s at 1080p on two cores."""
        scale = 1.0 if image.width > _LARGE_WIDTH else 2.0
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(self._plain.words, image, scale)
            second = pool.submit(self._relief.words, relief(image), scale)
            words = merge([*first.result(), *second.result()])
        return Page(image, words, self._plain)


class Page:
    """What can be read on one screenshot."""

    def __init__(self, image: "Image", words: list[Word], ocr: Ocr) -> None:
        self.image = image
        self.words = words
        self._ocr = ocr

    @cached_property
    def labels(self) -> list[Label]:
        """The labels on the screenshot."""
        return labels_of(self.words)

    @cached_property
    def _glyphs(self) -> Glyphs:
        return Glyphs(self.image, self._ocr, [word.box for word in self.words if len(word.text) > 3])

    def find(self, wanted: str, *, least: float = 0.72) -> list[Match]:
        """Where a text stands, best first; short texts get a closer look besides."""
        matches = find(self.labels, wanted, least=least)
        short = wanted.strip()
        if not 0 < len(short) <= 2:
            return matches
        closer = [Match(word.box, Label(word.text, word.box, (word,)), 1.0) for word in self._glyphs.find(short)]
        return closer + [match for match in matches if not any(match.box.overlaps(other.box) for other in closer)]

    def text_area(self) -> Box | None:
        """Where most of the text is, away from panels at the edges; None on a desktop without a window."""
        height = self.image.height
        inner = [label.box for label in self.labels if 0.06 * height < label.box.center[1] < 0.94 * height]
        if len(inner) < _WINDOW_LABELS:
            return None
        xs, ys = sorted(box.center[0] for box in inner), sorted(box.center[1] for box in inner)
        x, y = round(xs[len(xs) // 2]), round(ys[len(ys) // 2])
        return Box(x - 1, y - 1, x + 1, y + 1)

    def texts(self, limit: int = 25, region: Box | None = None) -> list[str]:
        """The labels in a region that were read best, for telling a person what is visible instead."""
        readable = [
            label
            for label in self.labels
            if sum(map(str.isalpha, label.text)) >= 3 and (region is None or region.contains(*label.box.center))
        ]
        readable.sort(key=lambda label: -min(word.confidence for word in label.words))
        return list(dict.fromkeys(label.text for label in readable))[:limit]
