"""The widget that shows a part of a screenshot in the best way that the terminal has."""

from functools import cache
from typing import Any

from textual.containers import Container

from agent.tui.pictures.crop import SHARP, Shot, picture
from agent.tui.pictures.images import CellImage, SixelImage
from agent.tui.pictures.terminal import cell_size, cells_for, may_have_graphics, wanted_way
from agent.tui.view import Row

#: Pixels of the screenshot for each cell's width, so that shapes stay recognisable; and the least width of a crop.
_PIXELS_A_CELL, _LEAST_ACROSS = 6.5, 150
#: Pixels of the screenshot for each pixel of the terminal: letters of 10 points stay readable.
_SMALLER = 1.2
#: Least columns and rows of a picture. In a smaller picture, nothing is recognisable.
LEAST = (20, 8)
_setting: list[str] = []  # what the settings file says


def ask_terminal(setting: str | None = None) -> None:
    """Find out what the terminal can draw. Call this before the application runs, which reads all answers."""
    _setting[:] = [setting] if setting else []
    if may_have_graphics(_wanted()):
        image_widget()


def _wanted() -> str:
    return wanted_way(next(iter(_setting), None))


def pictures_wanted() -> bool:
    """Whether pictures are switched on."""
    return _wanted() != "off"


@cache
def image_widget() -> type[Any]:
    """The class of widget that draws images here; importing textual-image asks the terminal and takes a moment."""
    if not may_have_graphics(_wanted()):
        return CellImage
    from textual_image import widget

    if widget.Image is widget.SixelImage:
        return SixelImage
    drawn_by = getattr(widget.Image, "_Renderable", None)
    return widget.Image if drawn_by is widget.TGPImage._Renderable else CellImage


class Picture(Container):
    """Shows one part of a screenshot as large as its own place allows."""

    DEFAULT_CSS = "Picture { align: center middle; }"

    def __init__(self) -> None:
        super().__init__()
        self._drawn: Any = None
        self._row: Row | None = None
        self._whole = False
        self._shown: tuple[object, ...] = ()

    @property
    def _cell(self) -> tuple[int, int]:
        """The shape of a cell: about twice as high as wide, unless pixels matter."""
        return cell_size() if issubclass(image_widget(), SixelImage) else (1, 2)

    def show(self, row: Row | None, whole: bool = False) -> None:
        self._row, self._whole = row, whole
        self._show()

    def on_mount(self) -> None:
        if not pictures_wanted():
            self.styles.display = "none"
        self._show()

    def on_resize(self) -> None:
        self._show()

    def _show(self) -> None:
        row, (width, height) = self._row, self.size
        unseen = row is None or row.image is None or not pictures_wanted()
        if row is None or unseen or width < LEAST[0] or height < LEAST[1]:
            self._show_shot(None)
            return
        shown = (id(row), row.image, row.target, row.about, row.spot, self._whole, self.size)
        if self.is_attached and shown != self._shown:
            a_cell = _PIXELS_A_CELL if issubclass(image_widget(), CellImage) else cell_size()[0] * _SMALLER
            across = max(_LEAST_ACROSS, min(SHARP, round(width * a_cell)))
            aspect = width * self._cell[0] / (height * self._cell[1])
            self._show_shot(picture(row, aspect, self._whole, across))
            self._shown = shown

    def _show_shot(self, shot: Shot | None) -> None:
        self._shown = ()
        if self._drawn is None and shot is not None:
            widget = image_widget()
            self._drawn = CellImage(cells_for(_wanted())) if widget is CellImage else widget()
            self.mount(self._drawn)
        if self._drawn is not None:
            self._drawn.display = shot is not None
        if shot is not None:
            self._draw(shot)

    def _draw(self, shot: Shot) -> None:
        (width, height), (across, down) = self.size, self._cell
        shape = shot.image.width * down / (shot.image.height * across)  # columns over rows
        wide = shape > width / height
        styles = self._drawn.styles
        if isinstance(self._drawn, CellImage | SixelImage):
            columns, rows = (width, round(width / shape)) if wide else (round(height * shape), height)
            columns, rows = max(1, min(columns, width)), max(1, min(rows, height))
            styles.width, styles.height = columns, rows
            self._drawn.show(shot, columns, rows)
        else:
            styles.width, styles.height = ("100%", "auto") if wide else ("auto", "100%")
            self._drawn.image = shot.marked()
