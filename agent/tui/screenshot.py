"""Screenshots for a terminal: the part that an action is about, and where in it the action goes."""

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.core.geometry import Region, Viewport
from agent.screen.ink import CELL, ink_of, patches
from agent.screen.ocr import Box
from agent.screen.target import Place, crop_around, mark, places_of
from agent.tui.view import Row

if TYPE_CHECKING:
    from PIL.Image import Image

#: Pixels of the screenshot across a crop where the terminal draws pixels: a button is recognised among its neighbours.
SHARP = 640
#: Pixels across the picture that is handed on; a terminal shows no more.
_MOST_WIDTH = 1600
#: How much is shown around the window that has the focus, in pixels of the screenshot: its shadow, and above it the
#: title bar, which is no part of the window where the window manager draws it.
_AROUND, _TITLE = 12, 36
#: A drag is shown from its start to its end: so much of its extent.
_SPREAD = 1.25
#: What is written this near to each other belongs together (cells of ink across, and down); what is lower is a panel.
_GAP, _PANEL = (8, 12), 60
#: How much is shown around it, and which share of the screen it may be, so that it is worth showing alone.
_MARGIN, _LEAST_SHARE, _MOST_SHARE = 28, 0.04, 0.6
#: Of a window, characters show this much more across than of the surroundings of a point, and words still fit in.
_READABLE = 1.35
#: The ring around a target: its radius at the least, and as a share of the picture's width.
_RADIUS, _RADIUS_SHARE = 10, 1 / 34


@dataclass(frozen=True)
class Shot:
    """A part of a screenshot, and where in it an action points; both in its own pixels."""

    image: "Image"
    places: tuple[Place, ...] = ()
    whole: bool = False  # whether it is the whole screen

    def marked(self) -> "Image":
        """A copy with rings around the places."""
        shown = self.image.copy()
        radius = max(_RADIUS, round(shown.width * _RADIUS_SHARE))
        mark(shown, self.places, radius, width=3)
        return shown


def picture(row: Row, aspect: float, whole: bool, across: int = SHARP, coarse: bool = False) -> Shot | None:
    """The screenshot of a row; None where there is none.

    Whole; or so many pixels around the target, of the aspect (width over height) of its place; or, for an action
    without one, the window that it goes to, where that is known. Where it is not, a picture that is drawn too coarsely
    for a whole screen shows the part of it where the most is written.
    """
    from PIL import Image

    try:
        shown = Image.open(row.image if row.image is not None else io.BytesIO(row.data or b"")).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    places = [] if row.target is None or row.viewport is None else places_of(row.target, row.viewport, shown)
    if not places and row.spot is not None and row.viewport is not None:
        field = _box(row.spot, row.viewport, shown)
        places = [] if field is None else [field.center]
    box: Box | None = None
    if not whole and not places and row.about is not None and row.viewport is not None:
        box = _box(row.about, row.viewport, shown, _AROUND, _TITLE)
        if box is not None and coarse:
            box = _readable(shown, box, aspect, across)
    elif not whole and not places and coarse:
        box = _busiest(shown)
    if box is not None:
        shown = shown.crop(box)
    if not whole and places:
        (left, top), (right, bottom) = map(min, zip(*places, strict=True)), map(max, zip(*places, strict=True))
        aspect = max(0.2, aspect)
        width = max(across, (right - left) * _SPREAD, (bottom - top) * _SPREAD * aspect)
        middle = ((left + right) / 2, (top + bottom) / 2)
        part, corner = crop_around(shown, middle, round(width), max(60, round(width / aspect)))
        return Shot(part, tuple((x - corner[0], y - corner[1]) for x, y in places))
    factor = min(1.0, _MOST_WIDTH / shown.width)
    if factor < 1:
        shown = shown.resize((_MOST_WIDTH, round(shown.height * factor)), reducing_gap=2.0)
    return Shot(shown, tuple((x * factor, y * factor) for x, y in places), box is None)


def _readable(shown: "Image", box: Box, aspect: float, across: int) -> Box:
    """The part of a window that is too large to be read where it is shown, in which the most is written."""
    most = across * _READABLE
    width = min(box.width, round(most))
    height = min(box.height, round(most / max(0.2, aspect)))
    if (width, height) == (box.width, box.height):
        return box
    left, top = _fullest(shown.crop(box), width, height)
    return Box(box.left + left, box.top + top, box.left + left + width, box.top + top + height)


def _fullest(image: "Image", width: int, height: int) -> tuple[int, int]:
    """Where a part of so many pixels holds the most ink; of several such places the topmost, then the leftmost."""
    import numpy as np

    ink = np.pad(ink_of(np.asarray(image.convert("L"))).astype(np.int64), ((1, 0), (1, 0)))
    sums = ink.cumsum(axis=0).cumsum(axis=1)
    down, along = (min(side // CELL, most - 1) for side, most in zip((height, width), sums.shape, strict=True))
    held = sums[down:, along:] - sums[:-down, along:] - sums[down:, :-along] + sums[:-down, :-along]
    top, left = divmod(int(held.argmax()), held.shape[1])
    return min(left * CELL, image.width - width), min(top * CELL, image.height - height)


def _box(about: Region, viewport: Viewport, shown: "Image", around: int = 0, above: int = 0) -> Box | None:
    """A region of the desktop in pixels of the screenshot, with so much around it; None where it is not on it."""
    region, across, down = viewport.region, shown.width / viewport.region.width, shown.height / viewport.region.height
    left = max(0, round((about.left - region.left) * across) - around)
    top = max(0, round((about.top - region.top) * down) - max(around, above))
    right = min(shown.width, round((about.left + about.width - region.left) * across) + around)
    bottom = min(shown.height, round((about.top + about.height - region.top) * down) + around)
    return Box(left, top, right, bottom) if right - left > around and bottom - top > around else None


def _busiest(shown: "Image") -> Box | None:
    """Where the most is written: a window, seldom panels or icons; None where that is nearly nothing, or all over."""
    import numpy as np

    ink = ink_of(np.asarray(shown.convert("L")))
    found = [box for box in patches(ink, *_GAP) if box.height * CELL >= _PANEL]
    busiest = max(found, key=lambda box: int(ink[box.top : box.bottom, box.left : box.right].sum()), default=None)
    if busiest is None:
        return None
    left, top = max(0, busiest.left * CELL - _MARGIN), max(0, busiest.top * CELL - _MARGIN)
    right = min(shown.width, busiest.right * CELL + _MARGIN)
    box = Box(left, top, right, min(shown.height, busiest.bottom * CELL + _MARGIN))
    share = box.width * box.height / (shown.width * shown.height)
    return box if _LEAST_SHARE <= share <= _MOST_SHARE else None
