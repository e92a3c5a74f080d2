"""What is written at a point of the screen: the caption that a click there would hit.

Up to four looks. The first ones take the field that the point lies on (a button, a row, the page) and every pixel's
distance from its colour, so that white on blue reads like black on white. Where they find nothing sure, the last one
takes every pixel's distance from its surroundings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.screen.ocr import Box, Ocr, Word, relief

if TYPE_CHECKING:
    from PIL.Image import Image

#: How much around the point is looked at, in pixels of an ordinary screen.
_AREA, _STRIP = (480, 112), (300, 36)
#: A caption may stand beside or under what it names (check boxes, icons), at most so far away.
_BESIDE, _BELOW = 110, 36
#: A line of more words than this is prose, of which only the surroundings of the point are meant.
_PROSE = 8
#: Readings that are less sure than this, or not at the point itself, get another look.
_SURE = 75
#: Distances that differ by less are the same, in pixels of an ordinary screen.
_ABOUT = 8
#: So near, a caption is the one of the point, and no other is looked for.
_AT_ONCE = 16
#: Colours that differ by less are the same field; a row belongs to it while so many of its pixels do.
_SAME, _SHARE = 40, 0.35
_MARGIN = 8
#: The looks at fields: how much of the screen, and how much around the point tells the ground by its middle colour.
#: Close by for points at an edge, wider for points on a letter; and a narrow strip for what is overlooked on a page.
_LOOKS = ((_AREA, (4, 3)), (_AREA, (16, 9)), (_STRIP, (4, 3)))


@dataclass(frozen=True, slots=True)
class Caption:
    """A piece of text on one line, as it was read."""

    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """Its words."""
        return " ".join(word.text for word in self.words)

    @property
    def sure(self) -> float:
        """Mean confidence, 0 to 100."""
        return sum(word.confidence for word in self.words) / len(self.words)

    @property
    def box(self) -> Box:
        """Around all words."""
        return Box.around(word.box for word in self.words)


def caption_at(image: "Image", x: float, y: float, ocr: Ocr, scale: float = 1.0) -> str:
    """What is written at a point of a captured screen; "" where nothing can be read.

    Args:
        image: the screen.
        x: the point, in its pixels.
        y: the point, in its pixels.
        ocr: what reads.
        scale: captured pixels per pixel of an ordinary screen, 2 on a HiDPI display.
    """
    best: _Found | None = None
    enlarge = 2.0 / scale
    for (width, height), seed in _LOOKS:
        crop, at = _around(image, x, y, round(width * scale), round(height * scale))
        field, corner = _field(crop, at, seed)
        found = _nearest(ocr.words(field, enlarge), at[0] - corner[0], at[1] - corner[1], scale)
        # What is alone on a field of its own is its caption, wherever on it the point is.
        bounded = field.width < 0.9 * crop.width and field.height < 0.9 * crop.height
        if found is not None and found.caption.sure >= _SURE and (bounded or found.away <= _AT_ONCE):
            return _meant(found)
        best = _better(best, found)
    crop, at = _around(image, x, y, round(_AREA[0] * scale), round(_AREA[1] * scale))
    best = _better(best, _nearest(ocr.words(relief(crop, 3, stretch=True), enlarge), *at, scale))
    return "" if best is None else _meant(best)


def _around(image: "Image", x: float, y: float, width: int, height: int) -> tuple["Image", tuple[int, int]]:
    """A part of the image around a point, and where the point is in it."""
    left = max(0, min(round(x - width / 2), image.width - width))
    top = max(0, min(round(y - height / 2), image.height - height))
    crop = image.crop((left, top, min(left + width, image.width), min(top + height, image.height)))
    return crop, (min(max(round(x) - left, 0), crop.width - 1), min(max(round(y) - top, 0), crop.height - 1))


@dataclass(frozen=True, slots=True)
class _Found:
    """A caption near the point, and how far it is away."""

    caption: Caption
    away: float
    x: float  # the point, in pixels of the picture that was read

    @property
    def rank(self) -> tuple[float, float]:
        """The nearer the better; where both are about as near, the surer."""
        return round(self.away / _ABOUT), -self.caption.sure


def _better(one: "_Found | None", other: "_Found | None") -> "_Found | None":
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda found: found.rank)


def _nearest(words: Sequence[Word], x: float, y: float, scale: float) -> _Found | None:
    """The caption that the point is on, or the nearest one beside or below."""
    near: list[_Found] = []
    for caption in _captions([word for word in words if _is_text(word)]):
        box = caption.box
        beside = max(box.left - x, x - box.right, 0)
        below = max(box.top - y, y - box.bottom, 0)
        if beside <= _BESIDE * scale and below <= _BELOW * scale:
            near.append(_Found(caption, (beside / 2 + below) / scale, x))
    return min(near, key=lambda one: one.rank) if near else None


def _is_text(word: Word) -> bool:
    """Whether a word is text rather than an edge that was read as text."""
    letters = sum(char.isalnum() for char in word.text)
    return letters > 0 and word.confidence >= (40 if letters > 3 else 60)


def _captions(words: list[Word]) -> list[Caption]:
    """Words with ordinary spaces between them, line by line."""
    captions: list[list[Word]] = []
    for word in sorted(words, key=lambda one: one.box.left):
        following = next((run for run in captions if _continues(run[-1].box, word.box)), None)
        if following is None:
            captions.append([word])
        else:
            following.append(word)
    return [Caption(tuple(run)) for run in captions]


def _continues(one: Box, other: Box) -> bool:
    height = max(one.height, other.height)
    same_line = abs(one.center[1] - other.center[1]) <= 0.5 * height
    return same_line and -0.3 * height <= other.left - one.right <= max(0.95 * height, 8)


def _meant(found: _Found) -> str:
    words = found.caption.words
    if len(words) <= _PROSE:
        return found.caption.text
    at = min(range(len(words)), key=lambda index: abs(words[index].box.center[0] - found.x))
    return " ".join(word.text for word in words[max(0, at - 2) : at + 3])


def _field(crop: "Image", at: tuple[int, int], seed: tuple[int, int]) -> tuple["Image", tuple[int, int]]:
    """The field around the point, its ground white and what is written on it dark; and where its corner is."""
    import numpy as np
    from PIL import Image, ImageOps

    (x, y), (aside, above) = at, seed
    pixels = np.asarray(crop.convert("RGB")).astype(np.int16)
    ground = np.median(
        pixels[max(0, y - above) : y + above + 1, max(0, x - aside) : x + aside + 1].reshape(-1, 3), axis=0
    )
    away = np.abs(pixels - ground).max(axis=2)
    near = away < _SAME
    top, bottom = _span(near[:, max(0, x - 30) : x + 31].mean(axis=1) > _SHARE, y)
    # Each column has a ground of its own, which may change slowly (a colour gradient), but not at once (an edge).
    grounds = np.median(pixels[top:bottom], axis=0)
    jumps = np.abs(np.diff(grounds, axis=0)).max(axis=1) >= _SAME / 2
    left, right = _between(jumps, x)
    field = np.abs(pixels[top:bottom, left:right] - grounds[left:right]).max(axis=2)
    strength = 255 / max(60.0, float(field.max()))
    grey = (255 - np.clip(field * strength, 0, 255)).astype(np.uint8)
    return ImageOps.expand(Image.fromarray(grey), _MARGIN, 255), (left - _MARGIN, top - _MARGIN)


def _span(belongs: Any, at: int) -> tuple[int, int]:
    """The run around a place in which everything belongs, single lines of text strokes aside."""
    low = high = at
    while low > 0 and (belongs[low - 1] or (low > 1 and belongs[low - 2])):
        low -= 1
    while high < len(belongs) - 1 and (belongs[high + 1] or (high < len(belongs) - 2 and belongs[high + 2])):
        high += 1
    return low, high + 1


def _between(jumps: Any, at: int) -> tuple[int, int]:
    """The columns between the nearest jumps on both sides; a jump lies between a column and the next."""
    before, after = jumps[:at].nonzero()[0], jumps[at:].nonzero()[0]
    return (int(before[-1]) + 1 if len(before) else 0), (at + int(after[0]) + 1 if len(after) else len(jumps) + 1)
