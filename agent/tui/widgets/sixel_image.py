"""A picture drawn with sixels, line by line, so that whatever was written over a part of it comes off again."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.segment import ControlType, Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from agent.tui.pictures.sixel import Sixels

if TYPE_CHECKING:
    from PIL.Image import Image

#: What a cell measures where the terminal does not say: that of the first terminal with sixels (VT340).
_CELL = (10, 20)


def cell_size() -> tuple[int, int]:
    """Width and height of a cell of this terminal, in pixels."""
    try:
        import fcntl
        import struct
        import termios

        told = fcntl.ioctl(sys.__stdout__.fileno(), termios.TIOCGWINSZ, b"\0" * 8)  # type: ignore[union-attr]
        rows, columns, width, height = struct.unpack("HHHH", told)
    except (ImportError, OSError, ValueError, AttributeError):
        return _CELL
    return (width // columns, height // rows) if columns and rows and width >= columns and height >= rows else _CELL


class SixelStrip(Strip):
    """The columns from `left` to before `right` of one line of a picture.

    A strip is cut by the lengths of its texts, and a sixel's text is thousands of characters that take no cell: cut so,
    the picture is gone. This one is cut by the columns of the picture.
    """

    __slots__ = ("_left", "_right", "_row", "_sixels")

    def __init__(self, sixels: Sixels, row: int, left: int, right: int) -> None:
        control = ((ControlType.CURSOR_FORWARD, right - left),)
        drawing = f"{sixels.line(row, left, right)}\x1b[{right - left}C"
        super().__init__([Segment(drawing, None, control)], right - left)
        self._sixels, self._row, self._left, self._right = sixels, row, left, right

    def crop(self, start: int, end: int | None = None) -> Strip:
        """Some of its columns."""
        start, end = max(0, start), self.cell_length if end is None else min(self.cell_length, end)
        if (start, end) == (0, self.cell_length):
            return self
        if end <= start:
            return Strip([], 0)
        return SixelStrip(self._sixels, self._row, self._left + start, self._left + end)

    def divide(self, cuts: Iterable[int]) -> Sequence[Strip]:
        """Its parts before every cut."""
        parts, at = [], 0
        for cut in (cut for cut in cuts if cut <= self.cell_length):
            parts.append(self.crop(at, cut))
            at = cut
        return parts


class SixelImage(Widget):
    """Draws one image as large as it is itself."""

    DEFAULT_CSS = "SixelImage { width: 100%; height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self._sixels: Sixels | None = None

    def show(self, image: "Image", columns: int, rows: int) -> None:
        """Draw it in so many cells."""
        self._sixels = Sixels(image, columns, rows, cell_size())
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of a part; blank while another screen lies over this one."""
        sixels, blank = self._sixels, Strip.blank(crop.width, self.rich_style)
        if sixels is None or not self.screen.is_active:
            return [blank] * crop.height
        fits = crop.right <= sixels.columns  # it does not between a change of size and the next drawing
        return [
            SixelStrip(sixels, y, crop.x, crop.right) if fits and y < sixels.rows else blank
            for y in range(crop.y, crop.bottom)
        ]
