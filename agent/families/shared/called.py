"""The calls of an answer, wherever the server put them: read by it, in the text, or in what it took for reasoning."""

from collections.abc import Callable
from typing import TypeAlias

from agent.families.base import Call, ParseFailure
from agent.families.shared.answer_parts import Heard
from agent.families.syntaxes.json_tags import json_call, named, split_thought

#: Reads a text: what is said before the calls, and the calls.
ReadText: TypeAlias = Callable[[str, str], tuple[str, list[Call] | ParseFailure]]

_NONE = "there is no tool call in the answer"


def in_json(text: str, function: str) -> tuple[str, list[Call] | ParseFailure]:
    """What is said before the calls in a text, and the calls, as JSON in <tool_call> tags."""
    before, rest = split_thought(text)
    if rest is None:
        return before, ParseFailure("truncated", "the answer ends inside the thinking")
    return before, json_call(rest, function)


def called(told: Heard, function: str, read: ReadText = in_json) -> tuple[str, list[Call] | ParseFailure]:
    """What an answer says beside its reasoning, and its calls; `function` is meant by calls that name only the action.

    In what the server took for reasoning one call counts; several may be talk of calls.
    """
    if told.cut:
        return "", ParseFailure("truncated", "the answer ends inside the thinking")
    if told.calls is None and not told.text.strip():
        said = bool(told.thought)
        return "", ParseFailure("no_action", _NONE) if said else ParseFailure("empty", "the answer is empty")
    before, calls = read(told.text, function) if told.calls is None else ("", told.calls)
    if isinstance(calls, ParseFailure):
        return before, calls
    if told.swallowed and any(call != calls[0] for call in calls):
        return before, ParseFailure("ambiguous", "there are several calls in the reasoning, and none after it")
    return before, [named(call, function) for call in calls]
