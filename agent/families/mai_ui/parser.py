"""Reads MAI-UI's answers: navigation, grounding and tool calls. Total: no text raises, nothing unclear clicks.

Accepted besides the published form (facts, "Models break their format"): no `<tool_call>` tag, no or another thinking
tag, `</think>` alone, a closing tag cut off, braces too many or too few, raw newlines, a code fence, a call that is
nested or flattened. Refused: a call cut in the middle, several different calls without tags, points off the grid.
"""

import re
from collections.abc import Mapping
from typing import Any

from agent.actions import CallTool, Click
from agent.families.base import Call, Decision, ParseFailure
from agent.families.jsonish import JsonFailure, clean_text, first_object
from agent.families.mai_ui.arguments import ACTION_NAMES, ArgumentError, Vocabulary, read_action
from agent.families.points import PointError, read_pair
from agent.geometry import Grid, GridPoint

#: The function name under which actions are called; desktop models of the same lineage say `computer_use`.
ACTION_CALLS = frozenset({"mobile_use", "computer_use"})

_THINK_CLOSE = re.compile(r"</\s*think(?:ing)?\s*>", re.IGNORECASE)
_THINK_OPEN = re.compile(r"<\s*think(?:ing)?\s*>", re.IGNORECASE)
_CALL_OPEN = re.compile(r"<\s*tool_call\s*>", re.IGNORECASE)
_CALL_CLOSE = re.compile(r"<\s*/\s*tool_call\s*>?", re.IGNORECASE)
_ANSWER_OPEN = re.compile(r"<\s*answer\s*>", re.IGNORECASE)
_GROUNDING_TAG = re.compile(r"<\s*/?\s*grounding_think\s*>", re.IGNORECASE)
_POINT_KEYS = frozenset({"coordinate", "coordinates", "point", "bbox", "bbox_2d", "box"})
_N = r"([-+]?[0-9]{1,6}(?:\.[0-9]{1,17})?)"
# Two or four numbers in brackets, ended by a bracket, brace, quote or tag: a number that is cut off does not count.
_PAIR = re.compile(rf"[\[(]\s*{_N}\s*[,，]\s*{_N}(?:\s*[,，]\s*{_N}\s*[,，]\s*{_N})?\s*(?=[\])}}<\"'])")


def parse_navigation(text: str, words: Vocabulary) -> Decision | ParseFailure:
    """The decision in a navigation answer."""
    text = clean_text(text)
    if not text.strip():
        return ParseFailure("empty", "the answer is empty")
    thought, rest = _split_thought(text)
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


def _split_thought(text: str) -> tuple[str, str]:
    """The reasoning, and the text that may hold the call.

    The reasoning ends at the first closing tag, as in the published client, so that a call which is only talked about
    is never carried out.
    """
    closing = _THINK_CLOSE.search(text)
    if closing:
        before, rest = text[: closing.start()], text[closing.end() :]
        if _CALL_OPEN.search(before) and not _CALL_OPEN.search(rest) and "{" not in rest:
            call = _CALL_OPEN.search(before)  # the thinking tag was closed after the call instead of before it
            assert call is not None
            before, rest = before[: call.start()], before[call.start() :]
    else:
        call = _CALL_OPEN.search(text)
        cut = call.start() if call else (text.find("{") if "{" in text else len(text))
        before, rest = text[:cut], text[cut:]
    opening = _THINK_OPEN.search(before)
    thought = before[opening.end() :] if opening else before
    return thought.strip().strip('"').removesuffix("```json").removesuffix("```").strip(), rest


def _find_call(rest: str) -> dict[str, Any] | ParseFailure:
    opening = _CALL_OPEN.search(rest)
    if opening is None:
        return _find_untagged(rest)
    body = rest[opening.end() :]
    while (nested := _CALL_OPEN.match(body.lstrip())) is not None:
        body = body.lstrip()[nested.end() :]
    closing = _CALL_CLOSE.search(body)
    found = first_object(body[: closing.start()] if closing else body, closed=closing is not None)
    if isinstance(found, JsonFailure):
        if found.kind == "none" and closing is None:
            return ParseFailure("truncated", "the answer ends before the call")
        return _no_object(found)
    return found[0]


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
        if ("action" in value or "name" in value) and value not in candidates:
            candidates.append(value)
    if len(candidates) > 1:
        return ParseFailure("ambiguous", "there are several calls and no <tool_call> tag says which one counts")
    if candidates:
        return candidates[0]
    if failure is not None and failure.kind == "truncated":
        return failure
    return ParseFailure("no_action", "there is no tool call in the answer")


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
    for candidate in (body, text):
        if (pair := _grounding_pair(candidate)) is not None:
            point = GridPoint(pair[0], pair[1], grid)
            return Decision(thought, Click(point), Call("grounding", {"coordinate": list(pair)}))
    if "[" in body and "]" not in body:
        return ParseFailure("truncated", "the answer ends in the middle of the coordinate", thought)
    return ParseFailure("no_action", "there is no coordinate in the answer", thought)


def _split_grounding(text: str) -> tuple[str, str]:
    answer = None
    for answer in _ANSWER_OPEN.finditer(text):  # noqa: B007 -- the last one counts
        pass
    tags = list(_GROUNDING_TAG.finditer(text))
    if answer is not None:
        before, body = text[: answer.start()], text[answer.end() :]
    elif tags:
        before, body = text[: tags[-1].start()], text[tags[-1].end() :]
    else:
        before, body = "", text
    return _GROUNDING_TAG.sub("", before).strip(), body


def _grounding_pair(text: str) -> tuple[float, float] | None:
    """The pair in an answer: from its JSON if it is some, else the last bracketed pair in the text."""
    found = first_object(text, closed="<" in text)
    if not isinstance(found, JsonFailure):
        nested = found[0].get("arguments")
        for value in (found[0], nested if isinstance(nested, dict) else {}):
            for key in _POINT_KEYS & value.keys():
                try:
                    return read_pair(value[key])
                except PointError:
                    continue
    last = None
    for last in _PAIR.finditer(text):  # noqa: B007 -- the last one counts
        pass
    if last is None:
        return None
    return read_pair([float(number) for number in last.groups() if number is not None])
