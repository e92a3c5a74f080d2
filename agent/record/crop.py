"""The part of a screenshot around an action's target, with the target marked: what a dry run shows of a click."""

import io
from typing import Any

from agent.actions import Action, points_of
from agent.geometry import DesktopPoint, Viewport
from agent.screen.encode import EncodedImage, encode

#: Pixels of the sent image around the target: enough to recognise a button and its neighbours.
_WIDTH, _HEIGHT = 360, 240
_MARK = (255, 0, 80)


def target_crop(image: EncodedImage, viewport: Viewport, target: Action[DesktopPoint]) -> bytes | None:
    """A PNG of the surroundings of an action's last point, its points marked; None for actions without points.

    Args:
        image: the screenshot as the model saw it.
        viewport: how it lies on the desktop.
        target: the action in desktop units.
    """
    points = points_of(target)
    if not points:
        return None
    from PIL import Image, ImageDraw

    shown = Image.open(io.BytesIO(image.data)).convert("RGB")
    places = [_place(point, viewport, shown) for point in points]
    pen = ImageDraw.Draw(shown)
    if len(places) > 1:
        pen.line([*places], fill=_MARK, width=2)
    for x, y in places:
        pen.ellipse((x - 11, y - 11, x + 11, y + 11), outline="white", width=4)
        pen.ellipse((x - 10, y - 10, x + 10, y + 10), outline=_MARK, width=2)
    x, y = places[-1]
    left = round(min(max(0, x - _WIDTH / 2), max(0, shown.width - _WIDTH)))
    top = round(min(max(0, y - _HEIGHT / 2), max(0, shown.height - _HEIGHT)))
    area = (left, top, min(left + _WIDTH, shown.width), min(top + _HEIGHT, shown.height))
    return encode(shown.crop(area), "png").data


def _place(point: DesktopPoint, viewport: Viewport, shown: Any) -> tuple[float, float]:
    """A desktop point in pixels of the sent image; x and y have separate factors."""
    captured = viewport.desktop_to_capture(point)
    size = viewport.captured
    return captured.x * shown.width / size.width, captured.y * shown.height / size.height
