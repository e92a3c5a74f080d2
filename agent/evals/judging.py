"""Judges kept answers: a pure function of an answer and its sample.

The official rule decides. The other published rules are judged beside it, because they move a score by several points:
re-scoring the same answers of MAI-UI-8B on ScreenSpot-Pro gives 66.0 to 68.6 %.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeAlias

from agent.core.actions import Absent, points_of
from agent.core.geometry import Grid, GridPoint, Size
from agent.evals.samples import Sample
from agent.families.base import Decision, ParseFailure
from agent.families.registry import get_family
from foundation.chat_stream import Answer, ToolCall
from foundation.errors import UsageError

#: point: the answer names a place; refused: it says that the target is not there; unreadable: neither.
Said: TypeAlias = Literal["point", "refused", "unreadable"]

OFFICIAL = "official"
#: The official rule after a closer look: a point that it finds replaces the first point.
ZOOM = "zoom"

_family = cache(get_family)  # thousands of answers are of one family


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer says, and whether that is right by each rule that can be applied to it."""

    sample: Sample
    said: Said
    lack: str  # why there is no point
    point: tuple[float, float] | None  # in pixels of the picture
    rules: Mapping[str, bool]
    closer: tuple[float, float] | None = None  # the point of a closer look, in pixels of the picture

    @property
    def right(self) -> bool:
        """Whether it is right by the official rule."""
        return self.rules[OFFICIAL]

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        sample = self.sample
        return {
            "id": sample.id, "right": self.right, "said": self.said, "lack": self.lack, "point": self.point,
            "shape": sample.shape, "target": sample.target, "groups": dict(sample.groups), "rules": dict(self.rules),
            "closer": self.closer, "sample": sample.digest,
        }  # fmt: skip


def judge(line: Mapping[str, Any], sample: Sample) -> Verdict:
    """Judge one kept answer. Raises UsageError: the line is not one of an answer."""
    try:
        result = _parsed(line)
        size = sample.size or Size(*line["screen"])
        closer = closer_point(line)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"The answer to {sample.id} cannot be judged: {error!r}.", "Was answers.jsonl changed?"
        ) from error
    answer_kind, point = _said(result)
    lack = result.kind if isinstance(result, ParseFailure) else ""
    if sample.shape == "refusal":
        rules = dict.fromkeys(RULES, answer_kind == "refused")
    elif point is None:
        rules = dict.fromkeys(RULES, False)
    else:
        rules = {name: rule(point, sample, size) for name, rule in RULES.items() if point_suits(name, point)}
    # GUI-Owl's evaluator reads an answer without a point as (0, 0), and (0, 0) as a refusal.
    unreadable = answer_kind == "unreadable" and "error" not in line
    rules["unreadable is a refusal"] = rules[OFFICIAL] or (sample.shape == "refusal" and unreadable)
    if ZOOM in line:
        rules[ZOOM] = rules[OFFICIAL] if closer is None or not sample.target else _inclusive(closer, sample, size)
    return Verdict(sample, answer_kind, lack, _pixels(point, size), rules, _pixels(closer, size))


def _pixels(point: GridPoint | None, size: Size) -> tuple[float, float] | None:
    return None if point is None else (point.share[0] * size.width, point.share[1] * size.height)


def first_point(line: Mapping[str, Any]) -> GridPoint | None:
    """Return the point that an answer names; None for a refusal or an unreadable answer."""
    return _said(_parsed(line))[1]


def closer_point(line: Mapping[str, Any]) -> GridPoint | None:
    """Return the point of the closer look, in pixels of the whole picture; None if it found none.

    The crop is cut out of the picture itself, which may have another size than its benchmark states.
    """
    look = line.get(ZOOM)
    found = None if look is None else first_point({**line, **look})
    if look is None or found is None:
        return None
    (left, top, width, height), (across, down) = look["crop"], found.share
    return GridPoint(left + across * width, top + down * height, Grid.pixels(Size(*line["screen"])))


def _parsed(line: Mapping[str, Any]) -> Decision | ParseFailure:
    """Parse a kept answer as its family does."""
    family, kept = _family(line["family"]), line["answer"]
    if line.get("grid") is not None:
        family = family.counting(Grid(*line["grid"]))
    calls = tuple(ToolCall(**call) for call in kept.get("tool_calls", ()))
    answer = Answer(kept["content"], kept.get("reasoning", ""), calls, kept.get("finish_reason"))
    return family.parse_grounding(answer, (Size(*line["sent"]),))


def _said(result: Decision | ParseFailure) -> tuple[Said, GridPoint | None]:
    """Return what an answer says. Two negative numbers are a refusal, as published evaluators take them."""
    if isinstance(result, ParseFailure):
        return "unreadable", None
    if any(isinstance(action, Absent) for action in result.actions):
        return "refused", None
    points = [point for action in result.actions for point in points_of(action)]
    if not points:
        return "unreadable", None
    return ("refused", None) if points[0].x < 0 and points[0].y < 0 else ("point", points[0])


_Rule: TypeAlias = Callable[[GridPoint, Sample, Size], bool]


def _inclusive(point: GridPoint, sample: Sample, size: Size) -> bool:
    """Compare as shares of the picture, all edges included. A polygon is tested in pixels."""
    return _share_in(*point.share, sample, size)


def _divided_by(divisor: int) -> _Rule:
    return lambda point, sample, size: _share_in(point.x / divisor, point.y / divisor, sample, size)


def _share_in(x: float, y: float, sample: Sample, size: Size) -> bool:
    if sample.shape == "polygon":
        return in_polygon(x * size.width, y * size.height, sample.target)
    left, top, right, bottom = sample.target
    return left / size.width <= x <= right / size.width and top / size.height <= y <= bottom / size.height


def _in_pixels(rounded: Callable[[float], float], *, far_edges: bool = True) -> _Rule:
    """Compare in pixels of the picture. Without `far_edges`, the right and bottom edges do not count."""

    def rule(point: GridPoint, sample: Sample, size: Size) -> bool:
        x, y = rounded(point.share[0] * size.width), rounded(point.share[1] * size.height)
        if sample.shape == "polygon":
            return in_polygon(x, y, sample.target)
        left, top, right, bottom = sample.target
        on_far_edge = x == right or y == bottom
        return left <= x <= right and top <= y <= bottom and (far_edges or not on_far_edge)

    return rule


def _grid_box(point: GridPoint, sample: Sample, size: Size) -> bool:
    """Compare on the grid of 1000, to which the box is widened."""
    if sample.shape == "polygon":
        return _inclusive(point, sample, size)
    shares = [number / side * 1000 for number, side in zip(sample.target, (size.width, size.height) * 2, strict=True)]
    left, top, right, bottom = *map(math.floor, shares[:2]), *map(math.ceil, shares[2:])
    return left <= point.x <= right and top <= point.y <= bottom


def _misread(point: GridPoint, sample: Sample, size: Size) -> bool:
    """Compare as MAI-UI's copy of OSWorld-G does: it takes a polygon's first two corners for x, y, width and height."""
    if sample.shape == "polygon":
        x, y, width, height = sample.target[:4]
        sample = replace(sample, shape="box", target=(x, y, x + width, y + height))
    return _inclusive(point, sample, size)


#: The published rules by name. Numbers in the names are divisors of the points that a model writes.
RULES: Mapping[str, _Rule] = {
    OFFICIAL: _inclusive,
    "/999": _divided_by(999),
    "/1000": _divided_by(1000),
    "half-open": _in_pixels(float, far_edges=False),
    "int() pixels": _in_pixels(int),
    "round() pixels": _in_pixels(round),
    "box on the 1000 grid": _grid_box,
    "MAI-UI's polygons": _misread,
}
_OF_THOUSAND = {"/999", "/1000", "box on the 1000 grid"}


def point_suits(rule: str, point: GridPoint) -> bool:
    """Return whether a rule can be applied: rules for a grid of 1000 need a point on such a grid."""
    grid = point.grid
    return rule not in _OF_THOUSAND or (999 <= grid.width <= 1000 and 999 <= grid.height <= 1000 and not grid.left)


def in_polygon(x: float, y: float, corners: tuple[float, ...]) -> bool:
    """Return whether a point is in a polygon: even-odd rule, by a ray to the right."""
    points = list(zip(corners[::2], corners[1::2], strict=True))
    inside = False
    for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1], strict=True):
        if (ay > y) != (by > y) and x < ax + (y - ay) * (bx - ax) / (by - ay):
            inside = not inside
    return inside
