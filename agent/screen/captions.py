"""Reads the caption at a point of the screen: the text that a click there would hit.

Up to four looks. The first ones take the field that the point lies on (a button, a row, the page) and every pixel's
distance from its colour, so that white on blue reads like black on white. Where they find nothing sure, the last one
takes every pixel's distance from its surroundings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.screen.ocr import Box, Ocr, Word, lines_of, relief

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
#: A button is no taller, and its caption no further from its middle, as a share of its width.
_TALLEST, _OFF_CENTRE = 64, 0.12
#: How much the edge of a button differs in colour from its ground, and in which share of its length.
_EDGE, _UNBROKEN = 9, 0.9
#: Colours that differ by less are the same field; a row belongs to it while so many of its pixels do.
_SAME, _SHARE = 40, 0.35
_MARGIN = 8
#: The looks at fields: how much of the screen, and how much around the point tells the ground by its middle colour.
#: Close by for points at an edge, wider for points on a letter; and a narrow strip for what is overlooked on a page.
_LOOKS = ((_AREA, (4, 3)), (_AREA, (16, 9)), (_STRIP, (4, 3)))


@dataclass(frozen=True, slots=True)
class _Caption:
    words: tuple[Word, ...]
    away: float  # from the point, in pixels of an ordinary screen
    x: float  # the point, in pixels of the picture that was read

    @property
    def sure(self) -> float:
        """Mean confidence, 0 to 100."""
        return sum(word.confidence for word in self.words) / len(self.words)

    @property
    def rank(self) -> tuple[float, float]:
        """The nearer the better; where two are about as near, the surer."""
        return round(self.away / _ABOUT), -self.sure

    @property
    def meant(self) -> str:
        """Its words; of prose those around the point."""
        words = self.words
        if len(words) > _PROSE:
            at = min(range(len(words)), key=lambda index: abs(words[index].box.center[0] - self.x))
            words = words[max(0, at - 2) : at + 3]
        return " ".join(word.text for word in words)


@dataclass(frozen=True, slots=True)
class Caption:
    """The text at a point; "" where nothing can be read."""

    text: str
    framed: bool = False  # alone in the middle of a small field of its own, as the caption of a button is


def caption_at(image: "Image", x: float, y: float, ocr: Ocr, scale: float = 1.0) -> Caption:
    """Read the caption at a point of a captured screen, given in its pixels.

    `scale` is captured pixels per pixel of an ordinary screen, 2 on a HiDPI display.
    """
    found: list[_Caption] = []
    enlarge = 2.0 / scale
    for (width, height), seed in _LOOKS:
        crop, at = _around(image, x, y, round(width * scale), round(height * scale))
        field, corner = _field(crop, at, seed)
        nearest = _nearest(ocr.words(field, enlarge), at[0] - corner[0], at[1] - corner[1], scale)
        # What is alone on a field of its own is its caption, wherever on it the point is.
        bounded = field.width < 0.9 * crop.width and field.height < 0.9 * crop.height
        if any(one.sure >= _SURE and (bounded or one.away <= _AT_ONCE) for one in nearest):
            return Caption(nearest[0].meant, _is_framed(crop, nearest[0], corner, scale))
        found += nearest
    crop, at = _around(image, x, y, round(_AREA[0] * scale), round(_AREA[1] * scale))
    found += _nearest(ocr.words(relief(crop, 3, stretch=True), enlarge), *at, scale)
    return Caption(min(found, key=lambda one: one.rank).meant if found else "")


def _is_framed(crop: "Image", caption: _Caption, corner: tuple[int, int], scale: float) -> bool:
    """Whether a caption stands in the middle of a frame or field that is no larger than buttons are."""
    import numpy as np

    box = Box.around(word.box for word in caption.words)
    left, right = (round(at) + corner[0] for at in (box.left, box.right))
    top, bottom = (round(at) + corner[1] for at in (box.top, box.bottom))
    pixels = np.asarray(crop.convert("RGB")).astype(np.int16)
    gap = max(2, round(2 * scale))
    beside = pixels[max(0, top) : bottom, max(0, left - 2 * gap) : max(1, left - gap)]
    if not beside.size:
        return False
    edge = np.abs(pixels - np.median(beside.reshape(-1, 3), axis=0)).max(axis=2) >= _EDGE
    columns = edge[max(0, top) : bottom].mean(axis=0) > _UNBROKEN
    rows = edge[:, max(0, left) : right].mean(axis=1) > _UNBROKEN
    columns[max(0, left) : right] = rows[max(0, top) : bottom] = False  # strokes of letters
    start, end = _between(np.flatnonzero(columns), (left + right) // 2, 0)
    above, below = _between(np.flatnonzero(rows), (top + bottom) // 2, 0)
    if not (start and end and above and below):
        return False
    aside = abs((start + end) - (left + right)) / 2
    return below - above <= _TALLEST * scale and aside <= _OFF_CENTRE * (end - start)


def _around(image: "Image", x: float, y: float, width: int, height: int) -> tuple["Image", tuple[int, int]]:
    left = max(0, min(round(x - width / 2), image.width - width))
    top = max(0, min(round(y - height / 2), image.height - height))
    crop = image.crop((left, top, min(left + width, image.width), min(top + height, image.height)))
    return crop, (min(max(round(x) - left, 0), crop.width - 1), min(max(round(y) - top, 0), crop.height - 1))


def _nearest(words: Sequence[Word], x: float, y: float, scale: float) -> list[_Caption]:
    """The caption that the point is on, or the nearest one beside or below; none where nothing is near."""
    near: list[_Caption] = []
    for line in lines_of(word for word in words if _is_text(word)):
        box = Box.around(word.box for word in line)
        beside = max(box.left - x, x - box.right, 0)
        below = max(box.top - y, y - box.bottom, 0)
        if beside <= _BESIDE * scale and below <= _BELOW * scale:
            near.append(_Caption(line, (beside / 2 + below) / scale, x))
    return sorted(near, key=lambda one: one.rank)[:1]


def _is_text(word: Word) -> bool:
    letters = sum(char.isalnum() for char in word.text)
    return letters > 0 and word.confidence >= (40 if letters > 3 else 60)


def _field(crop: "Image", at: tuple[int, int], seed: tuple[int, int]) -> tuple["Image", tuple[int, int]]:
    """The field around the point, its ground white and what is written on it dark; and where its corner is."""
    import numpy as np
    from PIL import Image, ImageOps

    (x, y), (aside, above) = at, seed
    pixels = np.asarray(crop.convert("RGB")).astype(np.int16)
    seeds = pixels[max(0, y - above) : y + above + 1, max(0, x - aside) : x + aside + 1]
    ground = np.median(seeds.reshape(-1, 3), axis=0)
    away = np.abs(pixels - ground).max(axis=2)
    near = away < _SAME
    top, bottom = _span(near[:, max(0, x - 30) : x + 31].mean(axis=1) > _SHARE, y)
    # Each column has a ground of its own, which may change slowly (a colour gradient), but not at once (an edge).
    grounds = np.median(pixels[top:bottom], axis=0)
    jumps = np.abs(np.diff(grounds, axis=0)).max(axis=1) >= _SAME / 2
    left, last = _between(np.flatnonzero(jumps), x, len(jumps))
    field = np.abs(pixels[top:bottom, left : last + 1] - grounds[left : last + 1]).max(axis=2)
    strength = 255 / max(60.0, float(field.max()))
    grey = (255 - np.clip(field * strength, 0, 255)).astype(np.uint8)
    return ImageOps.expand(Image.fromarray(grey), _MARGIN, 255), (left - _MARGIN, top - _MARGIN)


def _span(belongs: Any, at: int) -> tuple[int, int]:
    """The run around a place in which everything belongs, single lines of text strokes aside."""
    import numpy as np

    belongs[at] = True
    solid = belongs.copy()
    solid[1:-1] |= belongs[:-2] & belongs[2:]
    return _between(np.flatnonzero(~solid), at, len(solid))


def _between(bounds: Any, at: int, end: int) -> tuple[int, int]:
    """From after the last bound before a place to the first one from there on."""
    before, after = bounds[bounds < at], bounds[bounds >= at]
    return (int(before[-1]) + 1 if len(before) else 0), (int(after[0]) if len(after) else end)
