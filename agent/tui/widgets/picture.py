"""A screenshot in the terminal: sixel or kitty graphics where the terminal has them, characters elsewhere.

textual-image asks the terminal what it can when it is imported, which must happen before the application runs and takes
a moment: `image_widget` is called by whoever starts it.
"""

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any

from textual import work
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from agent.tui.pictures import placeholders
from agent.tui.pictures.reading import Line, read_lines
from agent.tui.pictures.ways import cells_for, may_have_graphics, wanted_way
from agent.tui.screenshot import SHARP, Shot, picture
from agent.tui.view import Row
from agent.tui.widgets.cell_image import CellImage
from agent.tui.widgets.sixel_image import SixelImage, cell_size
from foundation.foreign_text import harmless

#: Pixels of a screenshot in a cell's width, so that a letter of it has a letter's room; and the least and most across.
_PIXELS_A_CELL, _LEAST_ACROSS = 6.5, 150
#: Where pixels are drawn, so many of the screenshot are drawn in the room of one: letters of 10 points stay readable.
_SMALLER = 1.2
#: Seconds that a picture rests before its words are read: of a question, and of a step that is over. Who walks through
#: the steps does not wait for each, and a run that goes on is not held up by reading what nobody looks at.
_REST_ASKING, _REST = 0.2, 0.7
#: Lines that are read beneath a picture of at least so many rows.
_BENEATH = ((14, 2), (7, 1))
_setting: list[str] = []  # what the settings file says, where anyone asked before the application ran


def ask_terminal(setting: str | None = None) -> None:
    """Find out what the terminal can draw, if it is one that may draw pixels; before the application runs."""
    _setting[:] = [setting] if setting else []
    if may_have_graphics(_wanted()):
        image_widget()


def _wanted() -> str:
    return wanted_way(next(iter(_setting), None))


def pictures_wanted() -> bool:
    """Whether any picture is shown at all."""
    return _wanted() != "off"


@cache
def image_widget() -> type[Any]:
    """The class of widget that draws images here: the best that the terminal can."""
    if not may_have_graphics(_wanted()):
        return CellImage
    from textual_image import widget

    if widget.Image is widget.SixelImage:
        return SixelImage
    drawn_by = getattr(widget.Image, "_Renderable", None)
    return widget.Image if drawn_by is widget.TGPImage._Renderable and placeholders.drawn_here() else CellImage


class Picture(Container):
    """Shows one part of a screenshot as large as its own place allows; in characters, with its words beneath."""

    DEFAULT_CSS = """
    Picture {
        align: center middle;
        & > .beneath { height: auto; max-height: 2; color: $text-muted; display: none; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._drawn: Any = None
        self._row: Row | None = None
        self._whole = False
        self._shot: Shot | None = None
        self._shown: tuple[object, ...] = ()
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Static(classes="beneath")

    @property
    def aspect(self) -> float:
        """Width over height of the place, in pixels."""
        width, height = self._cell
        return self.size.width * width / max(1, (self.size.height - self._beneath) * height)

    @property
    def across(self) -> int:
        """Pixels of a screenshot that are worth showing across it."""
        a_cell = _PIXELS_A_CELL if self._in_cells else cell_size()[0] * _SMALLER
        return max(_LEAST_ACROSS, min(SHARP, round(self.size.width * a_cell)))

    @property
    def _in_cells(self) -> bool:
        return issubclass(image_widget(), CellImage)

    @property
    def _cell(self) -> tuple[int, int]:
        """The shape of a cell: about twice as high as wide, where pixels do not matter."""
        return cell_size() if issubclass(image_widget(), SixelImage) else (1, 2)

    @property
    def _beneath(self) -> int:
        """Lines that are kept free for what is read."""
        if not self._in_cells:
            return 0
        return next((lines for rows, lines in _BENEATH if self.size.height >= rows), 0)

    def show(self, row: Row | None, whole: bool = False) -> None:
        """Show what a row's action is about, or the whole screen; nothing where the row has no screenshot.

        It is drawn when there is room for it, and again when that changes.
        """
        self._row, self._whole = row, whole
        self._show()

    def on_mount(self) -> None:
        """Where no pictures are wanted, their room is for words."""
        if not pictures_wanted():
            self.styles.display = "none"
        self._show()

    def on_resize(self) -> None:
        self._show()

    def _show(self) -> None:
        if not self.query(".beneath"):  # not there yet, or not any more: a run may be read while its screen is left
            return
        row = self._row
        if row is None or (row.image is None and row.data is None) or not pictures_wanted():
            self._show_shot(None)
            return
        under_way = row.mark in ("thinking", "acting")
        shown = (id(row), row.image, row.target, row.about, row.spot, under_way, self._whole, self.size)
        if self.size.width < 4 or self.size.height < 2 or shown == self._shown:
            return
        self._show_shot(picture(row, self.aspect, self._whole, self.across, self._in_cells))
        self._shown = shown
        if self._shot is not None and self._in_cells and row.mark != "acting":
            self._timer = self.set_timer(_REST_ASKING if row.mark == "asking" else _REST, self._read)

    def _show_shot(self, shot: Shot | None) -> None:
        self._shot, self._shown = shot, ()
        if self._timer is not None:
            self._timer.stop()
        beneath = self.query_one(".beneath", Static)
        beneath.update("")
        beneath.display = False
        if shot is None:
            if self._drawn is not None:
                self._drawn.display = False
            return
        if self._drawn is None:
            widget = image_widget()
            self._drawn = CellImage(cells_for(_wanted())) if widget is CellImage else widget()
            self.mount(self._drawn, before=beneath)
        self._drawn.display = True
        self._draw(shot, ())

    def _draw(self, shot: Shot, lines: Sequence[Line]) -> None:
        width, height = self.size.width, self.size.height - self._beneath
        wide = shot.image.width / shot.image.height > self.aspect
        if not isinstance(self._drawn, CellImage | SixelImage):
            self._drawn.styles.width = "100%" if wide else "auto"
            self._drawn.styles.height = "auto" if wide else "100%"
            self._drawn.image = shot.marked()
            return
        across, down = self._cell
        shape = shot.image.width * down / (shot.image.height * across)  # columns over rows
        columns, rows = (width, max(1, round(width / shape))) if wide else (max(1, round(height * shape)), height)
        columns, rows = min(columns, width), min(rows, height)
        self._drawn.styles.width, self._drawn.styles.height = columns, rows
        if isinstance(self._drawn, CellImage):
            self._drawn.show(shot, columns, rows, lines)
        else:
            self._drawn.show(shot.marked(), columns, rows)

    @work(exclusive=True)
    async def _read(self) -> None:
        """Read its words, without holding the keys up, and show them in it and beneath it."""
        shot = self._shot
        if shot is None:
            return
        lines = await asyncio.to_thread(read_lines, shot.image)
        if shot is not self._shot or not lines or not self.query(".beneath"):
            return
        self._draw(shot, lines)
        if self._beneath:
            beneath = self.query_one(".beneath", Static)
            beneath.update(_told(shot, lines, self._beneath * self.size.width))
            beneath.display = True


def _told(shot: Shot, lines: Sequence[Line], room: int) -> Content:
    """What is read, what is nearest to the target first, as far as there is room (cells)."""
    texts = [line.text for line in lines]
    if shot.places:
        point = shot.places[-1]
        texts = [line.text for line in sorted(lines, key=lambda line: line.away(*point))]
    texts = list(dict.fromkeys(harmless(text) for text in texts if len(text) > 1 or text.isdigit()))
    if not texts:
        return Content("")
    kept = [texts[0]]
    left = room - len("reads: ") - len(texts[0])
    for text in texts[1:]:
        left -= len(text) + 3
        if left < 0:
            break
        kept.append(text)
    first, *others = kept
    style = "bold" if shot.places else ""
    return Content.assemble(("reads: ", "dim"), (first, style), "".join(f" · {one}" for one in others))
