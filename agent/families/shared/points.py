"""Parses points as models write them: a pair, a box, an object, a string. The grid is always given, never guessed."""

import math
import re
from collections.abc import Sequence
from typing import Any

from agent.core.geometry import Counted, Grid, GridPoint, Size
from agent.families.base import ArgumentError, FailureKind

#: A point may be off its grid by this share (rounding, 1000 on a 0..999 grid). Further off, it is in another space.
TOLERANCE = 0.01

#: The largest number of a point. A larger one means a broken answer.
_LARGEST = 1e9

_NUMBER = re.compile(r"[-+]?[0-9]{1,9}(?:\.[0-9]{0,17})?")
# What may surround the numbers of a point in a string: tags such as <point> or <|box_start|>, brackets, x= and y:.
_AROUND = re.compile(r"<[^<>]{0,40}>|[\[\](){},;'\"\s]|\b[xy][0-9]?['\"]?\s*[:=]")
# Maps full-width digits and punctuation to plain ones. Digits of other scripts are rejected.
_FULL_WIDTH = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {0x3001: 0x2C}


def grid_of(counted: Counted, sent: Sequence[Size]) -> Grid:
    """Return a family's grid.

    `counted` is from its `family.toml`: a divisor (999, 1000; 1 for fractions of the screen), or "pixels" of the newest
    sent image. A `Grid` is returned unchanged.
    """
    if isinstance(counted, Grid):
        return counted
    return Grid.pixels(sent[-1]) if isinstance(counted, str) else Grid.relative(counted)


class PointError(ArgumentError):
    """The value is no point on the grid."""

    def __init__(self, message: str, kind: FailureKind = "bad_point", *, fraction: bool = False) -> None:
        super().__init__(kind, message)
        self.fraction = fraction  # whether it looks like fractions of the screen


def read_point(value: Any, grid: Grid) -> GridPoint:
    """Parse a point, or the centre of a box, within the grid and its tolerance.

    Raises PointError: it is no point, is far outside the grid, or looks like a fraction of the screen.
    """
    x, y = read_pair(value, fractions=max(grid.width, grid.height) <= 1)
    point = GridPoint(x, y, grid)
    if point.overshoot() > TOLERANCE:
        raise PointError(
            f"the point [{x:g}, {y:g}] lies outside 0 to {grid.width:g} by 0 to {grid.height:g}", "off_screen"
        )
    return point


def read_pair(value: Any, *, fractions: bool = True) -> tuple[float, float]:
    """Parse the two finite numbers of a point, or the centre of four. Raises PointError: it is no point.

    With `fractions` False, numbers such as [0.5, 0.2] are rejected: on a grid of hundreds, they are in another
    coordinate space.
    """
    numbers = _numbers(value)
    if len(numbers) not in (2, 4):
        raise PointError(f"a point needs 2 numbers (or the 4 of a box), not {len(numbers)}")
    if not fractions and all(0 <= number <= 1 for number in numbers) and not all(map(float.is_integer, numbers)):
        written = ", ".join(f"{number:g}" for number in numbers)
        raise PointError(f"the point [{written}] looks like fractions of the screen; use the grid", fraction=True)
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    return (numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        keys = ("x", "y") if "x" in value else ("x1", "y1", "x2", "y2")
        if not all(key in value for key in keys):
            raise PointError("a point needs x and y")
        return [_number(value[key]) for key in keys]
    if isinstance(value, str):
        if len(value) > 200:
            raise PointError("a point is two numbers, not a long text")
        return [_number(word) for word in _AROUND.sub(" ", value.translate(_FULL_WIDTH)).split()]
    if not isinstance(value, list):
        raise PointError("a point is a list of two numbers")
    if len(value) in (1, 2) and all(isinstance(item, list) for item in value):  # [[x, y]] or [[x1, y1], [x2, y2]]
        return [_number(number) for item in value for number in item[:5]]
    return [_number(item) for item in value[:5]]


def _number(value: Any) -> float:
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.translate(_FULL_WIDTH).strip()) if len(value) <= 40 else None
        if not match:
            raise PointError(f"{value[:20]!r} is not a number")
        return float(match[0])
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PointError("a point is made of numbers")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not abs(number) <= _LARGEST:
        raise PointError("a point is made of finite numbers of a sane size")
    return number
