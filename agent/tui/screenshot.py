"""Screenshots for a terminal: the part that an action is about, and where in it the action goes."""

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.geometry import Region, Viewport
from agent.screen.target import Place, crop_around, mark, places_of
from agent.tui.view import Row

if TYPE_CHECKING:
    from PIL.Image import Image

#: Pixels of the screenshot across a crop where the terminal draws pixels: a button is recognised among its neighbours.
SHARP = 640
#: Pixels across the picture that is handed on; a terminal shows no more.
_MOST_WIDTH = 1600
#: How much is shown around the window that has the focus, in pixels of the screenshot.
_AROUND = 12
#: A drag is shown from its start to its end: so much of its extent.
_SPREAD = 1.25
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


def picture(row: Row, aspect: float, whole: bool, across: int = SHARP) -> Shot | None:
    """The screenshot of a row; None where there is none.

    Whole; or so many pixels around the target, of the aspect (width over height) of its place; or, for an action
    without one, the window that it goes to, where that is known.
    """
    from PIL import Image

    try:
        shown = Image.open(row.image if row.image is not None else io.BytesIO(row.data or b"")).convert("RGB")
    except (OSError, ValueError):
        return None
    places = [] if row.target is None or row.viewport is None else places_of(row.target, row.viewport, shown)
    box = None
    if not whole and not places and row.about is not None and row.viewport is not None:
        box = _box(row.about, row.viewport, shown)
        shown = shown if box is None else shown.crop(box)
    elif not whole and places:
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


def _box(about: Region, viewport: Viewport, shown: "Image") -> tuple[int, int, int, int] | None:
    """A region of the desktop in pixels of the screenshot, with a little around it; None where it is not on it."""
    region, across, down = viewport.region, shown.width / viewport.region.width, shown.height / viewport.region.height
    left = max(0, round((about.left - region.left) * across) - _AROUND)
    top = max(0, round((about.top - region.top) * down) - _AROUND)
    right = min(shown.width, round((about.left + about.width - region.left) * across) + _AROUND)
    bottom = min(shown.height, round((about.top + about.height - region.top) * down) + _AROUND)
    return (left, top, right, bottom) if right - left > _AROUND and bottom - top > _AROUND else None
