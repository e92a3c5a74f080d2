"""Shows on a screenshot what an action points at: marks on its targets, and the part of the picture around them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from agent.core.actions import Action, points_of
from agent.core.geometry import DesktopPoint, Viewport

if TYPE_CHECKING:
    from PIL.Image import Image

#: In pixels of the picture, from its left upper corner.
Place: TypeAlias = tuple[float, float]
_COLOUR = (255, 0, 80)


def places_of(action: Action[DesktopPoint], viewport: Viewport, image: "Image") -> list[Place]:
    """The points of an action in pixels of the sent image; x and y have separate factors."""
    captured = [viewport.desktop_to_capture(point) for point in points_of(action)]
    size = viewport.captured
    return [(point.x * image.width / size.width, point.y * image.height / size.height) for point in captured]


def mark(image: "Image", places: Sequence[Place], radius: int, width: int) -> None:
    """Draw a ring around every place, and a line between several."""
    from PIL import ImageDraw

    pen = ImageDraw.Draw(image)
    if len(places) > 1:
        pen.line([*places], fill=_COLOUR, width=width)
    for x, y in places:
        for reach, colour, wide in ((radius + 1, "white", width + 2), (radius, _COLOUR, width)):
            pen.ellipse((x - reach, y - reach, x + reach, y + reach), outline=colour, width=wide)


def crop_around(image: "Image", place: Place, width: int, height: int) -> tuple["Image", tuple[int, int]]:
    """The part of so many pixels around a place, moved inside the image where it would not lie in it whole.

    Also where its left upper corner is in the image.
    """
    width, height = min(width, image.width), min(height, image.height)
    left = round(min(max(0.0, place[0] - width / 2), image.width - width))
    top = round(min(max(0.0, place[1] - height / 2), image.height - height))
    return image.crop((left, top, left + width, top + height)), (left, top)
