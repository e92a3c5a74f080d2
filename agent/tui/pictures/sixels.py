"""A picture drawn with sixels, one image for every line of the terminal.

A line that a message or another screen has overwritten is redrawn alone, like a line of text. textual-image's own
widget draws one image for all lines. The whole image is lost as soon as a line is overwritten.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.segment import ControlType, Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from agent.tui.pictures.crop import Shot
from agent.tui.pictures.terminal import cell_size

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    Indices: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

_BAND = 6  # lines of pixels that one row of sixels holds
_EMPTY = 63  # the character of a sixel without a pixel
_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)


@dataclass(frozen=True)
class Sixels:
    """A picture stretched to this many columns and rows; cells are measured in pixels.

    All lines share one palette, because terminals share their colour registers. textual-image's encoder makes a palette
    for each image: the lines came out striped in xterm.
    """

    image: "Image"
    columns: int
    rows: int
    cell: tuple[int, int]
    _lines: dict[tuple[int, int, int], str] = field(default_factory=dict)

    @cached_property
    def _palette_and_indices(self) -> "tuple[list[bytes], Indices]":
        import numpy as np
        from PIL import Image

        size = (self.columns * self.cell[0], self.rows * self.cell[1])
        fitted = self.image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        indexed = fitted.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        percent = [round(value * 100 / 255) for value in indexed.getpalette() or []]
        colours = zip(percent[::3], percent[1::3], percent[2::3], strict=True)
        return [b"#%d;2;%d;%d;%d" % (index, *rgb) for index, rgb in enumerate(colours)], np.asarray(indexed)

    def line(self, row: int, left: int, right: int) -> str:
        """The sequence that draws the columns from `left` to before `right` of one row and keeps the cursor."""
        if (row, left, right) not in self._lines:
            palette, indices = self._palette_and_indices
            width, height = self.cell
            part = indices[row * height : (row + 1) * height, left * width : right * width]
            self._lines[row, left, right] = f"\x1b7{_encoded(part, palette)}\x1b8"
        return self._lines[row, left, right]


def _encoded(part: "Indices", palette: list[bytes]) -> str:
    """Pixels as one sixel image; its last band may reach further down, but draws nothing there."""
    import numpy as np

    height, width = part.shape
    pieces = [b'\x1bP0;1;0q"1;1;%d;%d' % (width, height), *(palette[index] for index in np.unique(part).tolist())]
    for top in range(0, height, _BAND):
        band = part[top : top + _BAND]
        weights = (1 << np.arange(len(band), dtype=np.uint8))[:, None]
        for index in np.unique(band).tolist():
            bits = ((band == index) * weights).sum(axis=0, dtype=np.uint8) + np.uint8(_EMPTY)
            runs = _RUN.sub(lambda run: b"!%d%b" % (len(run[0]), run[1]), bits.tobytes())
            pieces.append(b"#%d%b$" % (index, runs))
        pieces.append(b"-")
    return b"".join([*pieces[:-1], b"\x1b\\"]).decode("ascii")


class SixelStrip(Strip):
    """The columns from `left` to before `right` of one line of a picture.

    Strips are cut by the lengths of their texts, but a sixel image is thousands of characters that take no cell, and
    would be cut to nothing. This strip is cut by the columns of the picture.
    """

    __slots__ = ("_left", "_right", "_row", "_sixels")

    def __init__(self, sixels: Sixels, row: int, left: int, right: int) -> None:
        control = ((ControlType.CURSOR_FORWARD, right - left),)
        drawing = f"{sixels.line(row, left, right)}\x1b[{right - left}C"
        super().__init__([Segment(drawing, None, control)], right - left)
        self._sixels, self._row, self._left, self._right = sixels, row, left, right

    def crop(self, start: int, end: int | None = None) -> Strip:
        start, end = max(0, start), self.cell_length if end is None else min(self.cell_length, end)
        if (start, end) == (0, self.cell_length):
            return self
        if end <= start:
            return Strip([], 0)
        return SixelStrip(self._sixels, self._row, self._left + start, self._left + end)

    def divide(self, cuts: Iterable[int]) -> Sequence[Strip]:
        ends = [cut for cut in cuts if cut <= self.cell_length]
        return [self.crop(start, end) for start, end in zip([0, *ends], ends, strict=False)]


class SixelImage(Widget):
    """Draws one image as large as it is itself."""

    DEFAULT_CSS = "SixelImage { width: 100%; height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self._sixels: Sixels | None = None

    def show(self, shot: Shot, columns: int, rows: int) -> None:
        self._sixels = Sixels(shot.marked(), columns, rows, cell_size())
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lines of a part; blank while another screen lies over this one."""
        sixels, blank = self._sixels, Strip.blank(crop.width, self.rich_style)
        if sixels is None or not self.screen.is_active:
            return [blank] * crop.height
        fits = crop.right <= sixels.columns  # false between a change of size and the next drawing
        return [
            SixelStrip(sixels, y, crop.x, crop.right) if fits and y < sixels.rows else blank
            for y in range(crop.y, crop.bottom)
        ]
