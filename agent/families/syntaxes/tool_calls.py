"""Calls that the server read (OpenAI's `tool_calls`), and the text that stands for them in records and histories."""

import json
import re

from agent.families.base import Call, ParseFailure
from agent.families.lenient_json import JsonFailure, clean_text, first_object
from agent.families.syntaxes.json_tags import split_thought
from foundation.chat_stream import Answer, ToolCall

_TAG = re.compile(r"<tool_call>\s*")


def tool_calls(answer: Answer) -> list[Call] | ParseFailure:
    """The calls of an answer, in order; those of its text, each in a `<tool_call>`, where the server read none."""
    found = [_read(call) for call in answer.tool_calls]
    if not found:
        _, rest = split_thought(clean_text(answer.content))
        if rest is None:
            return ParseFailure("truncated", "the answer ends inside the thinking")
        found = [_written(piece) for piece in _TAG.split(rest)[1:]]
    calls: list[Call] = []
    for call in found:
        if isinstance(call, ParseFailure):
            return call
        calls.append(call)
    return calls or ParseFailure("no_action", "there is no tool call in the answer")


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


def _read(call: ToolCall) -> Call | ParseFailure:
    name = clean_text(call.name).strip()[:200]
    if not name:
        return ParseFailure("bad_argument", "a tool call has no name")
    found = first_object(call.arguments.strip() or "{}", closed=False)
    if isinstance(found, JsonFailure):
        return _unreadable(f"the arguments of {name}", found)
    return Call(name, found[0], clean_text(call.id))


def _written(piece: str) -> Call | ParseFailure:
    found = first_object(piece, closed=False)
    if isinstance(found, JsonFailure):
        return _unreadable("the tool call", found)
    name, arguments = found[0].get("name"), found[0].get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return ParseFailure("bad_argument", 'a tool call is {"name": ..., "arguments": {...}}')
    return Call(name[:200], arguments)


def _unreadable(what: str, failure: JsonFailure) -> ParseFailure:
    return ParseFailure(
        "truncated" if failure.kind == "cut" else "bad_json", f"{what} cannot be read: {failure.message}"
    )
