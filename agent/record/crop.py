"""The part of a screenshot around an action's target, with the target marked: what a dry run shows of a click."""

import io

from agent.core.actions import Action, points_of
from agent.core.geometry import DesktopPoint, Viewport
from agent.screen.encode import EncodedImage, encode
from agent.screen.target import crop_around, mark, places_of

#: Pixels of the sent image around the target: enough to recognise a button and its neighbours.
_WIDTH, _HEIGHT = 360, 240


def target_crop(image: EncodedImage, viewport: Viewport, target: Action[DesktopPoint]) -> bytes | None:
    """A PNG of the surroundings of an action's last point, its points marked; None for actions without points."""
    if not points_of(target):
        return None
    from PIL import Image

    shown = Image.open(io.BytesIO(image.data)).convert("RGB")
    places = places_of(target, viewport, shown)
    mark(shown, places, radius=10, width=2)
    part, _ = crop_around(shown, places[-1], _WIDTH, _HEIGHT)
    return encode(part, "png").data
