"""Draws the calibration picture with marks at known places, and the same picture with the model's clicks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from agent.core.geometry import CapturePoint, Size
from foundation.configs import load_config

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

_CLICK = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark of the picture."""

    colour: str
    shape: str
    rgb: tuple[int, int, int]
    at: tuple[float, float]  # centre, as shares of the picture's width and height

    @property
    def words(self) -> str:
        """Return the mark's name."""
        return f"{self.colour} {self.shape}"

    @property
    def question(self) -> str:
        """Return the question to the model."""
        return f"click the {self.words}"

    def on(self, size: Size) -> CapturePoint:
        """Return the mark's centre in pixels of a picture."""
        return CapturePoint(self.at[0] * size.width, self.at[1] * size.height)


@cache
def marks() -> tuple[Mark, ...]:
    """Return all marks, in the order of the questions."""
    return tuple(
        Mark(mark["colour"], mark["shape"], _rgb(mark["rgb"]), (float(mark["at"][0]), float(mark["at"][1])))
        for mark in load_config("calibration.toml")["marks"]
    )


def side_of(size: Size) -> float:
    """Return the side of a mark in a picture of this size, in pixels."""
    numbers = load_config("calibration.toml")["picture"]
    return float(max(numbers["smallest"], numbers["side"] * min(size.width, size.height)))


def draw(size: Size) -> "Image":
    """Draw the picture with all marks."""
    from PIL import Image, ImageDraw

    picture = Image.new(
        "RGB", (size.width, size.height), _rgb(load_config("calibration.toml")["picture"]["background"])
    )
    pen = ImageDraw.Draw(picture)
    for mark in marks():
        _draw_mark(pen, mark, mark.on(size), side_of(size) / 2)
    return picture


def draw_clicks(size: Size, clicks: Iterable[tuple[Mark, CapturePoint | None]]) -> "Image":
    """Draw the picture, with a line from each mark to its click, and a cross at the click."""
    from PIL import ImageDraw

    picture = draw(size)
    pen = ImageDraw.Draw(picture)
    arm = side_of(size) / 3
    width = max(2, round(arm / 8))
    for mark, clicked in clicks:
        if clicked is None:
            continue
        x, y = _within(clicked, size)
        at = mark.on(size)
        pen.line((at.x, at.y, x, y), fill=mark.rgb, width=width)
        for lean in (1, -1):
            ends = (x - arm, y - lean * arm, x + arm, y + lean * arm)
            pen.line(ends, fill=_CLICK, width=3 * width)
            pen.line(ends, fill=mark.rgb, width=width)
    return picture


def _draw_mark(pen: "ImageDraw", mark: Mark, at: CapturePoint, half: float) -> None:
    box = (at.x - half, at.y - half, at.x + half, at.y + half)
    if mark.shape == "circle":
        pen.ellipse(box, fill=mark.rgb)
    elif mark.shape == "diamond":
        corners = ((at.x, at.y - half), (at.x + half, at.y), (at.x, at.y + half), (at.x - half, at.y))
        pen.polygon(corners, fill=mark.rgb)
    else:
        pen.rectangle(box, fill=mark.rgb)


def _within(point: CapturePoint, size: Size) -> tuple[float, float]:
    return min(max(point.x, 0.0), size.width - 1.0), min(max(point.y, 0.0), size.height - 1.0)


def _rgb(written: Sequence[Any]) -> tuple[int, int, int]:
    red, green, blue = written
    return int(red), int(green), int(blue)
