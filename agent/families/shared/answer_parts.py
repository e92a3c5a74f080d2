"""Splits an answer into reasoning, text and calls, wherever the server put them, for all families.

Servers either separate the reasoning or leave it in the text, in tags that differ by model. With the wrong parser, a
server returns the whole answer as reasoning, call included, and an empty text.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agent.families.base import Call, ParseFailure
from agent.families.shared.json_calls import json_call, named, read_tool_calls, split_thought
from agent.families.shared.lenient_json import clean_text
from foundation.chat_stream import Answer

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
    before, rest = split_thought(text)
    if rest is None:
        return before, ParseFailure("truncated", "the answer ends inside the thinking")
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
