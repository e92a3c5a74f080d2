"""A picture drawn with characters: cells of two colours, in them the words that were read, and a frame as the mark."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from agent.tui.pictures.cells import Cell, Depth, Rgb, drawn
from agent.tui.pictures.reading import Line
from agent.tui.pictures.ways import Cells
from agent.tui.screenshot import Shot

if TYPE_CHECKING:
    from PIL.Image import Image

#: The colour of marks, and what stands for it among the sixteen colours; and of letters on dark and on light ground.
_MARK, _MARK_SIXTEEN = (255, 0, 80), (255, 85, 85)
_LIGHT, _DARK = (255, 255, 255), (0, 0, 0)
#: Brightness (0 to 255) from which on a ground is light; colours of which no part differs by more than this are one.
_BRIGHT, _NEAR = 140, 100
#: Cells from the target to the sides of its frame where no word says how wide it is.
_HALF_WIDTH = 3
#: A line so many pixels from the target is what is pointed at, and framed as a whole if it is no longer than that.
_POINTED_AT, _LONGEST_FRAME = 14.0, 40
#: Words are written into a picture only where a cell is no wider than so many pixels; up to the first width they have
#: the room that they need, beyond it they take what is free to their right, and are cut.
_ROOMY_CELL, _WIDEST_CELL = 9.0, 20.0
#: Less of a word says nothing.
_LEAST_WRITTEN = 3


class CellImage(Widget):
    """Draws a part of a screenshot as large as it is itself."""

    DEFAULT_CSS = "CellImage { width: 100%; height: 1fr; }"

    def __init__(self, cells: Cells) -> None:
        super().__init__()
        self._cells = cells
        self._strips: list[Strip] = []

    def show(self, shot: Shot, columns: int, rows: int, lines: Sequence[Line] = ()) -> None:
        """Draw it in so many cells, with what was read in it."""
        depth = self._depth
        across, down = shot.image.width / columns, shot.image.height / rows
        written = _placed(shot.image, lines, columns, rows) if across <= _WIDEST_CELL else []
        grid = drawn(_prepared(shot, written), columns, rows, self._cells, depth)
        for one in written:
            _write(grid, one, depth)
        places = [(int(x / across), int(y / down)) for x, y in shot.places]
        mark = None if depth == "none" else _MARK_SIXTEEN if depth == "sixteen" else _MARK
        for x, y in places[:-1]:
            _put(grid, x, y, "●", mark)
        if places:
            left, right, row = _extent(shot, lines, across, down)
            _frame(grid, left, right, row, mark)
        self._strips = [_strip(row) for row in grid]
        self.refresh()

    @property
    def _depth(self) -> Depth:
        system = self.app.console.color_system
        return "none" if system is None else "sixteen" if system in ("standard", "windows") else "full"

    def render_line(self, y: int) -> Strip:
        """One line of it."""
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)


@dataclass(frozen=True, slots=True)
class _Written:
    """A line of text in its cells."""

    line: Line
    ground: Rgb
    text: str
    left: int
    row: int


def _placed(image: "Image", lines: Sequence[Line], columns: int, rows: int) -> list[_Written]:
    """The lines that can be written: one a place, those in the middle of their row first, as long as there is room."""
    across, down = image.width / columns, image.height / rows
    taken: dict[int, list[tuple[int, int]]] = {}
    placed: list[_Written] = []

    def off(line: Line) -> float:
        return abs((line.box.center[1] / down) % 1 - 0.5)

    for line in sorted(lines, key=off):
        row, left = int(line.box.center[1] / down), max(0, round(line.box.left / across))
        right = max(left + 1, round(line.box.right / across))
        others = taken.setdefault(row, [])
        if not 0 <= row < rows or any(left <= last and right >= first for first, last in others):
            continue
        others.append((left, right))
        placed.append(_Written(line, _ground(image, line), line.text, left, row))
    return [replace(one, text=text) for one in placed if (text := _cut(one, columns, taken[one.row]))]


def _cut(one: _Written, columns: int, others: Sequence[tuple[int, int]]) -> str:
    """As much of it as fits before the next text in its row; nothing where that says nothing."""
    room = min((first - 1 for first, _ in others if first > one.left), default=columns) - one.left
    if len(one.text) <= room:
        return one.text
    return f"{one.text[: room - 1]}…" if room > _LEAST_WRITTEN else ""


def _prepared(shot: Shot, written: "Sequence[_Written]") -> "Image":
    """The picture without the letters that are to be written over, and with the way of a drag."""
    from PIL import ImageDraw

    image = shot.image.copy()
    pen = ImageDraw.Draw(image)
    for one in written:
        box = one.line.box
        pen.rectangle((box.left - 1, box.top - 1, box.right, box.bottom), fill=one.ground)
    if len(shot.places) > 1:
        pen.line([*shot.places], fill=_MARK, width=max(3, image.width // 80))
    return image


def _write(grid: list[list[Cell]], one: _Written, depth: Depth) -> None:
    """Write a line where it stands, in colours of its place."""
    light = _brightness(one.ground) >= _BRIGHT
    front: Rgb | None = _DARK if light else _LIGHT
    back: Rgb | None = one.ground
    if depth == "sixteen":
        back = _LIGHT if light else _DARK
    elif depth == "none":
        front = back = None
    for at, char in enumerate(one.text, one.left):
        _put(grid, at, one.row, char if char.isprintable() and cell_len(char) == 1 else "�", front, back)


def _put(grid: list[list[Cell]], x: int, y: int, char: str, front: Rgb | None, back: Rgb | None = None) -> None:
    if 0 <= y < len(grid) and 0 <= x < len(grid[y]):
        old = grid[y][x]
        grid[y][x] = replace(old, char=char, front=front, back=back if back is not None else old.back)


def _ground(image: "Image", line: Line) -> Rgb:
    """The colour around a line of text: the middle one of its box, of which letters fill the smaller part."""
    import numpy as np

    box = line.box
    part = np.asarray(image.crop((max(0, box.left - 2), max(0, box.top - 2), box.right + 2, box.bottom + 2)))
    red, green, blue = np.median(part.reshape(-1, 3), axis=0).astype(int).tolist()
    return red, green, blue


def _brightness(colour: Rgb) -> float:
    return 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]


def _apart(one: Rgb, other: Rgb) -> int:
    return max(abs(mine - its) for mine, its in zip(one, other, strict=True))


def _extent(shot: Shot, lines: Sequence[Line], across: float, down: float) -> tuple[int, int, int]:
    """The columns of the mark's sides and its row: around the words that are pointed at, or around the point."""
    point = shot.places[-1]
    x, y = int(point[0] / across), int(point[1] / down)
    nearest = min(lines, key=lambda line: line.away(*point), default=None)
    if nearest is not None and across <= _ROOMY_CELL and nearest.away(*point) <= _POINTED_AT:
        left, right = round(nearest.box.left / across) - 2, round(nearest.box.right / across) + 2
        if right - left <= _LONGEST_FRAME:
            return min(left, x - 1), max(right, x + 1), int(nearest.box.center[1] / down)
    return x - _HALF_WIDTH, x + _HALF_WIDTH, y


def _frame(grid: list[list[Cell]], left: int, right: int, row: int, colour: Rgb | None) -> None:
    """A frame around a row's columns, the columns and rows next to them being its sides."""
    right = max(right, left + 2)
    for y, (first, middle, last) in ((row - 1, "┏━┓"), (row + 1, "┗━┛")):
        _put_mark(grid, left, y, first, colour)
        for x in range(left + 1, right):
            _put_mark(grid, x, y, middle, colour)
        _put_mark(grid, right, y, last, colour)
    _put_mark(grid, left, row, "┃", colour)
    _put_mark(grid, right, row, "┃", colour)


def _put_mark(grid: list[list[Cell]], x: int, y: int, char: str, colour: Rgb | None) -> None:
    """A piece of the mark, on a ground that it stands out from."""
    if not (0 <= y < len(grid) and 0 <= x < len(grid[y])):
        return
    ground = grid[y][x].back
    if colour is not None and ground is not None and _apart(ground, colour) < _NEAR:
        ground = _DARK
    grid[y][x] = Cell(char, colour, ground)


def _strip(row: Sequence[Cell]) -> Strip:
    """A row of cells, those of the same colours in one segment."""
    segments: list[Segment] = []
    for (front, back), run in groupby(row, key=lambda cell: (cell.front, cell.back)):
        segments.append(Segment("".join(cell.char for cell in run), _style(front, back)))
    return Strip(segments, len(row))


def _style(front: Rgb | None, back: Rgb | None) -> Style:
    return Style(
        color=None if front is None else Color.from_rgb(*front), bgcolor=None if back is None else Color.from_rgb(*back)
    )
