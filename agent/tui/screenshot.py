"""Screenshots for a terminal: a crop around the action, its target marked, for whichever way of drawing there is."""

import io
from typing import TYPE_CHECKING

from agent.screen.target import crop_around, mark, places_of
from agent.tui.view import Row

if TYPE_CHECKING:
    from PIL.Image import Image

#: Pixels of the screenshot across a crop, where the terminal draws pixels and where it draws half blocks: a button is
#: still recognised among its neighbours.
SHARP, COARSE = 640, 280
#: Pixels across the picture that is handed on; a terminal shows no more.
_MOST_WIDTH = 1600


def picture(row: Row, aspect: float, whole: bool, across: int = COARSE) -> "Image | None":
    """The screenshot of a row, its target marked; None where there is none.

    Whole, or a crop around the target, so many pixels across and of the aspect (width over height) of its place.
    """
    from PIL import Image

    try:
        shown = Image.open(row.image if row.image is not None else io.BytesIO(row.data or b"")).convert("RGB")
    except (OSError, ValueError):
        return None
    places = [] if row.target is None or row.viewport is None else places_of(row.target, row.viewport, shown)
    if whole or not places:
        mark(shown, places, max(8, shown.width // 60), width=3)
        shown.thumbnail((_MOST_WIDTH, _MOST_WIDTH))
        return shown
    width = min(shown.width, across)
    mark(shown, places, radius=12, width=3)
    return crop_around(shown, places[-1], width, max(60, round(width / max(0.2, aspect))))
