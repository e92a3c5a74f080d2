"""Screenshots for a terminal: a crop around the action, its target marked, for whichever way of drawing there is."""

import io
from typing import TYPE_CHECKING

from agent.actions import points_of
from agent.geometry import DesktopPoint, Viewport
from agent.tui.view import Row

if TYPE_CHECKING:
    from PIL.Image import Image

_MARK = (255, 0, 80)
#: Pixels of the screenshot across a crop, where the terminal draws pixels and where it draws half blocks: a button is
#: still recognised among its neighbours.
SHARP, COARSE = 640, 280
#: Pixels across the picture that is handed on; a terminal shows no more.
_MOST_WIDTH = 1600


def picture(row: Row, aspect: float, whole: bool, across: int = COARSE) -> "Image | None":
    """The screenshot of a row, its target marked; None where there is none.

    Args:
        row: the step.
        aspect: width over height of the place it is shown in.
        whole: the whole screenshot instead of a crop around the target.
        across: pixels across a crop.
    """
    from PIL import Image

    try:
        shown = Image.open(row.image if row.image is not None else io.BytesIO(row.data or b"")).convert("RGB")
    except (OSError, ValueError):
        return None
    points = points_of(row.target) if row.target is not None else []
    places = [] if row.viewport is None else [_place(point, row.viewport, shown.size) for point in points]
    if whole or not places:
        _mark(shown, places, max(8, shown.width // 60))
        shown.thumbnail((_MOST_WIDTH, _MOST_WIDTH))
        return shown
    width = min(shown.width, across)
    height = min(shown.height, max(60, round(width / max(0.2, aspect))))
    x, y = places[-1]
    left = round(min(max(0.0, x - width / 2), shown.width - width))
    top = round(min(max(0.0, y - height / 2), shown.height - height))
    _mark(shown, places, 12)
    return shown.crop((left, top, left + width, top + height))


def _mark(shown: "Image", places: list[tuple[float, float]], radius: int) -> None:
    from PIL import ImageDraw

    pen = ImageDraw.Draw(shown)
    if len(places) > 1:
        pen.line(places, fill=_MARK, width=3)
    for x, y in places:
        pen.ellipse((x - radius - 1, y - radius - 1, x + radius + 1, y + radius + 1), outline="white", width=5)
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), outline=_MARK, width=3)


def _place(point: DesktopPoint, viewport: Viewport, size: tuple[int, int]) -> tuple[float, float]:
    """A desktop point in pixels of the sent image; x and y have separate factors."""
    captured = viewport.desktop_to_capture(point)
    return captured.x * size[0] / viewport.captured.width, captured.y * size[1] / viewport.captured.height
