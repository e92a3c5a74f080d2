"""Draws on screenshots: an action's targets, numbered elements, and crops around a target."""

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from agent.core.actions import Action, points_of
from agent.core.geometry import DesktopPoint, Viewport
from agent.screen.encode import EncodedImage, encode
from agent.screen.outline import Element

if TYPE_CHECKING:
    from PIL.Image import Image

    from agent.screen.ocr import Box


#: In pixels of the image, from its top left.
Place: TypeAlias = tuple[float, float]
_COLOUR = (255, 0, 80)


def places_of(action: Action[DesktopPoint], viewport: Viewport, image: "Image") -> list[Place]:
    """Return the action's points in pixels of the sent image; x and y have separate factors."""
    captured = [viewport.desktop_to_capture(point) for point in points_of(action)]
    size = viewport.captured
    return [(point.x * image.width / size.width, point.y * image.height / size.height) for point in captured]


def mark(image: "Image", places: Sequence[Place], radius: int, width: int) -> None:
    """Draw a ring around every place, and lines between them."""
    from PIL import ImageDraw

    pen = ImageDraw.Draw(image)
    if len(places) > 1:
        pen.line([*places], fill=_COLOUR, width=width)
    for x, y in places:
        for reach, colour, wide in ((radius + 1, "white", width + 2), (radius, _COLOUR, width)):
            pen.ellipse((x - reach, y - reach, x + reach, y + reach), outline=colour, width=wide)


def frame(image: "Image", box: "Box", width: int) -> None:
    """Draw a frame around a box."""
    from PIL import ImageDraw

    pen = ImageDraw.Draw(image)
    for reach, colour, wide in ((width + 1, "white", width + 2), (width, _COLOUR, width)):
        pen.rectangle((box.left - reach, box.top - reach, box.right + reach, box.bottom + reach), None, colour, wide)


def crop_around(image: "Image", place: Place, width: int, height: int) -> tuple["Image", tuple[int, int]]:
    """Crop the image around a place, but inside the image. Return the crop and its top left corner."""
    width, height = min(width, image.width), min(height, image.height)
    left = round(min(max(0.0, place[0] - width / 2), image.width - width))
    top = round(min(max(0.0, place[1] - height / 2), image.height - height))
    return image.crop((left, top, left + width, top + height)), (left, top)


#: Colours that differ in hue and lightness, so that colour-blind users can tell neighbours apart too.
_COLOURS = ((214, 39, 40), (31, 119, 180), (44, 130, 44), (148, 80, 189), (180, 95, 6), (0, 120, 130))
#: Colour for elements that are not trusted.
_DOUBTFUL = (120, 120, 120)
_TEXT_SIZE = 12
_HIDDEN = "offscreen"
#: Boxes lower than this multiple of the number's size contain just one line of text.
_LOW = 1.8


def draw_marks(image: "Image", elements: Iterable[Element], viewport: Viewport) -> "Image":
    """Return a copy of a captured monitor with a box and a number for every element on it."""
    from PIL import ImageDraw, ImageFont

    marked = image.convert("RGB")
    pen = ImageDraw.Draw(marked)
    scale_x, scale_y = viewport.scale
    size = _TEXT_SIZE * max(1.0, scale_x)
    font = ImageFont.load_default(size=size)
    for element in elements:
        if _HIDDEN in element.states:
            continue
        left = (element.box.left - viewport.region.left) * scale_x
        top = (element.box.top - viewport.region.top) * scale_y
        right, bottom = left + element.box.width * scale_x - 1, top + element.box.height * scale_y - 1
        if right <= left or bottom <= top or right < 0 or bottom < 0 or left >= image.width or top >= image.height:
            continue
        colour = _COLOURS[element.id % len(_COLOURS)] if element.trusted else _DOUBTFUL
        pen.rectangle((left, top, right, bottom), outline=colour, width=max(1, round(scale_x)))
        number = str(element.id)
        wide = pen.textlength(number, font=font)
        # In a low box, the number would hide the text, so it goes to the left of the box.
        start = left - wide - 1 if bottom - top < _LOW * size else left
        at = (min(max(start, 0), image.width - wide), max(top - 1, 0))
        pen.rectangle(pen.textbbox(at, number, font=font), fill=colour)
        pen.text(at, number, fill="white", font=font)
    return marked


#: Size of the crop around the target, in pixels of the sent image: enough to recognize a button and its neighbours.
_WIDTH, _HEIGHT = 360, 240


def target_crop(image: EncodedImage, viewport: Viewport, target: Action[DesktopPoint]) -> bytes | None:
    """Return a PNG of the area around an action's last point, with its points marked; None without points."""
    if not points_of(target):
        return None
    from PIL import Image

    shown = Image.open(io.BytesIO(image.data)).convert("RGB")
    places = places_of(target, viewport, shown)
    mark(shown, places, radius=10, width=2)
    part, _ = crop_around(shown, places[-1], _WIDTH, _HEIGHT)
    return encode(part, "png").data
