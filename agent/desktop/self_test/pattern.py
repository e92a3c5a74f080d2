"""The colours of the test window, which change on request, and how they are found in two captures.

Pixels that change from one colour to the other can only be our window, whatever the rest of the screen shows. An
outdated capture cannot pass.
"""

import colorsys
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from agent.core.geometry import Region

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
