"""Points as models write them: a pair, a box, an object, a string; always on a stated grid, never guessed."""

import math
import re
import unicodedata
from typing import Any

from agent.geometry import Grid, GridPoint

#: A point may lie this share outside its grid (rounding, 1000 on a 0..999 grid); further out it is another space.
TOLERANCE = 0.01

_NUMBER = re.compile(r"[-+]?[0-9]{1,9}(?:\.[0-9]{0,17})?(?![0-9eE.])")


class PointError(ValueError):
    """The value is no point on the grid; `off_screen` tells the two reasons apart."""

    def __init__(self, message: str, *, off_screen: bool = False) -> None:
        super().__init__(message)
        self.off_screen = off_screen


def read_point(value: Any, grid: Grid) -> GridPoint:
    """A point, or the centre of a box, within the grid and its tolerance.

    Raises:
        PointError: it is no point, lies far outside the grid, or looks like a fraction of the screen.
    """
    x, y = read_pair(value)
    point = GridPoint(x, y, grid)
    if point.overshoot() > TOLERANCE:
        raise PointError(
            f"the point [{x:g}, {y:g}] lies outside 0 to {grid.width:g} by 0 to {grid.height:g}", off_screen=True
        )
    if 0 < x < 1 and 0 < y < 1:
        raise PointError(f"the point [{x:g}, {y:g}] looks like fractions; the grid goes to {grid.width:g}")
    return point


def read_pair(value: Any) -> tuple[float, float]:
    """The two finite numbers of a point, or the centre of four; raises PointError."""
    numbers = _numbers(value)
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    if len(numbers) == 4:
        return (numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2
    raise PointError(f"a point needs 2 numbers (or the 4 of a box), not {len(numbers)}")


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        keys = ("x", "y") if "x" in value else ("x1", "y1", "x2", "y2")
        if not all(key in value for key in keys):
            raise PointError("a point needs x and y")
        return [_number(value[key]) for key in keys]
    if isinstance(value, str):
        plain = unicodedata.normalize("NFKC", value[:200])
        return [float(match) for match in _NUMBER.findall(plain)]
    if not isinstance(value, list):
        raise PointError("a point is a list of two numbers")
    if len(value) in (1, 2) and all(isinstance(item, list) for item in value):  # [[x, y]] or [[x1, y1], [x2, y2]]
        return [_number(number) for item in value for number in item[:5]]
    return [_number(item) for item in value[:5]]


def _number(value: Any) -> float:
    if isinstance(value, str):
        match = _NUMBER.fullmatch(unicodedata.normalize("NFKC", value[:40]).strip())
        if not match:
            raise PointError(f"{value[:20]!r} is not a number")
        return float(match[0])
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PointError("a point is made of numbers")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise PointError("a point is made of finite numbers")
    return number
