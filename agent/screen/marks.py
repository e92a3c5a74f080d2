"""Numbered boxes on a screenshot: the elements of its outline, as a person or a model may point at them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agent.core.geometry import Viewport
from agent.screen.outline import Element

if TYPE_CHECKING:
    from PIL.Image import Image

#: Colours that differ in hue and lightness, so that neighbours are told apart also by who sees few colours.
_COLOURS = ((214, 39, 40), (31, 119, 180), (44, 130, 44), (148, 80, 189), (180, 95, 6), (0, 120, 130))
#: What is not trusted is drawn in grey.
_DOUBTFUL = (120, 120, 120)
_TEXT_SIZE = 12
_HIDDEN = "offscreen"
#: Boxes lower than this many times the size of the numbers hold a line of text and nothing else.
_LOW = 1.8


def draw_marks(image: "Image", elements: Iterable[Element], viewport: Viewport) -> "Image":
    """A copy of a captured monitor with a box and a number for every element that is on it."""
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
        # In a low box, the number would hide the word that is read there: it stands before it.
        start = left - wide - 1 if bottom - top < _LOW * size else left
        at = (min(max(start, 0), image.width - wide), max(top - 1, 0))
        pen.rectangle(pen.textbbox(at, number, font=font), fill=colour)
        pen.text(at, number, fill="white", font=font)
    return marked
