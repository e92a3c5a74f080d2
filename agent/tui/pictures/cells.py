"""A picture as characters: each cell has two colours, and a character that says which of its parts has which."""

from functools import cache
from itertools import groupby
from math import ceil
from typing import NamedTuple, TypeAlias

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from agent.tui.pictures.crop import Shot
from agent.tui.pictures.terminal import Cells

Rgb: TypeAlias = tuple[int, int, int]

#: Parts of a cell: across, down.
PARTS: dict[Cells, tuple[int, int]] = {"halves": (1, 2), "quadrants": (2, 2), "sextants": (2, 3), "octants": (2, 4)}
#: The four of the 16 colours that every theme keeps apart (black, two greys, white), with Rich's values for them.
GREYS: tuple[Rgb, ...] = ((0, 0, 0), (85, 85, 85), (170, 170, 170), (255, 255, 255))
#: Octants that were characters before there were octants (Unicode 16): quarters by rows, and single corners.
_OLD_OCTANTS = {
    0x03: 0x1FB82, 0x3F: 0x1FB85, 0xC0: 0x2582, 0xFC: 0x2586, 0x14: 0x1FBE6, 0x28: 0x1FBE7,
    0x01: 0x1CEA8, 0x02: 0x1CEAB, 0x40: 0x1CEA3, 0x80: 0x1CEA0,
}  # fmt: skip
_QUADRANTS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"
#: The colour of marks, and its place among the sixteen colours; a ground this near to it (0 to 255) becomes black.
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
