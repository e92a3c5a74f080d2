"""OCR for screenshots without an accessibility tree, in two passes that run in parallel.

The first pass reads the image itself. The second reads every pixel's difference from its surroundings, because no
single threshold suits light text on dark, dark text on light and selected rows at once.
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
        labels = labels_of(self._words(image))
        boxes = [Region(one.box.left, one.box.top, one.box.width, one.box.height) for one in labels]
        elements = (
            Element(number, "label", label.text, box, source="words")
            for number, (label, box) in enumerate(zip(labels, boxes, strict=True), 1)
        )
        return Outline(Size(*image.size), tuple(elements), lacks="Only the words on the screen are known.")

    def _words(self, image: "Image") -> list[Word]:
        """Return the words of an image; takes about 0.5 s at 1080p on two cores."""
        scale = 1.0 if image.width > _LARGE_WIDTH else 2.0
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(self._plain.words, image, scale)
            second = pool.submit(self._relief.words, relief(image), scale)
            return merge([*first.result(), *second.result()])
