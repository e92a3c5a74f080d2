"""Reads the caption at a point of the screen: the text that a click there would hit.

It makes up to four attempts. The first three isolate the field at the point (a button, a row, the page) and use each
pixel's distance from the field's colour, so that white on blue reads like black on white. If they find nothing
reliable, the last one uses each pixel's distance from its surroundings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.screen.drawing import crop_around
from agent.screen.ocr import Box, Ocr, Word, lines_of, relief

if TYPE_CHECKING:
    from PIL.Image import Image

#: Size of the area around the point to read, and of the narrow strip, in pixels at scale 1.
_AREA, _STRIP = (480, 112), (300, 36)
#: How far a caption may be from what it names (check boxes, icons), beside and below, in pixels at scale 1.
_BESIDE, _BELOW = 110, 36
#: A line of more words than this is prose, of which only the words around the point count.
_PROSE = 8
#: Confidence below which a reading leads to another attempt.
_SURE = 75
#: Distances that differ by less count as equal, in pixels at scale 1.
_ABOUT = 8
#: Within this distance, in pixels at scale 1, a caption belongs to the point and the search ends.
_AT_ONCE = 16
#: Largest height of a button, in pixels at scale 1, and largest offset of its caption from the middle, as a share of
#: its width.
_TALLEST, _OFF_CENTRE = 64, 0.12
#: Smallest colour difference between a button's edge and its background, and the share of the edge's length that must
#: have it.
_EDGE, _UNBROKEN = 9, 0.9
#: Colours that differ by less belong to the same field. A pixel row belongs to it if this share of its pixels does.
_SAME, _SHARE = 40, 0.35
_MARGIN = 8
#: The attempts with fields: size of the crop, and half size of the area around the point whose median colour is the
#: background. A small area suits points at an edge, a larger one points on a letter. The strip finds text that is
#: overlooked on a page.
_LOOKS = ((_AREA, (4, 3)), (_AREA, (16, 9)), (_STRIP, (4, 3)))


@dataclass(frozen=True, slots=True)
class _Caption:
    words: tuple[Word, ...]
    away: float  # distance from the point, in pixels at scale 1
    x: float  # the point's x, in pixels of the image that was read
    offset: tuple[float, float]  # of its middle from the point, in the same pixels

    @property
    def sure(self) -> float:
        """Mean confidence, 0 to 100."""
        return sum(word.confidence for word in self.words) / len(self.words)

    @property
    def rank(self) -> tuple[float, float]:
        """Sort key: nearest first, then most confident at about the same distance."""
        return round(self.away / _ABOUT), -self.sure

    @property
    def meant(self) -> str:
        """The caption's words; for prose, those around the point."""
        words = self.words
        if len(words) > _PROSE:
            at = min(range(len(words)), key=lambda index: abs(words[index].box.center[0] - self.x))
            words = words[max(0, at - 2) : at + 3]
        return " ".join(word.text for word in words)


@dataclass(frozen=True, slots=True)
class Caption:
    """The text at a point; "" if none can be read."""

    text: str
    framed: bool = False  # centred alone in a small field, like a button's caption
    offset: tuple[float, float] = (0.0, 0.0)  # of its middle from the point, in pixels of the image


def caption_at(image: "Image", x: float, y: float, ocr: Ocr, scale: float = 1.0) -> Caption:
    """Read the caption at a point of a captured screen, given in its pixels.

    `scale` is captured pixels per pixel at scale 1; 2 on a HiDPI display.
    """
    found: list[_Caption] = []
    enlarge = 2.0 / scale
    for (width, height), seed in _LOOKS:
        crop, at = _around(image, x, y, round(width * scale), round(height * scale))
        field, corner = _field(crop, at, seed)
        nearest = _nearest(ocr.words(field, enlarge), at[0] - corner[0], at[1] - corner[1], scale)
        # A single text in a bounded field is its caption, wherever in the field the point is.
        bounded = field.width < 0.9 * crop.width and field.height < 0.9 * crop.height
        if any(one.sure >= _SURE and (bounded or one.away <= _AT_ONCE) for one in nearest):
            return Caption(nearest[0].meant, _is_framed(crop, nearest[0], corner, scale), nearest[0].offset)
        found += nearest
    crop, at = _around(image, x, y, round(_AREA[0] * scale), round(_AREA[1] * scale))
    found += _nearest(ocr.words(relief(crop, 3, stretch=True), enlarge), *at, scale)
    best = min(found, key=lambda one: one.rank, default=None)
    return Caption("") if best is None else Caption(best.meant, offset=best.offset)


def _is_framed(crop: "Image", caption: _Caption, corner: tuple[int, int], scale: float) -> bool:
    """Whether a caption is centred in a frame or field of at most a button's size."""
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
    crop, (left, top) = crop_around(image, (x, y), width, height)
    return crop, (min(max(round(x) - left, 0), crop.width - 1), min(max(round(y) - top, 0), crop.height - 1))


def _nearest(words: Sequence[Word], x: float, y: float, scale: float) -> list[_Caption]:
    """Return the caption at the point, or else the nearest one beside or below; empty if none is near."""
    near: list[_Caption] = []
    for line in lines_of(word for word in words if word.is_text):
        box = Box.around(word.box for word in line)
        beside = max(box.left - x, x - box.right, 0)
        below = max(box.top - y, y - box.bottom, 0)
        if beside <= _BESIDE * scale and below <= _BELOW * scale:
            offset = ((box.left + box.right) / 2 - x, (box.top + box.bottom) / 2 - y)
            near.append(_Caption(line, (beside / 2 + below) / scale, x, offset))
    return sorted(near, key=lambda one: one.rank)[:1]


def _field(crop: "Image", at: tuple[int, int], seed: tuple[int, int]) -> tuple["Image", tuple[int, int]]:
    """Return the field around the point as dark text on white, and its top left corner in the crop."""
    import numpy as np
    from PIL import Image, ImageOps

    (x, y), (aside, above) = at, seed
    pixels = np.asarray(crop.convert("RGB")).astype(np.int16)
    seeds = pixels[max(0, y - above) : y + above + 1, max(0, x - aside) : x + aside + 1]
    ground = np.median(seeds.reshape(-1, 3), axis=0)
    away = np.abs(pixels - ground).max(axis=2)
    near = away < _SAME
    top, bottom = _span(near[:, max(0, x - 30) : x + 31].mean(axis=1) > _SHARE, y)
    # Each column has its own background, which may change gradually (a gradient) but not abruptly (an edge).
    grounds = np.median(pixels[top:bottom], axis=0)
    jumps = np.abs(np.diff(grounds, axis=0)).max(axis=1) >= _SAME / 2
    left, last = _between(np.flatnonzero(jumps), x, len(jumps))
    field = np.abs(pixels[top:bottom, left : last + 1] - grounds[left : last + 1]).max(axis=2)
    strength = 255 / max(60.0, float(field.max()))
    grey = (255 - np.clip(field * strength, 0, 255)).astype(np.uint8)
    return ImageOps.expand(Image.fromarray(grey), _MARGIN, 255), (left - _MARGIN, top - _MARGIN)


def _span(belongs: Any, at: int) -> tuple[int, int]:
    """Return the range around an index in which all rows belong, ignoring single rows that do not (strokes of text)."""
    import numpy as np

    belongs[at] = True
    solid = belongs.copy()
    solid[1:-1] |= belongs[:-2] & belongs[2:]
    return _between(np.flatnonzero(~solid), at, len(solid))


def _between(bounds: Any, at: int, end: int) -> tuple[int, int]:
    """Return the range from after the last bound before an index to the first bound at or after it."""
    before, after = bounds[bounds < at], bounds[bounds >= at]
    return (int(before[-1]) + 1 if len(before) else 0), (int(after[0]) if len(after) else end)
