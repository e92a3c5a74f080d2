"""A closer look for characters that stand alone, such as the digits on a calculator's keys.

Tesseract's page analysis takes lone characters for specks. Here they are found by their shape, and each is read by
itself.
"""

from functools import cached_property
from typing import TYPE_CHECKING

from agent.screen.blobs import blobs
from agent.screen.ocr import Box, Ocr, Word, relief

if TYPE_CHECKING:
    from PIL.Image import Image

#: Grey levels between a character and its ground.
_CONTRAST = 45
#: Heights and widths of characters in pixels, from small labels to large calculator keys.
_SMALLEST, _LARGEST = 4, 48
#: Read at most so many: each takes about 6 ms.
_MOST = 160
#: Heights to which a character is enlarged, with the ground left around it, tried one after the other. With (34, 10),
#: 7 of 7 characters tried (7, 1, C, =, 8, -, .) were read right, with a margin of 4 only 3; slightly blurred signs
#: such as + and * need the others.
_WAYS = ((34, 10), (20, 10), (24, 6), (48, 6))


class Glyphs:
    """The lone characters of a screenshot, outside the boxes of words already read (`known`)."""

    def __init__(self, image: "Image", ocr: Ocr, known: list[Box]) -> None:
        self._image = image
        self._ocr = ocr
        self._known = known

    @cached_property
    def _boxes(self) -> list[Box]:
        import numpy as np

        inverted = np.asarray(relief(self._image))
        found = blobs(inverted < 255 - _CONTRAST)
        shapes = [box for box in found if _SMALLEST <= max(box.width, box.height) <= _LARGEST]
        glyphs = [box for box in _join_parts(shapes) if _alone(box, shapes)]
        return [box for box in glyphs if not any(known.contains(*box.center) for known in self._known)][:_MOST]

    def find(self, wanted: str) -> list[Word]:
        """The glyphs that read as the wanted text more surely than as anything else.

        Every glyph is read in several ways and the readings are weighed: in one of them a blurred "+" is an "of" and a
        "-" a "=", and a single reading would press the wrong key.
        """
        target = wanted.casefold()
        return [Word(wanted, box, sure) for box, text, sure in self._readings if text == target]

    @cached_property
    def _readings(self) -> list[tuple[Box, str, float]]:
        """Each glyph with its likeliest text (case ignored) and the mean confidence of that reading."""
        found: list[tuple[Box, str, float]] = []
        for box in self._boxes:
            votes: dict[str, list[float]] = {}
            for way in _WAYS:
                if (word := self._read_one(box, *way)) is not None:
                    votes.setdefault(word.text.casefold(), []).append(word.confidence)
            if votes:
                text, confidences = max(votes.items(), key=lambda vote: sum(vote[1]))
                found.append((box, text, sum(confidences) / len(confidences)))
        return found

    def _read_one(self, glyph: Box, height: int, margin: int) -> Word | None:
        pad = max(margin, glyph.height)
        crop = self._image.crop((glyph.left - pad, glyph.top - pad, glyph.right + pad, glyph.bottom + pad))
        scale = max(1.0, min(6.0, height / max(glyph.height, 8)))
        read = self._ocr.single_line(_dark_on_light(crop), scale)
        if len(read) == 1 and len(read[0].text) <= 2:
            return Word(read[0].text, glyph, read[0].confidence)
        return None


def _join_parts(shapes: list[Box]) -> list[Box]:
    """Characters of several parts put together: "=", "i", ":", "%"."""
    joined: list[Box] = []
    for shape in sorted(shapes, key=lambda box: (box.top, box.left)):
        for index, other in enumerate(joined):
            across = min(shape.right, other.right) - max(shape.left, other.left)
            gap = shape.top - other.bottom
            size = max(min(shape.width, other.width), 6)
            if across > 0.6 * min(shape.width, other.width) and 0 <= gap <= 0.8 * size:
                joined[index] = Box.around((other, shape))
                break
        else:
            joined.append(shape)
    return [box for box in joined if box.height <= _LARGEST]


def _alone(glyph: Box, shapes: list[Box]) -> bool:
    """Whether no other shape stands beside it on its line, as in a word."""
    reach = max(glyph.height, 10) * 0.7
    for other in shapes:
        if glyph.left <= other.left and other.right <= glyph.right and glyph.top <= other.top <= glyph.bottom:
            continue  # a part of itself
        same_line = other.top < glyph.bottom and glyph.top < other.bottom
        near = other.left - glyph.right < reach and glyph.left - other.right < reach
        if same_line and near:
            return False
    return True


def _dark_on_light(crop: "Image") -> "Image":
    """The crop with dark text on light ground, whatever it was; the ground is the border's colour."""
    import numpy as np
    from PIL import ImageOps

    grey = crop.convert("L")
    pixels = np.asarray(grey)
    ground = np.median([pixels[:2], pixels[-2:]])
    return ImageOps.autocontrast(grey if ground >= 128 else ImageOps.invert(grey))
