"""The pattern in the test window, which is drawn in two ways and found in two captures.

Pixels that change from one of its colours to the other can only be our window, whatever the rest of the screen shows.
An outdated capture cannot pass.
"""

import colorsys
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from agent.core.geometry import Region, Size

if TYPE_CHECKING:
    from PIL.Image import Image

Colour: TypeAlias = tuple[int, int, int]
#: Cells across and down. Those at the edge all have the same colour, so that the whole box is found.
ACROSS, DOWN = 10, 8
#: Tolerance per colour channel, because video streams do not reproduce colours exactly.
_TOLERANCE = 40
#: Pixels of the pattern that a row or column must have to belong to the box.
_LEAST = 8
#: Pixels of a colour that cannot be there by chance.
_MUCH = 2000


@dataclass(frozen=True, slots=True)
class Found:
    """Where the pattern was found, in pixels of the capture."""

    box: Region
    right: float  # the share of cells with the right colour in both captures
    off: int  # the largest difference of a cell's colour, per channel


class Pattern:
    """A grid of cells in two colours, generated from a seed."""

    def __init__(self, number: int) -> None:
        chance = random.Random(number)  # noqa: S311 -- not a secret
        hue = chance.random()
        self.colours = _colour(hue, 0.9), _colour(hue + 0.5, 0.6)
        self._cells = [[int(_is_edge(x, y) or chance.random() < 0.5) for x in range(ACROSS)] for y in range(DOWN)]

    def cells(self, size: Size, *, turned: bool) -> list[tuple[Region, Colour]]:
        """Return the cells to draw in a window of this size. With `turned`, each cell has the other colour."""
        found = []
        for y, row in enumerate(self._cells):
            for x, cell in enumerate(row):
                left, top = x * size.width // ACROSS, y * size.height // DOWN
                right, bottom = (x + 1) * size.width // ACROSS, (y + 1) * size.height // DOWN
                found.append((Region(left, top, right - left, bottom - top), self.colours[cell ^ turned]))
        return found

    def find(self, before: "Image", after: "Image") -> Found | None:
        """Find the pattern in two captures, the second with the colours swapped; None if it is not in both."""
        import numpy as np

        if before.size != after.size:
            return None
        first, second = (np.asarray(image, dtype=np.int16) for image in (before, after))
        one, other = (np.array(colour, dtype=np.int16) for colour in self.colours)
        hit = (_near(first, one) & _near(second, other)) | (_near(first, other) & _near(second, one))
        rows, columns = ((hit.sum(axis) >= _LEAST).nonzero()[0] for axis in (1, 0))
        if not len(rows) or not len(columns):
            return None
        left, top = int(columns[0]), int(rows[0])
        box = Region(left, top, int(columns[-1]) - left + 1, int(rows[-1]) - top + 1)
        return self._checked(box, first, second)

    def is_on(self, image: "Image") -> bool:
        """Whether a picture has many pixels of both colours."""
        import numpy as np

        picture = np.asarray(image, dtype=np.int16)
        return all(_near(picture, np.array(colour, dtype=np.int16)).sum() >= _MUCH for colour in self.colours)

    def _checked(self, box: Region, first: Any, second: Any) -> Found:
        """Compare the middle of each cell with the colour that was drawn."""
        right, worst, cells = 0, 0, 0
        for picture, turned in ((first, False), (second, True)):
            for cell, colour in self.cells(box.size, turned=turned):
                seen = picture[box.top + cell.top + cell.height // 2, box.left + cell.left + cell.width // 2]
                off = int(abs(seen - colour).max())
                cells += 1
                right += off <= _TOLERANCE
                worst = max(worst, off)
        return Found(box, right / cells, worst)


def is_empty(image: "Image") -> Colour | None:
    """Return the colour of a picture that has only one colour; None for any other picture."""
    extremes: Any = image.getextrema()  # of red, green and blue
    (red, red_most), (green, green_most), (blue, blue_most) = extremes
    return (red, green, blue) if (red, green, blue) == (red_most, green_most, blue_most) else None


def _near(picture: Any, colour: Any) -> Any:
    return (abs(picture - colour) <= _TOLERANCE).all(axis=2)


def _colour(hue: float, value: float) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, 1.0, value)
    return round(red * 255), round(green * 255), round(blue * 255)


def _is_edge(x: int, y: int) -> bool:
    return x in (0, ACROSS - 1) or y in (0, DOWN - 1)
