"""The one reader of answers: what every dialect of chat completions comes to."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from foundation.chat_stream import Answer, AnswerReader, AnswerTooLongError, Piece, ToolCall, Usage


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def read(*chunks: Any) -> Answer:
    reader = AnswerReader()
    for each in chunks:
        reader.take(each)
    return reader.answer()


def call(index: int | None = None, identifier: str | None = None, **function: Any) -> dict[str, Any]:
    delta: dict[str, Any] = {"function": function}
    return delta | ({} if index is None else {"index": index}) | ({} if identifier is None else {"id": identifier})


def test_text_streams_in_pieces_and_the_end_has_its_reason_and_usage() -> None:
    reader = AnswerReader()
    assert reader.take(chunk(role="assistant", content="")) == []
    assert reader.take(chunk(content="one ")) == [Piece("content", "one ")]
    reader.take({"choices": [{"index": 0, "delta": {"content": "two"}, "finish_reason": "length"}], "usage": None})
    tokens = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    reader.take({"choices": [], "usage": tokens})
    assert reader.answer() == Answer("one two", finish_reason="length", usage=Usage(9, 2, 4))


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"thinking": "hm"},
        {"reasoning": {"content": "hm"}},
        {"reasoning": {"text": "hm", "effort": 3}},
        {"reasoning": "hm", "reasoning_content": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "h"}, {"text": "m"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
        {"reasoning": "", "reasoning_content": "hm", "content": None},
    ],
)
def test_reasoning_is_read_once_whichever_field_a_server_puts_it_in(delta: dict[str, Any]) -> None:
    assert AnswerReader().take(chunk(**delta)) == [Piece("reasoning", "hm")]
    assert read(chunk(**delta), chunk(content="So.")) == Answer("So.", "hm")


def test_a_whole_completion_is_read_like_a_stream_of_one() -> None:
    message = {
        "content": "x",
        "reasoning": "y",
        "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
    }
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}
    assert read(whole) == Answer("x", "y", (ToolCall("a", "f", "{}"),), "stop", Usage(1))


def test_objects_are_read_like_dicts() -> None:
    delta = SimpleNamespace(content="x", reasoning="y", tool_calls=None)
    usage = SimpleNamespace(prompt_tokens=1, completion_tokens=2)
    choice = SimpleNamespace(index=0, delta=delta, finish_reason="stop")
    assert read(SimpleNamespace(choices=[choice], usage=usage)) == Answer("x", "y", (), "stop", Usage(1, 2))


@pytest.mark.parametrize(
    "deltas",
    [
        [[call(0, "a", name="f", arguments="")], [call(0, arguments='{"x"')], [call(0, arguments=": 1}")],
         [call(1, "b", name="g", arguments="{}")]],
        [[call(0, "a", name="f", arguments='{"x": 1}'), call(1, "b", name="g", arguments="{}")]],
        [[call(0, "a", name="f", arguments='{"x"')], [call(1, "b", name="g", arguments="{")],
         [call(0, arguments=": 1}"), call(1, arguments="}")]],
        [[call(0, "a", name="f", arguments='{"x"')], [call(0, "a", name="f", arguments=": 1}")],
         [call(0, "b", name="g", arguments="{}")]],
        [[call(None, "a", name="f", arguments='{"x": ')], [call(None, arguments="1}")],
         [call(None, "b", name="g", arguments={})]],
    ],
    ids=["deltas by index", "whole", "mingled", "every call has index 0", "no index"],
)  # fmt: skip
def test_tool_calls_come_together_however_they_are_cut(deltas: list[list[dict[str, Any]]]) -> None:
    answer = read(*(chunk(tool_calls=group) for group in deltas))
    assert answer.tool_calls == (ToolCall("a", "f", '{"x": 1}'), ToolCall("b", "g", "{}"))


def test_two_calls_of_one_tool_without_id_or_index_stay_two() -> None:
    calls = [call(None, name="f", arguments={"x": 1}), call(None, name="f", arguments={"x": 2})]
    answer = read({"choices": [{"message": {"tool_calls": calls}}]})
    assert [each.arguments for each in answer.tool_calls] == ['{"x": 1}', '{"x": 2}']


def test_a_tool_call_is_heard_while_it_streams_in() -> None:
    reader = AnswerReader()
    first = reader.take(chunk(tool_calls=[call(0, "a", name="f", arguments="{")]))
    second = reader.take(chunk(tool_calls=[call(0, name="f", arguments="}")]))
    assert [*first, *second] == [Piece("call", "f{"), Piece("call", "}")]


def test_another_choice_than_the_first_is_not_mixed_in() -> None:
    assert read({"choices": [{"index": 1, "delta": {"content": "b"}}]}, chunk(content="a")).content == "a"


@pytest.mark.parametrize(
    "endless",
    [chunk(content="ab"), chunk(reasoning="ab"), chunk(tool_calls=[call(0, arguments="ab")]),
     chunk(tool_calls=[call(None, name="")])],
)  # fmt: skip
def test_an_answer_without_end_is_cut_off(endless: dict[str, Any]) -> None:
    reader = AnswerReader(max_chars=100)
    with pytest.raises(AnswerTooLongError):
        for _ in range(102):
            reader.take(endless)


@pytest.mark.parametrize("size", [1, 4, 40, 8000])
def test_an_answer_within_the_limit_of_tokens_is_whole_however_it_is_cut(size: int) -> None:
    text = ("a word and " * 800)[:8000]  # 2,000 tokens
    reader = AnswerReader(max_tokens=2048)
    for start in range(0, len(text), size):
        reader.take(chunk(content=text[start : start + size]))
    assert reader.answer().content == text


NAMES = [
    "choices", "delta", "message", "content", "reasoning", "reasoning_content", "tool_calls", "function", "name",
    "arguments", "index", "id", "type", "text", "thinking", "usage", "prompt_tokens", "prompt_tokens_details",
    "cached_tokens", "finish_reason",
]  # fmt: skip


def garbage(dice: random.Random, depth: int = 6) -> Any:
    kind = dice.randrange(9 if depth else 5)
    if kind < 5:
        return [None, True, dice.randrange(-3, 3), float("nan"), dice.choice(["", "x", "thinking"])][kind]
    if kind < 7:
        return [garbage(dice, depth - 1) for _ in range(dice.randrange(3))]
    return {name: garbage(dice, depth - 1) for name in dice.sample(NAMES, 6)}


def test_no_chunk_raises_and_what_is_read_has_its_types() -> None:
    for seed in range(4000):
        dice = random.Random(seed)
        delta = {name: garbage(dice) for name in dice.sample(NAMES, 8)}
        answer = read(
            garbage(dice), {"choices": [{"delta": delta}], "usage": garbage(dice)}, {"choices": [garbage(dice)]}
        )
        assert isinstance(answer.content + answer.reasoning + (answer.finish_reason or ""), str)
        assert all(isinstance(part, str) for each in answer.tool_calls for part in (each.id, each.name, each.arguments))
        assert all(value is None or type(value) is int for value in (answer.usage.prompt, answer.usage.cached))
