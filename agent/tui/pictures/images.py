"""Widgets that draw a picture: with sixels, or as characters of two colours each."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import groupby
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rich.color import Color
from rich.segment import ControlType, Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from agent.tui.pictures.crop import Shot
from agent.tui.pictures.terminal import Cells, cell_size

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
    """Draws a picture with sixels, one image for every line of the terminal.

    A line that a message or another screen has overwritten is redrawn alone, like a line of text. textual-image's own
    widget draws one image for all lines; it is lost as soon as one of them is overwritten.
    """

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


Rgb: TypeAlias = tuple[int, int, int]

#: Parts of a cell: across, down.
PARTS: dict[Cells, tuple[int, int]] = {"halves": (1, 2), "quadrants": (2, 2), "sextants": (2, 3), "octants": (2, 4)}
#: The four of the 16 colours that every theme keeps apart (black, two greys, white), with Rich's values for them.
GREYS: tuple[Rgb, ...] = ((0, 0, 0), (85, 85, 85), (170, 170, 170), (255, 255, 255))
#: Patterns of octants with characters outside the range of octants: quarters by rows, and single corners.
_OLD_OCTANTS = {
    0x03: 0x1FB82, 0x3F: 0x1FB85, 0xC0: 0x2582, 0xFC: 0x2586, 0x14: 0x1FBE6, 0x28: 0x1FBE7,
    0x01: 0x1CEA8, 0x02: 0x1CEAB, 0x40: 0x1CEA3, 0x80: 0x1CEA0,
}  # fmt: skip
_QUADRANTS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"
#: The colour of marks, and its place among the sixteen colours; a background this near to it (0 to 255) becomes black.
_MARK, _MARK_SIXTEEN, _NEAR = (255, 0, 80), (255, 85, 85), 100
#: Cells from the target to the sides of its frame.
_HALF_WIDTH = 3


class Cell(NamedTuple):
    """One character of a picture."""

    char: str
    front: Rgb
    back: Rgb


@cache
def characters(cells: Cells) -> str:
    """The character for every pattern: bit 0 is the part at the left top, then to the right, then down."""
    if cells == "halves":
        return " ▀▄█"
    if cells == "quadrants":
        return _QUADRANTS
    if cells == "sextants":
        known = {0: " ", 21: "▌", 42: "▐", 63: "█"}
        new = iter(range(0x1FB00, 0x1FB3C))
        return "".join(known.get(pattern) or chr(next(new)) for pattern in range(64))
    old = {pattern: chr(code) for pattern, code in _OLD_OCTANTS.items()}
    for quadrants, char in enumerate(_QUADRANTS):
        upper, lower = quadrants & 3, quadrants >> 2
        old[upper * 0b101 | lower * 0b1010000] = char
    new = iter(range(0x1CD00, 0x1CDE6))
    return "".join(old.get(pattern) or chr(next(new)) for pattern in range(256))


def drawn(shot: Shot, columns: int, rows: int, cells: Cells, *, greys: bool = False) -> list[list[Cell]]:
    """The picture in this many cells, row by row, with a frame around its last target or field; `greys` for 16 colours.

    The parts of a cell are split in the middle of the colour channel that varies most, and each side gets its mean: an
    edge stays an edge.
    """
    import numpy as np
    from PIL import Image, ImageOps

    across, down = PARTS[cells]
    small = shot.image.convert("RGB").resize((columns * across, rows * down), Image.Resampling.BOX, reducing_gap=2.0)
    if greys:
        small = ImageOps.autocontrast(small.convert("L"), cutoff=1).convert("RGB")
    pixels = np.asarray(small, dtype=np.float32)
    parts = pixels.reshape(rows, down, columns, across, 3).transpose(0, 2, 1, 3, 4).reshape(rows * columns, -1, 3)
    low, high = parts.min(axis=1), parts.max(axis=1)
    channel = (high - low).argmax(axis=1)[:, None, None]
    middle = np.take_along_axis((low + high)[:, None] / 2, channel, axis=2)
    bright = (np.take_along_axis(parts, channel, axis=2) > middle)[..., 0]
    sides = np.stack([bright, ~bright])[..., None]
    colours = (parts * sides).sum(axis=2) / sides.sum(axis=2).clip(1)
    if greys:
        levels = np.array(GREYS, dtype=np.float32)
        colours = levels[np.abs(colours[..., :1] - levels[:, 0]).argmin(axis=2)]
    chars = characters(cells)
    patterns = (bright * (1 << np.arange(across * down))).sum(axis=1)
    fronts, backs = colours.astype(int).tolist()
    made = [
        Cell(chars[pattern], tuple(front), tuple(back))
        for pattern, front, back in zip(patterns.tolist(), fronts, backs, strict=True)
    ]
    grid = [made[start : start + columns] for start in range(0, len(made), columns)]
    places = [(int(x * columns / shot.image.width), int(y * rows / shot.image.height)) for x, y in shot.places]
    for place in places[:-1]:
        _mark(grid, *place, "●", greys)
    for x, y in places[-1:]:
        _frame(grid, x - _HALF_WIDTH, y - 1, x + _HALF_WIDTH, y + 1, greys)
    if (field := shot.field) is not None:
        wide, high = columns / shot.image.width, rows / shot.image.height
        left, top = max(0, int(field.left * wide) - 1), max(0, int(field.top * high) - 1)
        right, bottom = min(columns - 1, ceil(field.right * wide)), min(rows - 1, ceil(field.bottom * high))
        _frame(grid, left, top, right, bottom, greys)
    return grid


def _frame(grid: list[list[Cell]], left: int, top: int, right: int, bottom: int, greys: bool) -> None:
    for row, corners in ((top, "┏┓"), (bottom, "┗┛")):
        for column in range(left + 1, right):
            _mark(grid, column, row, "━", greys)
        _mark(grid, left, row, corners[0], greys)
        _mark(grid, right, row, corners[1], greys)
    for row in range(top + 1, bottom):
        _mark(grid, left, row, "┃", greys)
        _mark(grid, right, row, "┃", greys)


def _mark(grid: list[list[Cell]], x: int, y: int, char: str, greys: bool) -> None:
    if 0 <= y < len(grid) and 0 <= x < len(grid[y]):
        colour, ground = _MARK_SIXTEEN if greys else _MARK, grid[y][x].back
        near = max(abs(one - other) for one, other in zip(colour, ground, strict=True)) < _NEAR
        grid[y][x] = Cell(char, colour, GREYS[0] if near else ground)


class CellImage(Widget):
    """Draws a part of a screenshot as large as it is itself."""

    DEFAULT_CSS = "CellImage { width: 100%; height: 1fr; }"

    def __init__(self, cells: Cells) -> None:
        super().__init__()
        self._cells = cells
        self._strips: list[Strip] = []

    def show(self, shot: Shot, columns: int, rows: int) -> None:
        greys = self.app.console.color_system in (None, "standard", "windows")
        self._strips = [_strip(row) for row in drawn(shot, columns, rows, self._cells, greys=greys)]
        self.refresh()

    def render_line(self, y: int) -> Strip:
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)


def _strip(row: list[Cell]) -> Strip:
    segments = [
        Segment("".join(cell.char for cell in run), Style(color=Color.from_rgb(*front), bgcolor=Color.from_rgb(*back)))
        for (front, back), run in groupby(row, key=lambda cell: (cell.front, cell.back))
    ]
    return Strip(segments, len(row))
