"""The part of a screenshot that an action is about, and where in it the action goes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.core.geometry import Region, Viewport
from agent.screen.drawing import Place, crop_around, frame, mark, places_of
from agent.screen.ocr import Box
from agent.tui.view import Row

if TYPE_CHECKING:
    from PIL.Image import Image

#: Width of a crop in pixels of the screenshot if the terminal draws pixels: a button is recognised by its neighbours.
SHARP = 640
#: Greatest width of the returned picture, in pixels; a terminal shows no more.
_MOST_WIDTH = 1600
#: Pixels of the screenshot shown around the active window: its shadow, and above it the title bar, which is not part of
#: the window if the window manager draws it.
_AROUND, _TITLE = 12, 36
#: A drag is shown from its start to its end, in a crop that is larger by this factor.
_SPREAD = 1.25
#: A window that is wider than this many crops is shown at its title only.
_WIDEST = 2.4
#: Pixels of a field's border, of its scroll bar, and of a line's height; and how far ink differs from the background.
_EDGE, _SCROLL_BAR, _LINE, _INK = 4, 24, 24, 48
#: The ring around a target: its radius in pixels at least, and as a share of the picture's width.
_RADIUS, _RADIUS_SHARE = 10, 1 / 34


@dataclass(frozen=True)
class Shot:
    """A part of a screenshot, and the points or the field that an action goes to, in pixels of this part."""

    image: "Image"
    places: tuple[Place, ...] = ()
    field: Box | None = None
    whole: bool = False  # whether it is the whole screen

    def marked(self) -> "Image":
        shown = self.image.copy()
        mark(shown, self.places, max(_RADIUS, round(shown.width * _RADIUS_SHARE)), width=3)
        if self.field is not None:
            frame(shown, self.field, width=3)
        return shown


def picture(row: Row, aspect: float, whole: bool, across: int = SHARP) -> Shot | None:
    """The screenshot of a row: the whole, or `across` pixels around the target; None if the row has none.

    The crop gets the given aspect (width over height). An action without a point is shown at the field that gets it and
    at its window's title, as far as both are known.
    """
    from PIL import Image

    if row.image is None:
        return None
    try:
        shown = Image.open(row.image).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    viewport = row.viewport
    places = [] if row.target is None or viewport is None else places_of(row.target, viewport, shown)
    field = None if places or row.spot is None or viewport is None else _box(row.spot, viewport, shown)
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
    area = window if field is None else _around_field(shown, field, window, max(0.2, aspect), across)
    if area is not None and area.width > _WIDEST * across:  # its title, where letters keep their shape
        wide = round(_WIDEST * across)
        area = Box(area.left, area.top, area.left + wide, min(area.bottom, area.top + round(wide / max(0.2, aspect))))
    if not whole and area is not None:
        shown, field = shown.crop(area), None if field is None else _moved(field, area)
        window = area
    factor = min(1.0, _MOST_WIDTH / shown.width)
    if factor < 1:
        shown = shown.resize((_MOST_WIDTH, round(shown.height * factor)), reducing_gap=2.0)
    if field is not None:
        field = Box(*(round(edge * factor) for edge in field))
    return Shot(shown, tuple((x * factor, y * factor) for x, y in places), field, window is None)


def _around_field(shown: "Image", field: Box, window: Box | None, aspect: float, across: int) -> Box:
    """Return the part around a field, with as much of its window as fits, from the title on.

    If the field is too large, the part shows the end of its text, because the caret is probably there.
    """
    width, height = min(across, shown.width), min(max(60, round(across / aspect)), shown.height)
    first, end = window or field, field if field.height <= height else _written(shown, field)
    left = _start(first.left, end.left - _AROUND, end.right + _AROUND, width)
    top = _start(first.top, end.top - _AROUND, end.bottom + _AROUND, height)
    left, top = max(0, min(left, shown.width - width)), max(0, min(top, shown.height - height))
    return Box(left, top, left + width, top + height)


def _start(first: int, low: int, high: int, size: int) -> int:
    """Return the start of a range of `size` that contains `low` to `high`: `first` if the range then reaches `high`."""
    return first if high - first <= size else min(low, high - size)


def _written(shown: "Image", field: Box) -> Box:
    """Return the last line of text in a field, found by the lowest pixels that differ from the field's background."""
    from PIL import Image, ImageChops

    inner = Box(field.left + _EDGE, field.top + _EDGE, field.right - _SCROLL_BAR, field.bottom - _EDGE)
    if inner.width <= 0 or inner.height <= 0:
        return field
    grey = shown.crop(inner).convert("L")
    ground = max(range(256), key=grey.histogram().__getitem__)
    ink = ImageChops.difference(grey, Image.new("L", grey.size, ground)).point(lambda value: 255 * (value > _INK))
    _, _, _, last = ink.getbbox() or (0, 0, 0, 0)
    bottom = inner.top + max(last, _LINE)
    return Box(field.left, bottom - _LINE, field.right, min(field.bottom, bottom + _LINE))


def _moved(box: Box, area: Box) -> Box:
    """A box in an area of the screenshot, cut to it."""
    return Box(
        max(0, box.left - area.left), max(0, box.top - area.top),
        min(area.width, box.right - area.left), min(area.height, box.bottom - area.top),
    )  # fmt: skip


def _box(about: Region, viewport: Viewport, shown: "Image", around: int = 0, above: int = 0) -> Box | None:
    """A region of the desktop in pixels of the screenshot, with a margin; None if it is outside."""
    region, across, down = viewport.region, shown.width / viewport.region.width, shown.height / viewport.region.height
    left = max(0, round((about.left - region.left) * across) - around)
    top = max(0, round((about.top - region.top) * down) - max(around, above))
    right = min(shown.width, round((about.left + about.width - region.left) * across) + around)
    bottom = min(shown.height, round((about.top + about.height - region.top) * down) + around)
    return Box(left, top, right, bottom) if right - left > around and bottom - top > around else None
