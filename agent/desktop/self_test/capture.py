"""Checks that captures show the test window: its place, size and colours, and that they are not outdated.

Its colours change on request. Pixels that change from one colour to the other can only be our window, whatever the
rest of the screen shows, and an outdated capture cannot pass.
"""

import colorsys
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from agent.core.geometry import DesktopPoint, Region
from agent.desktop.protocol.desktop import Desktop, Finding
from agent.desktop.self_test.window import TIMEOUT, SelfTestWindow
from agent.safety.stop import StopSwitch
from agent.screen.capture import Frame

if TYPE_CHECKING:
    from PIL.Image import Image

Colour: TypeAlias = tuple[int, int, int]
#: Tolerance per colour channel, because video streams do not reproduce colours exactly.
_TOLERANCE = 40
#: Pixels of the window that a row or column must have to belong to the box.
_LEAST = 8


@dataclass(frozen=True, slots=True)
class Found:
    """Where the window was found, in pixels of the capture."""

    box: Region
    right: float  # the share of the box that changed as it should
    off: int  # the largest difference of these pixels, per channel


class Pattern:
    """The two colours of a window, from a seed; a turned window shows the second one."""

    def __init__(self, number: int) -> None:
        hue = random.Random(number).random()  # noqa: S311 -- not a secret
        self.colours = _colour(hue, 0.9), _colour(hue + 0.5, 0.6)

    def find(self, before: "Image", after: "Image") -> Found | None:
        """Find the window in two captures, the second one turned; None if it is not in both."""
        import numpy as np

        if before.size != after.size:
            return None
        off = np.maximum(*(_off(image, colour) for image, colour in zip((before, after), self.colours, strict=True)))
        hit = off <= _TOLERANCE
        rows, columns = ((hit.sum(axis) >= _LEAST).nonzero()[0] for axis in (1, 0))
        if not len(rows) or not len(columns):
            return None
        left, top = int(columns[0]), int(rows[0])
        box = Region(left, top, int(columns[-1]) - left + 1, int(rows[-1]) - top + 1)
        inside = hit[box.top : box.bottom, box.left : box.right]
        return Found(box, float(inside.mean()), int(off[hit].max()))

    def pixels(self, image: "Image") -> int:
        """Return how many pixels of a picture have the first colour."""
        return int((_off(image, self.colours[False]) <= _TOLERANCE).sum())


def _off(image: "Image", colour: Colour) -> Any:
    """Return how far each pixel is from a colour, in the channel where it is farthest."""
    import numpy as np

    return abs(np.asarray(image, dtype=np.int16) - np.array(colour, dtype=np.int16)).max(axis=2)


def _colour(hue: float, value: float) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, 1.0, value)
    return round(red * 255), round(green * 255), round(blue * 255)


#: Tolerance for the length of each side, in the window's units.
_SIDE = 3.0
_POLL = 0.1
#: Pixels of a colour that cannot be there by chance.
_MUCH = 2000
#: The share of the window that must be seen: some desktops round its corners.
_WHOLE = 0.98
#: Colour values up to this look black to a person.
_BLACK = 8
_UNSEEN = (
    "Is the screen locked or asleep, is another window on top, was another monitor chosen (--monitor, or the dialog), "
    "or is this X11's capture of a Wayland session (--desktop)?"
)


def look_for(
    window: SelfTestWindow, pattern: Pattern, desktop: Desktop, stop: StopSwitch
) -> tuple[Finding, DesktopPoint | None]:
    """Find the window in a capture, swap its colours, and find it again. Return the finding and its top left corner.

    Raises EnvironmentLacksError: the screen cannot be captured. StoppedError: the stop switch was set.
    """
    screen = desktop.screen
    deadline = time.monotonic() + TIMEOUT
    before, shown, earlier = screen.grab(), 0, -1
    while not (shown >= _MUCH and shown == earlier) and time.monotonic() < deadline:  # it may still be growing
        stop.sleep(_POLL)
        before = screen.grab()
        shown, earlier = pattern.pixels(before.image), shown
    window.forget()
    window.ask("turn")
    window.wait("turned")
    after = before
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        after = screen.grab()
        found = pattern.find(before.image, after.image)
        if found is not None and found.right >= _WHOLE:
            return _placed(window, found, after)
        stop.sleep(_POLL)
    empty = what_is_empty(after.image)
    detail = f"the capture is empty: {empty}" if empty else "the capture does not show our whole window and its change"
    return Finding("capture", ok=False, detail=f"{detail}, though the window is on the screen", remedy=_UNSEEN), None


def _placed(window: SelfTestWindow, found: Found, frame: Frame) -> tuple[Finding, DesktopPoint | None]:
    """Check the size of the found pattern. Return the finding and the window's top left corner."""
    scale_x, scale_y = frame.viewport.scale
    region, (wide, high) = frame.viewport.region, window.size
    seen_wide, seen_high = found.box.width / scale_x, found.box.height / scale_y
    origin = DesktopPoint(region.left + found.box.left / scale_x, region.top + found.box.top / scale_y)
    place = f"{origin.x:g},{origin.y:g}"
    if max(abs(seen_wide - wide), abs(seen_high - high)) > _SIDE:
        detail = f"our window of {wide}x{high} appears as {seen_wide:g}x{seen_high:g} at {place}"
        remedy = "Set the scale of this monitor to 100 %, and close what is on top of the window."
        return Finding("capture", ok=False, detail=detail, remedy=remedy), None
    detail = (
        f"our window of {wide}x{high} is seen at {place}, at scale {scale_x:g}, and is seen to change; colours are off "
        f"by {found.off} of 255"
    )
    return Finding("capture", ok=True, detail=detail), origin


def what_is_empty(image: "Image") -> str:
    """Describe a picture that has only one colour; "" for any other."""
    extremes: Any = image.getextrema()  # of red, green and blue
    if any(least != most for least, most in extremes):
        return ""
    colour = [least for least, _ in extremes]
    return f"every pixel is {'black' if max(colour) <= _BLACK else 'of the colour {},{},{}'.format(*colour)}"
