"""Parses grounding answers in all formats of grounders. It never raises, and gives no point if the answer is unclear.

Accepted: JSON with `x` and `y`, or with a point or box under a usual name, also in a list; `Click(x, y)`, `(x, y)`,
`[x, y]`, tags such as `<point>`, and two numbers alone. Rejected: a truncated answer, several different points without
a mark for the right one, fractions where a grid is expected.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from agent.core.actions import Absent, Click
from agent.core.geometry import Grid, GridPoint
from agent.families.base import Call, Decision, ParseFailure
from agent.families.shared.answer_parts import AnswerParts, take_apart
from agent.families.shared.lenient_json import first_object, open_brackets
from agent.families.shared.points import PointError, read_pair
from foundation.chat_stream import Answer

#: Which of several points counts. "only" rejects several; for "box", two are the corners of a box, whose centre counts.
Which: TypeAlias = Literal["only", "first", "last", "box"]

#: The point that means "there is no such thing".
NOWHERE = (-1.0, -1.0)

_KEYS = ("coordinate", "coordinates", "point", "point_2d", "position", "click", "bbox", "bbox_2d", "box")
_NESTED = ("arguments", "tool_call", "action", "answer")
_N = r"([-+]?[0-9]{1,6}(?:\.[0-9]{1,17})?)"
_COMMA = r"\s*[,，]\s*"
# Two or four numbers, then a bracket, brace, quote or tag: a truncated number does not count.
_PAIR = re.compile(
    rf"[\[(（]\s*(?:x\s*=\s*)?{_N}{_COMMA}(?:y\s*=\s*)?{_N}(?:{_COMMA}{_N}{_COMMA}{_N})?\s*(?=[\])）}}<\"'])"
)
_GAP = r"(?:\s*[,，]\s*|\s+)"
_TAG = re.compile(rf"<\s*(?:point|b?box|click)\s*>\s*{_N}{_GAP}{_N}(?:{_GAP}{_N}{_GAP}{_N})?\s*<")
_BARE = re.compile(rf"\s*{_N}{_COMMA}{_N}\s*\.?\s*")
_MOST_OBJECTS = 20


def pointed(
    answer: Answer,
    grid: Grid,
    which: Which = "only",
    absent: Callable[[str, Sequence[tuple[float, float]]], bool] | None = None,
) -> Decision | ParseFailure:
    """Return the point in an answer, as a click; `Absent` for (-1, -1), which grounders are trained to answer.

    A point off the grid is kept, and clamped when it is mapped: an evaluation needs the point as the model wrote it,
    and nothing is clicked because of this answer alone. `absent` returns, for the text and its points, whether the
    model says in another way that the target is not there.
    """
    parts = take_apart(answer)
    if isinstance(parts.calls, ParseFailure):
        return parts.calls
    try:
        points = _points(parts, fractions=max(grid.width, grid.height) <= 1)
    except PointError as error:
        return ParseFailure("bad_point", str(error), parts.thought)
    if points == [NOWHERE] or (absent is not None and absent(parts.text, points)):
        return Decision(parts.thought, (Absent(),), (Call("grounding", {}),))
    if parts.cut:
        return ParseFailure("truncated", "the answer ends inside the thinking", parts.thought)
    if not points:
        return _nothing(parts)
    if which == "box" and len(points) == 2:
        (left, top), (right, bottom) = points
        if left <= right and top <= bottom:  # otherwise these are two places
            points = [((left + right) / 2, (top + bottom) / 2)]
    if which in ("only", "box") and len(points) > 1:
        return ParseFailure("ambiguous", "there are several points and no mark which one counts", parts.thought)
    x, y = points[-1 if which == "last" else 0]
    return Decision(parts.thought, (Click(GridPoint(x, y, grid)),), (Call("grounding", {"coordinate": [x, y]}),))


def _nothing(parts: AnswerParts) -> ParseFailure:
    text = parts.text.strip()
    if not text:
        return ParseFailure("empty", "the answer is empty", parts.thought)
    begun = min((text.find(mark) for mark in "{[(（" if mark in text), default=-1)
    if begun >= 0 and ("（" in text[begun:] or open_brackets(text[begun:].replace("(", "[").replace(")", "]"))):
        return ParseFailure("truncated", "the answer ends before the point does", parts.thought)
    return ParseFailure("no_action", "there is no point in the answer", parts.thought)


def _points(parts: AnswerParts, *, fractions: bool) -> list[tuple[float, float]]:
    """Return the distinct points of an answer, in order. Raises PointError: one is in another coordinate space."""
    if parts.calls:
        return _unique(_in_object(call.arguments, fractions=fractions) for call in parts.calls)  # type: ignore[union-attr]
    objects: list[tuple[float, float] | None] = []
    remaining = parts.text
    for _ in range(_MOST_OBJECTS):
        found = first_object(remaining, closed=False)
        if isinstance(found, ParseFailure):
            break
        value, remaining = found
        objects.append(_in_object(value, fractions=fractions))
    if points := _unique(objects):
        return points
    pattern = _TAG if _TAG.search(parts.text) else _PAIR
    written = [
        [float(number) for number in match.groups() if number is not None] for match in pattern.finditer(parts.text)
    ]
    if not written and (bare := _BARE.fullmatch(parts.text)):
        written = [[float(bare[1]), float(bare[2])]]
    return _unique(read_pair(pair, fractions=fractions) for pair in written)


def _in_object(value: Mapping[str, Any], *, fractions: bool) -> tuple[float, float] | None:
    """Return the point in a JSON object; None if it has none. Raises PointError: it is in another coordinate space."""
    nested = [value[key] for key in _NESTED if isinstance(value.get(key), Mapping)]
    for one in (value, *nested):
        for written in (*(one[key] for key in _KEYS if key in one), one):
            try:
                return read_pair(written, fractions=fractions)
            except PointError as error:
                if error.fraction:
                    raise
    return None


def _unique(points: Any) -> list[tuple[float, float]]:
    return list(dict.fromkeys(point for point in points if point is not None))
