"""What was said in an answer, wherever the server put it: reasoning, text and calls, told apart once for all families.

Servers keep reasoning apart or leave it in the text, in tags that differ by model; a server with the wrong parser takes
the whole answer, call and all, for reasoning and leaves the text empty.
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
_OPEN = re.compile(r"[<◁]\s*[a-z_:]{0,20}think[a-z_0-9]{0,60}\s*[>▷]", re.IGNORECASE)
_CLOSE = re.compile(r"(?:<\s*/|◁\s*/)\s*[a-z_:]{0,20}think[a-z_0-9]{0,60}\s*[>▷]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """An answer, taken apart.

    Args:
        thought: what the model thought, wherever that stood.
        text: what it said besides; where calls are written unless the server read them.
        calls: those that the server read; a failure where one cannot be used. None where it read none.
        cut: the text ends inside the reasoning.
        swallowed: `text` is what the server took for reasoning, as nothing else was said: one call in it counts, but
            several may be talk about calls.
    """

    thought: str
    text: str
    calls: tuple[Call, ...] | ParseFailure | None = None
    cut: bool = False
    swallowed: bool = False


def take_apart(answer: Answer) -> AnswerParts:
    """An answer, taken apart."""
    reasoning, content = clean_text(answer.reasoning).strip(), clean_text(answer.content)
    if answer.tool_calls:
        inline = _inline(content)
        thought = "\n".join(part for part in (reasoning, inline.thought, inline.text.strip()) if part)
        return AnswerParts(thought, inline.text, read_tool_calls(answer.tool_calls))
    if not content.strip() and reasoning:
        return AnswerParts("", _CLOSE.sub("", _OPEN.sub("", reasoning)), swallowed=True)
    inline = _inline(content)
    thought = "\n".join(part for part in (reasoning, inline.thought) if part)
    return AnswerParts(thought, inline.text, cut=inline.cut)


def _inline(content: str) -> AnswerParts:
    """The reasoning in tags at the beginning of a text, and the rest: it ends at the first closing tag.

    So a call which is only talked about is never carried out. A chat template may have written the opening tag.
    """
    opening, closing = _OPEN.search(content), _CLOSE.search(content)
    if closing is not None and (opening is None or opening.start() < closing.start()):
        begin = 0 if opening is None else opening.end()
        before = content[: opening.start()] if opening is not None else ""
        return AnswerParts((before + content[begin : closing.start()]).strip(), content[closing.end() :])
    if opening is not None and not content[: opening.start()].strip():
        return AnswerParts(content[opening.end() :].strip(), "", cut=True)
    return AnswerParts("", content)


#: Reads a text: what is said before the calls, and the calls.
ReadText: TypeAlias = Callable[[str, str], tuple[str, list[Call] | ParseFailure]]

_NONE = "there is no tool call in the answer"


def in_json(text: str, function: str) -> tuple[str, list[Call] | ParseFailure]:
    """What is said before the calls in a text, and the calls, as JSON in <tool_call> tags."""
    before, rest = split_thought(text)
    if rest is None:
        return before, ParseFailure("truncated", "the answer ends inside the thinking")
    return before, json_call(rest, function)


def calls_in(told: AnswerParts, function: str, read: ReadText = in_json) -> tuple[str, list[Call] | ParseFailure]:
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
