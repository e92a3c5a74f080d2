"""Reads MAI-UI's answers: navigation, grounding and tool calls. Total: no text raises, nothing unclear clicks.

Accepted besides the published form (facts, "Models break their format"): no `<tool_call>` tag, no or another thinking
tag, `</think>` alone, a closing tag cut off, braces too many or too few, raw newlines, a code fence, a call that is
nested or flattened. Refused: a call cut in the middle, a call inside the thinking (also when the thinking never ends:
the answer may have been cut there), several different calls without tags, points off the grid.
"""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from agent.actions import CallTool, Click
from agent.families.base import Call, Decision, ParseFailure
from agent.families.jsonish import JsonFailure, clean_text, first_object, open_brackets
from agent.families.mai_ui.arguments import ACTION_NAMES, ArgumentError, Vocabulary, read_action
from agent.families.points import PointError, read_pair
from agent.geometry import Grid, GridPoint

#: The function name under which actions are called; desktop models of the same lineage say `computer_use`.
ACTION_CALLS = frozenset({"mobile_use", "computer_use"})

_THINK_CLOSE = re.compile(r"</\s*think(?:ing)?\s*>", re.IGNORECASE)
_THINK_OPEN = re.compile(r"<\s*think(?:ing)?\s*>", re.IGNORECASE)
_CALL_OPEN = re.compile(r"<\s*tool_call\s*>(?:\s*<\s*tool_call\s*>)*", re.IGNORECASE)
_CALL_CLOSE = re.compile(r"<\s*/\s*tool_call\s*>?", re.IGNORECASE)
_ANSWER_OPEN = re.compile(r"<\s*answer\s*>", re.IGNORECASE)
_ANSWER_CLOSE = re.compile(r"<\s*/\s*answer", re.IGNORECASE)
_GROUNDING_OPEN = re.compile(r"<\s*(?:grounding_)?think(?:ing)?\s*>", re.IGNORECASE)
_GROUNDING_CLOSE = re.compile(r"<\s*/\s*(?:grounding_)?think(?:ing)?\s*>", re.IGNORECASE)
_POINT_KEYS = ("coordinate", "coordinates", "point", "bbox", "bbox_2d", "box")
_N = r"([-+]?[0-9]{1,6}(?:\.[0-9]{1,17})?)"
# Two or four numbers in brackets, ended by a bracket, brace, quote or tag: a number that is cut off does not count.
_PAIR = re.compile(rf"[\[(]\s*{_N}\s*[,，]\s*{_N}(?:\s*[,，]\s*{_N}\s*[,，]\s*{_N})?\s*(?=[\])}}<\"'])")


def parse_navigation(text: str, words: Vocabulary) -> Decision | ParseFailure:
    """The decision in a navigation answer."""
    text = clean_text(text)
    if not text.strip():
        return ParseFailure("empty", "the answer is empty")
    thought, rest = _split_thought(text)
    if rest is None:
        return ParseFailure("truncated", "the answer ends inside the thinking", thought)
    found = _find_call(rest)
    if isinstance(found, ParseFailure):
        return ParseFailure(found.kind, found.message, thought)
    try:
        call = _as_call(found)
        if call.name not in ACTION_CALLS:
            return Decision(thought, CallTool(call.name, dict(call.arguments)), call)
        return Decision(thought, read_action(call.arguments, words), call)
    except ArgumentError as error:
        return ParseFailure(error.kind, str(error), thought)


def _split_thought(text: str) -> tuple[str, str | None]:
    """The reasoning, and the text that may hold the call; None when the reasoning has no end.

    The reasoning ends at the first closing tag, as in the published client, so that a call which is only talked about
    is never carried out.
    """
    closing = _THINK_CLOSE.search(text)
    rest: str | None
    if closing:
        before, rest = text[: closing.start()], text[closing.end() :]
    else:
        call = _call_tag(text)
        cut = call.start() if call else (text.find("{") if "{" in text else len(text))
        before, rest = text[:cut], text[cut:]
    opening = _THINK_OPEN.search(before)
    if opening and not closing:
        rest = None
    thought = before[opening.end() :] if opening else before
    return thought.strip().strip('"').removesuffix("```json").removesuffix("```").strip(), rest


def _call_tag(text: str) -> re.Match[str] | None:
    """The tag that opens the call; one inside a string of a call that has no tag is text, such as text to type."""
    opening = _CALL_OPEN.search(text)
    if opening is None:
        return None
    brace = text.find("{", 0, opening.start())
    if brace >= 0 and '"' in open_brackets(text[brace : opening.start()]):
        return None
    return opening


def _find_call(rest: str) -> dict[str, Any] | ParseFailure:
    opening = _call_tag(rest)
    if opening is None:
        return _find_untagged(rest)
    body = rest[opening.end() :]
    failure: JsonFailure | None = None
    for closing in islice(_CALL_CLOSE.finditer(body), 4):  # the first one may stand inside a string of the call
        found = first_object(body[: closing.start()], closed=True)
        if not isinstance(found, JsonFailure):
            return found[0]
        failure = failure or found
    found = first_object(body, closed=False)  # there is no closing tag, or all that were tried are text of the call
    if not isinstance(found, JsonFailure):
        return found[0]
    if failure is None and found.kind == "none":
        return ParseFailure("truncated", "the answer ends before the call")
    return _no_object(failure or found)


def _find_untagged(rest: str) -> dict[str, Any] | ParseFailure:
    """A call without its tags: taken only when it is the one call in the text."""
    candidates: list[dict[str, Any]] = []
    failure: ParseFailure | None = None
    remaining = rest
    for _ in range(20):
        found = first_object(remaining, closed=False)
        if isinstance(found, JsonFailure):
            failure = _no_object(found)
            break
        value, remaining = found
        if _looks_like_call(value) and value not in candidates:
            candidates.append(value)
    if len(candidates) > 1:
        return ParseFailure("ambiguous", "there are several calls and no <tool_call> tag says which one counts")
    if candidates:
        return candidates[0]
    if failure is not None and failure.kind == "truncated":
        return failure
    return ParseFailure("no_action", "there is no tool call in the answer")


def _looks_like_call(value: Mapping[str, Any]) -> bool:
    """Whether an object outside any tag is a call, and not data that the model speaks of."""
    if "action" in value or isinstance(value.get("function"), dict):
        return True
    return "name" in value and ("arguments" in value or "parameters" in value)


def _no_object(failure: JsonFailure) -> ParseFailure:
    match failure.kind:
        case "cut":
            return ParseFailure("truncated", failure.message)
        case "none":
            return ParseFailure("no_action", f"the tool call is empty: {failure.message}")
        case "broken":
            return ParseFailure("bad_json", f"the tool call cannot be read: {failure.message}")


def _as_call(value: Mapping[str, Any]) -> Call:
    """The function name and arguments, also when they are nested, flattened or given as text.

    Raises:
        ArgumentError: there is no name and no action, or the arguments are no object.
    """
    if isinstance(value.get("function"), dict):  # {"type": "function", "function": {"name", "arguments"}}
        value = value["function"]
    name = value.get("name")
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        read = first_object(arguments, closed=True)
        arguments = None if isinstance(read, JsonFailure) else read[0]
    if arguments is None:
        arguments = {key: item for key, item in value.items() if key not in ("name", "arguments", "parameters")}
    if not isinstance(arguments, dict):
        raise ArgumentError("bad_argument", '"arguments" must be an object')
    if name is None and "action" in arguments:
        return Call("mobile_use", arguments)
    if not isinstance(name, str) or not name.strip():
        raise ArgumentError("bad_argument", 'the call has no "name"')
    plain = name.strip()
    if plain.lower() in ACTION_CALLS:
        return Call(plain.lower(), arguments)
    if plain.lower() in ACTION_NAMES and "action" not in arguments:
        return Call("mobile_use", {"action": plain, **arguments})
    return Call(plain[:200], arguments)


def parse_grounding(text: str, grid: Grid) -> Decision | ParseFailure:
    """The point of a grounding answer, as a click.

    Nothing is clicked on the strength of this alone, so a point off the grid is kept and clamped where it is mapped:
    an evaluation then scores what the model said.
    """
    text = clean_text(text)
    if not text.strip():
        return ParseFailure("empty", "the answer is empty")
    thought, body = _split_grounding(text)
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
        return Decision(thought, Click(GridPoint(x, y, grid)), Call("grounding", {"coordinate": [x, y]}))
    closed = _ANSWER_CLOSE.search(body) is not None
    if not closed and (not body.strip() or "{" in body or ("[" in body and "]" not in body)):
        return ParseFailure("truncated", "the answer ends before the coordinate does", thought)
    return ParseFailure("no_action", "there is no coordinate in the answer", thought)


def _split_grounding(text: str) -> tuple[str, str | None]:
    """The reasoning, and what was answered; None when the reasoning has no end: points named in it are no answer.

    A whole answer in its tags at the very end is one all the same: only the closing tag of the reasoning is missing.
    """
    opening, closing = _GROUNDING_OPEN.search(text), _GROUNDING_CLOSE.search(text)
    if opening and not closing:
        closing = _ANSWER_OPEN.search(text, opening.end())
        if closing is None or not _ANSWER_CLOSE.search(text.rstrip()[-12:]):
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

    Raises:
        PointError: there is one, but in another coordinate space.
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
