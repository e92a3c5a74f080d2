"""The part of a screenshot that an action is about, and where in it the action goes."""

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.core.geometry import Region, Viewport
from agent.screen.drawing import Place, crop_around, mark, places_of
from agent.screen.ocr import Box
from agent.tui.view import Row

if TYPE_CHECKING:
    from PIL.Image import Image

#: Pixels of the screenshot across a crop where the terminal draws pixels: a button is recognised among its neighbours.
SHARP = 640
#: Pixels across the picture that is handed on; a terminal shows no more.
_MOST_WIDTH = 1600
#: Pixels of the screenshot shown around the active window: its shadow, and above it the title bar, which is not part of
#: the window if the window manager draws it.
_AROUND, _TITLE = 12, 36
#: A drag is shown from its start to its end, with this factor of room.
_SPREAD = 1.25
#: The ring around a target: its radius in pixels at least, and as a share of the picture's width.
_RADIUS, _RADIUS_SHARE = 10, 1 / 34


@dataclass(frozen=True)
class Shot:
    """A part of a screenshot, and where in it an action points; both in its own pixels."""

    image: "Image"
    places: tuple[Place, ...] = ()
    whole: bool = False  # whether it is the whole screen

    def marked(self) -> "Image":
        shown = self.image.copy()
        mark(shown, self.places, max(_RADIUS, round(shown.width * _RADIUS_SHARE)), width=3)
        return shown


def picture(row: Row, aspect: float, whole: bool, across: int = SHARP) -> Shot | None:
    """The screenshot of a row: the whole, or `across` pixels around the target; None if the row has none.

    The crop gets the given aspect (width over height). An action without a target is shown in its window, if known.
    """
    from PIL import Image

    try:
        shown = Image.open(row.image if row.image is not None else io.BytesIO(row.data or b"")).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    viewport = row.viewport
    places = [] if row.target is None or viewport is None else places_of(row.target, viewport, shown)
    if not places and row.spot is not None and viewport is not None:
        field = _box(row.spot, viewport, shown)
        places = [] if field is None else [field.center]
    if not whole and places:
        (left, top), (right, bottom) = map(min, zip(*places, strict=True)), map(max, zip(*places, strict=True))
        aspect = max(0.2, aspect)
        width = max(across, (right - left) * _SPREAD, (bottom - top) * _SPREAD * aspect)
        middle = ((left + right) / 2, (top + bottom) / 2)
        part, corner = crop_around(shown, middle, round(width), max(60, round(width / aspect)))
        return Shot(part, tuple((x - corner[0], y - corner[1]) for x, y in places))
    window = None
    if not whole and row.about is not None and viewport is not None:
        window = _box(row.about, viewport, shown, _AROUND, _TITLE)
    if window is not None:
        shown = shown.crop(window)
    factor = min(1.0, _MOST_WIDTH / shown.width)
    if factor < 1:
        shown = shown.resize((_MOST_WIDTH, round(shown.height * factor)), reducing_gap=2.0)
    return Shot(shown, tuple((x * factor, y * factor) for x, y in places), window is None)


def _box(about: Region, viewport: Viewport, shown: "Image", around: int = 0, above: int = 0) -> Box | None:
    """A region of the desktop in pixels of the screenshot, with a margin; None if it is outside."""
    region, across, down = viewport.region, shown.width / viewport.region.width, shown.height / viewport.region.height
    left = max(0, round((about.left - region.left) * across) - around)
    top = max(0, round((about.top - region.top) * down) - max(around, above))
    right = min(shown.width, round((about.left + about.width - region.left) * across) + around)
    bottom = min(shown.height, round((about.top + about.height - region.top) * down) + around)
    return Box(left, top, right, bottom) if right - left > around and bottom - top > around else None
