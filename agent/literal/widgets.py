"""Switches, check boxes and radio buttons beside a label, and whether they are on.

A label alone does not tell whether "enable" still has something to do, and clicking the label of a separate switch
does nothing. Switches that are on and boxes that are checked are filled with a colour in the usual themes.
"""

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from agent.screen.blobs import blobs
from agent.screen.ocr import Box

if TYPE_CHECKING:
    from PIL.Image import Image


#: Heights in pixels of text fields of one line, padding included.
_LINE_HEIGHTS = (14, 48)


@dataclass(frozen=True, slots=True)
class Widget:
    """A control beside a label; `on` is None where it cannot be told."""

    kind: Literal["switch", "box"]
    box: Box
    on: bool | None


class _Form(NamedTuple):
    """How a kind of control looks; lengths in heights of its label, `least` in pixels."""

    contrast: int  # grey levels from its ground
    aspect: tuple[float, float]  # width over height
    heights: tuple[float, float]
    least: int  # height
    off: float  # its middle from the label's


_BOX = _Form(22, (0.75, 1.34), (0.75, 2.3), 11, 0.6)
_SWITCH = _Form(9, (1.5, 3.2), (1.1, 3.2), 14, 0.9)


def widgets_beside(image: "Image", label: Box) -> list[Widget]:
    """The check boxes or radio buttons left of a label, or else the switch right of it; the likeliest first."""
    height, middle = max(label.height, 10), label.center[1]
    reach = 1.3 * height
    left = Box(int(label.left - 3.6 * reach), int(middle - reach), label.left - 1, int(middle + reach))
    # In a list, the box stands left of the row's picture, which is square too.
    if boxes := _controls(image, label, _clip(left, image), _BOX):
        return [Widget("box", box, _box_is_on(image, box)) for box in boxes]
    reach, end = 1.6 * height, int(label.right + max(60 * height, 500))
    right = _clip(Box(label.right + 2, int(middle - reach), end, int(middle + reach)), image)
    switches = _controls(image, label, right and _to_window_edge(image, right), _SWITCH)
    return [Widget("switch", box, _colour_share(image, box) > 0.2) for box in switches[:1]]


def _controls(image: "Image", label: Box, zone: Box | None, form: _Form) -> list[Box]:
    """What looks like such a control in a zone, from left to right."""
    height = max(label.height, 10)
    found = [
        box
        for box in (_shapes(image, zone, form.contrast) if zone is not None else ())
        if form.aspect[0] <= box.width / box.height <= form.aspect[1]
        and max(form.least, form.heights[0] * height) <= box.height <= form.heights[1] * height
        and abs(box.center[1] - label.center[1]) <= form.off * height
    ]
    return sorted(found, key=lambda box: box.left)


def _box_is_on(image: "Image", box: Box) -> bool | None:
    import numpy as np

    if _colour_share(image, box) > 0.25:
        return True
    inset = max(2, round(box.width * 0.22))
    inside = image.crop((box.left + inset, box.top + inset, box.right - inset, box.bottom - inset)).convert("L")
    values = np.asarray(inside, dtype=np.int16)
    if values.size == 0:
        return None
    marked = float((np.abs(values - np.median(values)) > 60).mean())
    # A check mark or a radio dot covers at least a tenth of the inside; an empty box has one plain ground.
    return True if marked > 0.1 else False if marked < 0.03 else None


def _to_window_edge(image: "Image", zone: Box) -> Box:
    """The zone up to where the ground beside the label ends: what lies beyond belongs to something else."""
    import numpy as np

    crop = np.asarray(image.crop(zone).convert("RGB"), dtype=np.int16)
    ground = np.median(crop[:, : max(8, zone.height)].reshape(-1, 3), axis=0)
    like_ground = (np.abs(crop - ground).max(axis=2) <= 9).mean(axis=0)
    foreign = np.convolve(like_ground < 0.15, np.ones(6), "valid") >= 6
    ends = np.nonzero(foreign)[0]
    width = int(ends[0]) if len(ends) else zone.width
    return Box(zone.left, zone.top, zone.left + max(width, 8), zone.bottom)


def text_fields(image: "Image", region: Box) -> list[Box]:
    """Empty-looking text fields in a region, from top to bottom: framed strips of one plain colour.

    Found as bands of rows that hold the same long run of one colour, as high as a line of text with its padding.
    """
    import numpy as np

    grey = np.asarray(image.crop(region).convert("L"), dtype=np.int16)
    bands: dict[tuple[int, int, int], tuple[int, int]] = {}  # (left, right, colour) -> (first row, last row)
    found: list[Box] = []

    def end_band(key: tuple[int, int, int]) -> None:
        (left, right, _), (first, last) = key, bands.pop(key)
        if _LINE_HEIGHTS[0] <= last - first + 1 <= _LINE_HEIGHTS[1]:
            top = region.top + first
            found.append(Box(region.left + left * 4, top, region.left + right * 4, top + last - first + 1))

    for row in range(grey.shape[0]):
        edges = np.nonzero(np.abs(np.diff(grey[row])) > 2)[0]
        bounds = [0, *(edges + 1).tolist(), grey.shape[1]]
        for left, right in itertools.pairwise(bounds):
            if not 60 <= right - left <= 0.95 * grey.shape[1]:
                continue
            key = (round(left / 4), round(right / 4), int(grey[row, left]) // 3)
            if key in bands and row - bands[key][1] > 2:
                end_band(key)
            bands[key] = (bands.get(key, (row, row))[0], row)
    for key in list(bands):
        end_band(key)
    return sorted(found, key=lambda box: (box.top, box.left))


def _shapes(image: "Image", zone: Box, contrast: int) -> list[Box]:
    """Patches in the zone that stand out from its ground, boxes in pixels of the screenshot."""
    import numpy as np

    crop = np.asarray(image.crop(zone).convert("RGB"), dtype=np.int16)
    ground = np.median(crop.reshape(-1, 3), axis=0)
    mask = np.abs(crop - ground).max(axis=2) > contrast
    return [box.moved(zone.left, zone.top) for box in blobs(mask)]


def _colour_share(image: "Image", box: Box) -> float:
    """The share of strongly coloured pixels, 0 to 1."""
    import numpy as np

    crop = np.asarray(image.crop(box).convert("HSV"))
    return float(((crop[:, :, 1] > 90) & (crop[:, :, 2] > 70)).mean()) if crop.size else 0.0


def _clip(box: Box, image: "Image") -> Box | None:
    clipped = Box(max(0, box.left), max(0, box.top), min(image.width, box.right), min(image.height, box.bottom))
    return clipped if clipped.width >= 8 and clipped.height >= 8 else None
