"""Finds the coordinate space of a model's answers, from its answers for marks at known places. Pure.

Candidates from likely to flexible: the family's own space; known ones (0..1000, fractions, pixels of the image as
sent, of the screen, or after an image processor); measured scales; scales and an offset. A more flexible space must
fit clearly better. With all marks asked, one may be out of reach.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import linear_regression
from typing import Any, Literal, TypeAlias

from agent.core.geometry import Grid, GridPoint, Size
from foundation.configs import load_config
from foundation.images import smart_resize

#: own: the family's; known: another common one; resized: pixels after a known image processor; scaled: measured;
#: shifted: measured, with an origin other than 0.
Kind: TypeAlias = Literal["own", "known", "resized", "scaled", "shifted"]

#: Deviation of width/height from 1 below which a measured space is a square grid, and not an image size.
_SQUARE = 0.02


@dataclass(frozen=True, slots=True)
class Sighting:
    """A mark, and where a model says it is."""

    at: tuple[float, float]  # true place, as shares of the picture
    written: tuple[float, float] | None  # the two numbers of the answer; None if there were none


@dataclass(frozen=True, slots=True)
class Space:
    """A coordinate space that points may be in."""

    kind: Kind
    grid: Grid
    words: str
    max_pixels: int | None = None  # the pixel budget below which the server does not resize images, if known


@dataclass(frozen=True, slots=True)
class Fit:
    """A space that explains a model's answers."""

    space: Space
    off: tuple[tuple[float, float] | None, ...]  # per mark, the answer's error, in shares of the picture
    explained: tuple[bool, ...]  # per mark, whether the error is within reach
    cost: float  # lower is better


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the picture, as captured and as sent, and of a mark."""

    captured: Size
    sent: Size
    side: float  # of a mark, in captured pixels

    @property
    def reach(self) -> tuple[float, float]:
        """Return the allowed error along x and y, as shares of the picture."""
        reach = float(_numbers()["reach"]) * self.side
        return reach / self.captured.width, reach / self.captured.height


def best_fit(seen: Sequence[Sighting], own: Grid, sizes: Sizes) -> Fit | None:
    """Return the space that explains the answers best; None if none does."""
    numbers = _numbers()
    needed = len(seen) - (numbers["misses"] if len(seen) > numbers["first"] else 0)
    fits = [_judged(space, seen, sizes) for space in _candidates(seen, own, sizes)]
    return min((fit for fit in fits if sum(fit.explained) >= needed), key=lambda fit: fit.cost, default=None)


def _candidates(seen: Sequence[Sighting], own: Grid, sizes: Sizes) -> Iterator[Space]:
    yield Space("own", own, words_of(own, sizes))
    yield Space("known", Grid.relative(1000), "0 to 1000")
    yield Space("known", Grid.relative(1), "fractions of the image")
    yield Space("known", Grid.pixels(sizes.sent), f"pixels of the image as sent, {sizes.sent}")
    yield Space("known", Grid.pixels(sizes.captured), f"pixels of the screen, {sizes.captured}")
    for resizing in load_config("calibration.toml")["resizing"]:
        limits = resizing["factor"], resizing["min_pixels"], resizing["max_pixels"]
        size = Size(*smart_resize(sizes.sent.width, sizes.sent.height, *limits))
        words = f"pixels of {size}, which {resizing['who']} makes of the image"
        yield Space("resized", Grid.pixels(size), words, resizing["max_pixels"])
    yield from _measured(seen, "scaled", sizes)
    if len(seen) > _numbers()["first"]:
        yield from _measured(seen, "shifted", sizes)


def words_of(grid: Grid, sizes: Sizes) -> str:
    """Describe a grid in words."""
    if grid == Grid.pixels(sizes.sent):
        return f"pixels of the image as sent, {sizes.sent}"
    if grid.width == grid.height == 1:
        return "fractions of the image"
    begins = f" from {grid.left:.0f}, {grid.top:.0f}" if grid.left or grid.top else ""
    if grid.width == grid.height and not begins:
        return f"0 to {grid.width:g}"
    if not begins and abs(grid.width / grid.height - 1) < _SQUARE:
        return f"0 to about {(grid.width + grid.height) / 2:.0f}"
    return f"pixels of about {grid.width:.0f}x{grid.height:.0f}{begins}"


def _measured(seen: Sequence[Sighting], kind: Literal["scaled", "shifted"], sizes: Sizes) -> Iterator[Space]:
    """Fit the scale to all answers, and to all but each one, which may be a miss."""
    answered = [(one.at, one.written) for one in seen if one.written is not None]
    for left_out in (None, *range(len(answered))):
        used = [one for index, one in enumerate(answered) if index != left_out]
        if len(used) < (3 if kind == "shifted" else 2):
            continue
        (width, left), (height, top) = (
            linear_regression([at[axis] for at, _ in used], [to[axis] for _, to in used], proportional=kind == "scaled")
            for axis in (0, 1)
        )
        smallest = _numbers()["tiny"]
        # Fractions are the only space smaller than any image.
        if width < min(0.5, smallest * sizes.sent.width) or height < min(0.5, smallest * sizes.sent.height):
            continue
        grid = Grid(width, height, left, top)
        yield Space(kind, grid, words_of(grid, sizes))


def _judged(space: Space, seen: Sequence[Sighting], sizes: Sizes) -> Fit:
    """Return how well a space explains the answers."""
    numbers, reach = _numbers(), sizes.reach
    off = tuple(_off(space.grid, one) for one in seen)
    explained = tuple(by is not None and abs(by[0]) <= reach[0] and abs(by[1]) <= reach[1] for by in off)
    near = [by for by, counts in zip(off, explained, strict=True) if by is not None and counts]
    error = math.sqrt(sum((x / reach[0]) ** 2 + (y / reach[1]) ** 2 for x, y in near) / (2 * len(near) or 1))
    against = 0.0 if space.kind == "own" else numbers["known" if space.kind == "resized" else space.kind]
    return Fit(space, off, explained, error + against + numbers["missed"] * (len(seen) - len(near)))


def _off(grid: Grid, one: Sighting) -> tuple[float, float] | None:
    if one.written is None:
        return None
    across, down = GridPoint(*one.written, grid).share
    return across - one.at[0], down - one.at[1]


def _numbers() -> dict[str, Any]:
    numbers: dict[str, Any] = load_config("calibration.toml")["fit"]
    return numbers
