"""Reads MAI-UI's grounding answers. Total: no text raises, nothing unclear gives a point."""

import re

from agent.core.actions import Click
from agent.core.geometry import Grid, GridPoint
from agent.families.base import Call, Decision, ParseFailure
from agent.families.shared.lenient_json import JsonFailure, clean_text, first_object
from agent.families.shared.points import PointError, read_pair

_ANSWER_OPEN = re.compile(r"<\s*answer\s*>", re.IGNORECASE)
_ANSWER_CLOSE = re.compile(r"<\s*/\s*answer", re.IGNORECASE)
_GROUNDING_OPEN = re.compile(r"<\s*(?:grounding_)?think(?:ing)?\s*>", re.IGNORECASE)
_GROUNDING_CLOSE = re.compile(r"<\s*/\s*(?:grounding_)?think(?:ing)?\s*>", re.IGNORECASE)
_POINT_KEYS = ("coordinate", "coordinates", "point", "bbox", "bbox_2d", "box")
_N = r"([-+]?[0-9]{1,6}(?:\.[0-9]{1,17})?)"
# Two or four numbers in brackets, ended by a bracket, brace, quote or tag: a number that is cut off does not count.
_PAIR = re.compile(rf"[\[(]\s*{_N}\s*[,，]\s*{_N}(?:\s*[,，]\s*{_N}\s*[,，]\s*{_N})?\s*(?=[\])}}<\"'])")


def parse_grounding(text: str, grid: Grid, *, cut: bool = False) -> Decision | ParseFailure:
    """The point of a grounding answer, as a click.

    Nothing is clicked on the strength of this alone, so a point off the grid is kept and clamped where it is mapped:
    an evaluation then scores what the model said. `cut`: the token limit ended the answer.
    """
    text = clean_text(text)
    if not text.strip():
        return ParseFailure("empty", "the answer is empty")
    thought, body = _split_grounding(text, cut)
    if body is None:
        return ParseFailure("truncated", "the answer ends inside the thinking", thought)
    try:
        pairs = _grounding_pairs(body)
    except PointError as error:
        return ParseFailure("bad_point", str(error), thought)
    if len(pairs) > 1:
        return ParseFailure("ambiguous", "there are several coordinates and no mark which one counts", thought)
    if pairs:
        x, y = pairs[0]
        return Decision(thought, (Click(GridPoint(x, y, grid)),), (Call("grounding", {"coordinate": [x, y]}),))
    closed = _ANSWER_CLOSE.search(body) is not None
    if not closed and (not body.strip() or "{" in body or ("[" in body and "]" not in body)):
        return ParseFailure("truncated", "the answer ends before the coordinate does", thought)
    return ParseFailure("no_action", "there is no coordinate in the answer", thought)


def _split_grounding(text: str, cut: bool) -> tuple[str, str | None]:
    """The reasoning, and what was answered; None when the reasoning has no end: points named in it are no answer.

    A whole answer in its tags at the very end is one all the same: only the closing tag of the reasoning is missing,
    unless the token limit cut the answer off just there.
    """
    opening, closing = _GROUNDING_OPEN.search(text), _GROUNDING_CLOSE.search(text)
    if opening and not closing:
        closing = _ANSWER_OPEN.search(text, opening.end())
        if cut or closing is None or not _ANSWER_CLOSE.search(text.rstrip()[-12:]):
            return text[opening.end() :].strip(), None
        return text[opening.end() : closing.start()].strip(), text[closing.end() :]
    before, body = (text[: closing.start()], text[closing.end() :]) if closing else ("", text)
    answer = _ANSWER_OPEN.search(body)
    if answer is not None:
        before, body = before or body[: answer.start()], body[answer.end() :]
        end = _ANSWER_CLOSE.search(body)
        body = body[: end.end()] if end else body
    return _GROUNDING_OPEN.sub("", before).strip(), body


def _grounding_pairs(body: str) -> list[tuple[float, float]]:
    """The different pairs in an answer: the one of its JSON if it is some, else all in brackets.

    Raises PointError: there is one, but in another coordinate space.
    """
    found = first_object(body, closed=_ANSWER_CLOSE.search(body) is not None)
    if not isinstance(found, JsonFailure):
        nested = found[0].get("arguments")
        for value in (found[0], nested if isinstance(nested, dict) else {}):
            for written in (*(value[key] for key in _POINT_KEYS if key in value), value):
                try:
                    return [read_pair(written, fractions=False)]
                except PointError as error:
                    if error.reason == "fraction":
                        raise
    pairs = [[float(number) for number in match.groups() if number is not None] for match in _PAIR.finditer(body)]
    return list(dict.fromkeys(read_pair(pair, fractions=False) for pair in pairs))
