"""Calls that the server read (OpenAI's `tool_calls`), and the text that stands for them in records and histories."""

import json
import re
from collections.abc import Sequence
from typing import Any

from agent.families.base import ArgumentError, Call, FailureKind, ParseFailure
from agent.families.shared.lenient_json import JsonFailure, clean_text, first_object
from agent.families.syntaxes.json_tags import split_thought
from foundation.chat_stream import Answer, ToolCall

_TAG = re.compile(r"<tool_call>\s*")


def tool_calls(answer: Answer) -> list[Call] | ParseFailure:
    """The calls of an answer, in order; those of its text, each in a `<tool_call>`, where the server read none."""
    if answer.tool_calls:
        read = read_tool_calls(answer.tool_calls)
        return read if isinstance(read, ParseFailure) else list(read)
    _, rest = split_thought(clean_text(answer.content))
    if rest is None:
        return ParseFailure("truncated", "the answer ends inside the thinking")
    try:
        calls = [_written(piece) for piece in _TAG.split(rest)[1:]]
    except ArgumentError as error:
        return ParseFailure(error.kind, str(error))
    return calls or ParseFailure("no_action", "there is no tool call in the answer")


def read_tool_calls(calls: Sequence[ToolCall]) -> tuple[Call, ...] | ParseFailure:
    """Calls that the server read, in order; a failure where one of them cannot be used."""
    try:
        return tuple(_read(call) for call in calls)
    except ArgumentError as error:
        return ParseFailure(error.kind, str(error))


def as_text(answer: Answer) -> str:
    """The answer as one text: what a server told apart, put back into the tags that models write.

    A call that is cut off stays so: nothing is closed that the model left open.
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


def _written(piece: str) -> Call:
    found = _object(piece, "the tool call")
    name, arguments = found.get("name"), found.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ArgumentError("bad_argument", 'a tool call is {"name": ..., "arguments": {...}}')
    return Call(name[:200], arguments)


def _object(text: str, what: str) -> dict[str, Any]:
    found = first_object(text, closed=False)
    if isinstance(found, JsonFailure):
        kind: FailureKind = "truncated" if found.kind == "cut" else "bad_json"
        raise ArgumentError(kind, f"{what} cannot be read: {found.message}")
    return found[0]
