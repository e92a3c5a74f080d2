"""No text raises, no cut answer clicks elsewhere, and what comes out can be written and lies on the screen."""

import json
from typing import Any

import pytest
from answers import (
    FAMILY,
    SCREEN,
    action,
    answer,
    arguments,
    call,
    failure,
    grounded,
    hostile,
    read,
    thoughts,
    valid_answers,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.actions import Action, map_points, points_of, to_json
from agent.core.geometry import GridPoint, Size, Viewport
from agent.families.base import Decision, ParseFailure
from foundation.chat_stream import Answer

PROPERTY = settings(deadline=None, max_examples=300)
screens = st.builds(Size, st.integers(4, 5000), st.integers(4, 5000))


def checked(result: Decision | ParseFailure, screen: Size) -> Action[GridPoint] | None:
    """The action of a result, after everything that must hold for any result."""
    if isinstance(result, ParseFailure):
        assert result.message
        json.dumps([result.kind, result.message, result.thought], ensure_ascii=False).encode()
        return None
    json.dumps([to_json(result.actions[0]), result.thought, result.calls[0].arguments], allow_nan=False)
    json.dumps([to_json(result.actions[0]), result.thought], ensure_ascii=False).encode()
    for point in points_of(map_points(result.actions[0], Viewport.of_image(screen).to_desktop)):
        assert 0 < point.x < screen.width - 1 and 0 < point.y < screen.height - 1
    return result.actions[0]


@PROPERTY
@given(st.text(max_size=200) | hostile, screens)
def test_any_text_gives_a_decision_or_a_failure(text: str, screen: Size) -> None:
    checked(FAMILY.parse(Answer(text), (screen,)), screen)
    checked(FAMILY.parse_grounding(Answer(text), (screen,)), screen)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "coordinate",
    "start_coordinate",
    "end_coordinate",
    "direction",
    "text",
    "status",
    "button",
    "keys",
    "seconds",
)
ACTIONS = ("click", "drag", "swipe", "scroll", "type", "key", "hold_key", "wait", "terminate", "system_button", "open")


@PROPERTY
@given(st.sampled_from(ACTIONS), st.dictionaries(st.sampled_from((*FIELDS, "amount")), JSON_VALUES, max_size=3))
def test_any_value_in_any_argument_gives_a_decision_or_a_failure(name: str, fields: dict[str, Any]) -> None:
    checked(read(answer(call(json.dumps({"action": name, **fields})))), SCREEN)


@settings(deadline=None, max_examples=60)
@given(valid_answers(), screens)
def test_a_cut_answer_gives_the_same_action_or_none(text: str, screen: Size) -> None:
    whole = checked(FAMILY.parse(Answer(text), (screen,)), screen)
    assert whole is not None
    for end in range(len(text)):
        assert checked(FAMILY.parse(Answer(text[:end]), (screen,)), screen) in (None, whole)


@settings(deadline=None, max_examples=60)
@given(arguments, thoughts)
def test_a_cut_answer_without_tool_tags_gives_the_same_action_or_none(written: dict[str, Any], thought: str) -> None:
    text = f"<thinking>\n{thought}\n</thinking>\n{call(written)}"
    whole = action(text)
    for end in range(len(text)):
        assert checked(read(text[:end]), SCREEN) in (None, whole)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 1000), st.integers(0, 1000), thoughts.filter(lambda thought: "</answer" not in thought))
def test_a_cut_grounding_answer_gives_the_same_point_or_none(x: int, y: int, thought: str) -> None:
    # A thought with a whole answer in it that is cut right there cannot be told from one that lacks its closing tag.
    text = grounded(x, y, thought)
    whole = checked(FAMILY.parse_grounding(Answer(text), (SCREEN,)), SCREEN)
    assert whole is not None
    for end in range(len(text)):
        cut = Answer(text[:end], finish_reason="length")
        assert checked(FAMILY.parse_grounding(cut, (SCREEN,)), SCREEN) in (None, whole)


@PROPERTY
@given(valid_answers(), st.data())
def test_a_mutated_answer_gives_a_decision_or_a_failure(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(hostile | st.text(max_size=4)) + text[end:]
    checked(read(text), SCREEN)
    checked(FAMILY.parse_grounding(Answer(text), (SCREEN,)), SCREEN)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 400, "1e999999999"])
def test_numbers_that_are_none_never_become_a_point(number: str) -> None:
    for written in (f"[{number},5]", f"[5,{number}]", f'"{number},5"', f'{{"x":{number},"y":5}}', f"[{number},1,1,1]"):
        failure(answer(call(f'{{"action":"click","coordinate":{written}}}')))
        result = FAMILY.parse_grounding(Answer(f'<answer>{{"coordinate":{written}}}</answer>'), (SCREEN,))
        assert isinstance(result, ParseFailure)


@pytest.mark.parametrize("huge", ["1e308", "-1e308", "1e300"])
def test_the_centre_of_a_giant_box_is_refused_and_not_an_overflow(huge: str) -> None:
    box = f"[{huge},{huge},{huge},{huge}]"
    failure(answer(call(f'{{"action":"click","coordinate":{box}}}')))
    assert isinstance(FAMILY.parse_grounding(Answer(f'{{"coordinate":{box}}}'), (SCREEN,)), ParseFailure)


@pytest.mark.parametrize("depth", [50, 300, 600, 900, 1000, 3000, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a":', "{'a':", "(", "-", "{'a':("])
def test_deep_nesting_is_refused_at_any_depth(opening: str, depth: int) -> None:
    closing = "".join({"[": "]", "{": "}", "(": ")"}.get(char, "") for char in reversed(opening)) * depth
    for value in (opening * depth, opening * depth + "1" + closing):
        failure(answer(call(f'{{"action":"click","coordinate":{value}}}')))
        failure(answer(call(value, "some_tool")))
        assert isinstance(FAMILY.parse_grounding(Answer(f'{{"coordinate":{value}}}'), (SCREEN,)), ParseFailure)


def test_lone_surrogates_never_reach_an_action() -> None:
    for text in ('"a\ud800b"', r'"a\ud800b"', r'"a\udfff"'):
        typed = checked(read(answer(call(f'{{"action":"type","text":{text}}}'))), SCREEN)
        assert typed is not None
    assert checked(read("<thinking>\ud800</thinking>" + answer({"action": "wait"})), SCREEN) is not None


def test_a_surrogate_pair_is_one_character() -> None:
    assert to_json(action(answer(call(r'{"action":"type","text":"\ud83d\ude00"}'))))["text"] == "😀"


@pytest.mark.parametrize(
    "unit", ["<tool_call>", "</tool_call>", "{", "[", '{"a":', "{}", "</think>", "[1,2]", "“", "\\"]
)
@pytest.mark.parametrize("before", ["", "<tool_call>", '<answer>{"coordinate":', '<tool_call>{"text":"'])
def test_endless_repetition_ends_in_a_failure(unit: str, before: str) -> None:
    text = before + unit * (100_000 // len(unit))
    assert isinstance(read(text), ParseFailure)
    checked(FAMILY.parse_grounding(Answer(text), (SCREEN,)), SCREEN)
