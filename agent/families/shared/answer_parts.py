"""Splits an answer into reasoning, text and calls, wherever the server put them, for all families.

Servers either separate the reasoning or leave it in the text, in tags that differ by model. With the wrong parser, a
server returns the whole answer as reasoning, call included, and an empty text.

Calls are JSON in `<tool_call>` tags after a thought. Accepted besides: no `<tool_call>` tag, no thinking tag or another
one, `</think>` alone, a truncated closing tag, too many or too few braces, raw newlines, a code fence, a nested or
flattened call. Rejected: a truncated call, a call inside the thinking (also if the thinking has no end, because the
answer may be truncated there), several different calls without tags.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from agent.families.base import ArgumentError, Call, FailureKind, ParseFailure
from agent.families.shared.computer_use import ACTION_NAMES, FUNCTIONS
from agent.families.shared.lenient_json import clean_text, first_object, only_object, open_brackets
from foundation.chat_stream import Answer, ToolCall

#: <think>, <thinking>, <gui_think>, <think_never_used_51bce...>, <seed:think>, Kimi's ◁think▷.
THINKING = re.compile(r"[<◁]\s*[a-z_:]{0,20}think[a-z_0-9]{0,60}\s*[>▷]", re.IGNORECASE)
_CLOSE = re.compile(r"(?:<\s*/|◁\s*/)\s*[a-z_:]{0,20}think[a-z_0-9]{0,60}\s*[>▷]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """An answer, split into its parts."""

    thought: str  # the model's reasoning, from any place
    text: str  # the rest; it contains the calls unless the server parsed them
    #: the calls that the server parsed; a failure if one cannot be used. None if the server parsed none.
    calls: tuple[Call, ...] | ParseFailure | None = None
    cut: bool = False  # whether the text ends inside the reasoning
    #: whether `text` is what the server returned as reasoning, because nothing else was there. One call in it counts;
    #: several calls may be mere deliberation.
    swallowed: bool = False


def take_apart(answer: Answer) -> AnswerParts:
    """Split an answer into its parts."""
    reasoning, content = clean_text(answer.reasoning).strip(), clean_text(answer.content)
    if answer.tool_calls:
        inline = _inline(content)
        thought = "\n".join(part for part in (reasoning, inline.thought, inline.text.strip()) if part)
        return AnswerParts(thought, inline.text, read_tool_calls(answer.tool_calls))
    if not content.strip() and reasoning:
        return AnswerParts("", _CLOSE.sub("", THINKING.sub("", reasoning)), swallowed=True)
    inline = _inline(content)
    thought = "\n".join(part for part in (reasoning, inline.thought) if part)
    return AnswerParts(thought, inline.text, cut=inline.cut)


def _inline(content: str) -> AnswerParts:
    """Split off the tagged reasoning at the beginning of a text. It ends at the first closing tag.

    So a call that the reasoning only mentions is never carried out. The opening tag may be missing, because a chat
    template wrote it.
    """
    opening, closing = THINKING.search(content), _CLOSE.search(content)
    if closing is not None and (opening is None or opening.start() < closing.start()):
        begin = 0 if opening is None else opening.end()
        before = content[: opening.start()] if opening is not None else ""
        return AnswerParts((before + content[begin : closing.start()]).strip(), content[closing.end() :])
    if opening is not None and not content[: opening.start()].strip():
        return AnswerParts(content[opening.end() :].strip(), "", cut=True)
    return AnswerParts("", content)


#: Parses a text: returns what precedes the calls, and the calls.
ReadText: TypeAlias = Callable[[str, str], tuple[str, list[Call] | ParseFailure]]

_NONE = "there is no tool call in the answer"


def in_json(text: str, function: str, *, several: bool = False) -> tuple[str, list[Call] | ParseFailure]:
    """Return what precedes the calls in a text, and the calls, as JSON in <tool_call> tags; see `json_call`."""
    call = _call_tag(text) or _BRACE.search(text)
    before, rest = (text[: call.start()], text[call.start() :]) if call else (text, "")
    if THINKING.search(before) and not _CLOSE.search(before):
        return before, ParseFailure("truncated", "the answer ends inside the thinking")
    before = _CLOSE.sub("", THINKING.sub("", before)).strip().strip('"')
    before = before.removesuffix("```json").removesuffix("```").strip()
    return before, json_call(rest, function, several=several)


def calls_in(parts: AnswerParts, function: str, read: ReadText = in_json) -> tuple[str, list[Call] | ParseFailure]:
    """Return an answer's text beside the reasoning, and its calls.

    `function` is the name for calls that only name an action. If the server returned everything as reasoning, one call
    counts; several may be mere deliberation.
    """
    if parts.cut:
        return "", ParseFailure("truncated", "the answer ends inside the thinking")
    if parts.calls is None and not parts.text.strip():
        has_thought = bool(parts.thought)
        return "", ParseFailure("no_action", _NONE) if has_thought else ParseFailure("empty", "the answer is empty")
    before, calls = read(parts.text, function) if parts.calls is None else ("", parts.calls)
    if isinstance(calls, ParseFailure):
        return before, calls
    if parts.swallowed and any(call != calls[0] for call in calls):
        return before, ParseFailure("ambiguous", "there are several calls in the reasoning, and none after it")
    return before, [named(call, function) for call in calls]


_BRACE = re.compile("[{｛]")
_CALL_OPEN = re.compile(r"<\s*tool_call\s*>(?:\s*<\s*tool_call\s*>)*", re.IGNORECASE)
_CALL_CLOSE = re.compile(r"<\s*/\s*tool_call\s*>?", re.IGNORECASE)


def json_call(rest: str, function: str, *, several: bool = False) -> list[Call] | ParseFailure:
    """Return the call after the thought, and later tagged calls. `function` names calls that only name an action.

    With `several`, all calls are meant, and a broken one becomes a call without arguments and ends the list. Otherwise
    only the first is meant, and repetitions of it and broken calls are skipped.
    """
    try:
        first, more = _find_call(rest)
        return [_as_call(first, function), *_further(more, first, function, several=several)]
    except ArgumentError as error:
        return ParseFailure(error.kind, str(error))


def _call_tag(text: str) -> re.Match[str] | None:
    """Find the opening tag of the call. A tag inside a string of an untagged call is text, for example text to type."""
    opening = _CALL_OPEN.search(text)
    if opening is None:
        return None
    brace = text.find("{", 0, opening.start())
    if brace >= 0 and '"' in open_brackets(text[brace : opening.start()]):
        return None
    return opening


def _further(text: str, first: Mapping[str, Any], function: str, *, several: bool) -> list[Call]:
    """Return the calls after the first one; see `json_call`."""
    calls: list[Call] = []
    for opening in islice(_CALL_OPEN.finditer(text), 20):
        found = first_object(text[opening.end() :], closed=False)
        if not isinstance(found, ParseFailure):
            if found[0] == first and not several:
                continue
            with suppress(ArgumentError):
                calls.append(_as_call(found[0], function))
                continue
        if several:
            return [*calls, Call(function, {})]
    return calls


def _find_call(rest: str) -> tuple[dict[str, Any], str]:
    """Return the object of the call, and the text after its closing tag. Raises ArgumentError."""
    opening = _call_tag(rest)
    if opening is None:
        return _find_untagged(rest), ""
    body = rest[opening.end() :]
    failure: ParseFailure | None = None
    for closing in islice(_CALL_CLOSE.finditer(body), 4):  # the first closing tag may be inside a string of the call
        found = first_object(body[: closing.start()], closed=True)
        if not isinstance(found, ParseFailure):
            return found[0], body[closing.end() :]
        failure = failure or found
    found = first_object(body, closed=False)  # no closing tag, or all closing tags are text of the call
    if not isinstance(found, ParseFailure):
        return found[0], ""
    if failure is None and found.kind == "no_action":
        raise ArgumentError("truncated", "the answer ends before the call")
    failure = failure or found
    lead = {"no_action": "the tool call is empty: ", "bad_json": "the tool call cannot be read: "}.get(failure.kind, "")
    raise ArgumentError(failure.kind, lead + failure.message)


def _find_untagged(rest: str) -> dict[str, Any]:
    """Return an untagged call, if it is the only one in the text. Raises ArgumentError."""
    try:
        return only_object(rest, _looks_like_call, "tool call")
    except ArgumentError as error:
        if error.kind == "bad_json":  # a broken object outside tags may not be a call
            raise ArgumentError("no_action", "there is no tool call in the answer") from error
        raise


def _looks_like_call(value: Mapping[str, Any]) -> bool:
    """Return whether an untagged object is a call, and not data that the model mentions."""
    if "action" in value or isinstance(value.get("function"), dict):
        return True
    return "name" in value and ("arguments" in value or "parameters" in value)


def _as_call(value: Mapping[str, Any], function: str) -> Call:
    """Return the call, with arguments that may be nested, flattened or given as text.

    Raises ArgumentError: there is neither a name nor an action, or the arguments are no object.
    """
    if isinstance(value.get("function"), dict):  # {"type": "function", "function": {"name", "arguments"}}
        value = value["function"]
    name = value.get("name")
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        read = first_object(arguments, closed=True)
        arguments = None if isinstance(read, ParseFailure) else read[0]
    if arguments is None:
        arguments = {key: item for key, item in value.items() if key not in ("name", "arguments", "parameters")}
    if not isinstance(arguments, dict):
        raise ArgumentError("bad_argument", '"arguments" must be an object')
    if name is None and "action" in arguments:
        return Call(function, arguments)
    if not isinstance(name, str) or not name.strip():
        raise ArgumentError("bad_argument", 'the call has no "name"')
    return named(Call(name, arguments), function)


def named(call: Call, function: str) -> Call:
    """Correct the name of a call. If an action's name is in its place, return a call of `function` with this action."""
    plain = call.name.strip()
    if plain.lower() in FUNCTIONS:
        return Call(plain.lower(), call.arguments, call.id)
    if plain.lower() in ACTION_NAMES and "action" not in call.arguments:
        return Call(function, {"action": plain, **call.arguments}, call.id)
    return Call(plain[:200], call.arguments, call.id)


def read_tool_calls(calls: Sequence[ToolCall]) -> tuple[Call, ...] | ParseFailure:
    """Return calls that the server parsed, in order; a failure if one of them cannot be used."""
    try:
        return tuple(_read(call) for call in calls)
    except ArgumentError as error:
        return ParseFailure(error.kind, str(error))


def as_text(answer: Answer) -> str:
    """Return the answer as one text. Parts that the server separated are put back into the models' own tags.

    A truncated call stays truncated: nothing is closed that the model left open.
    """
    closes = re.search(r"</\s*think", answer.content)
    reasoning = re.sub(r"</(?=\s*think)", "< /", answer.reasoning)
    thought = f"<think>\n{reasoning}\n</think>\n" if reasoning and not closes else ""
    return thought + "\n".join(text for text in (answer.content, *map(_as_text, answer.tool_calls)) if text)


def _as_text(call: ToolCall) -> str:
    opening = f'<tool_call>\n{{"name": {json.dumps(call.name)}, "arguments": '
    try:
        json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return opening + call.arguments
    return f"{opening}{call.arguments or '{}'}}}\n</tool_call>"


def _read(call: ToolCall) -> Call:
    name = clean_text(call.name).strip()[:200]
    if not name:
        raise ArgumentError("bad_argument", "a tool call has no name")
    return Call(name, _object(call.arguments.strip() or "{}", f"the arguments of {name}"), clean_text(call.id))


def tagged_calls(text: str) -> list[Call] | ParseFailure:
    """Return the calls in a text, each after a <tool_call> tag, with their names unchanged."""
    try:
        return [_written(piece) for piece in text.split("<tool_call>")[1:]]
    except ArgumentError as error:
        return ParseFailure(error.kind, str(error))


def _written(piece: str) -> Call:
    found = _object(piece, "the tool call")
    name, arguments = found.get("name"), found.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ArgumentError("bad_argument", 'a tool call is {"name": ..., "arguments": {...}}')
    return Call(name[:200], arguments)


def _object(text: str, what: str) -> dict[str, Any]:
    found = first_object(text, closed=False)
    if isinstance(found, ParseFailure):
        kind: FailureKind = "truncated" if found.kind == "truncated" else "bad_json"
        raise ArgumentError(kind, f"{what} cannot be read: {found.message}")
    return found[0]
