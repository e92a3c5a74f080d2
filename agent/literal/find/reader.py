"""Reads one screenshot of which nothing else is told: two looks at once.

The first look takes the image as it is. The second takes every pixel's difference from its surroundings, so that light
text on dark, dark on light and text on a selected row all look the same: a page with several windows has no one
threshold that suits all of them. Together they find nearly every word of the desktops they were tried on.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from agent.core.geometry import Region, Size
from agent.literal.vocabulary.labels import labels_of
from agent.screen.ocr import Ocr, Word, relief
from agent.screen.outline import Element, Outline
from agent.screen.words import merge

if TYPE_CHECKING:
    from PIL.Image import Image

#: What needs tesseract, for the error.
WHO = "The literal engine"
#: Wider screenshots (4K, HiDPI) have text large enough to be read without enlarging.
_LARGE_WIDTH = 2600


class Reader:
    """Two tesseracts, one for each look; loaded when first used."""

    def __init__(self) -> None:
        self._plain = Ocr(WHO)
        self._relief = Ocr(WHO)

    def outline(self, image: "Image") -> Outline:
        """The labels of a screenshot as elements, their boxes in its pixels."""
        labels = labels_of(self._words(image))
        boxes = [Region(one.box.left, one.box.top, one.box.width, one.box.height) for one in labels]
        elements = (
            Element(number, "label", label.text, box, source="words")
            for number, (label, box) in enumerate(zip(labels, boxes, strict=True), 1)
        )
        return Outline(Size(*image.size), tuple(elements), lacks="Only the words on the screen are known.")

    def _words(self, image: "Image") -> list[Word]:
        """Its words; about 0.5 s at 1080p on two cores."""
        scale = 1.0 if image.width > _LARGE_WIDTH else 2.0
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(self._plain.words, image, scale)
            second = pool.submit(self._relief.words, relief(image), scale)
            return merge([*first.result(), *second.result()])
