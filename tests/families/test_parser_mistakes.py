"""The mistakes that models are known to make: mended where the meaning is plain, refused where it is not."""

import pytest
from answers import action, answer, call, failure, read
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.actions import CallTool, Click, Drag, OpenApp, TypeText, Wait
from agent.core.geometry import Grid, GridPoint
from agent.families.base import Decision

GRID = Grid.relative(999)
CLICK = '{"name":"mobile_use","arguments":{"action":"click","coordinate":[579,550]}}'
OTHER = '{"name":"mobile_use","arguments":{"action":"click","coordinate":[1,2]}}'
CLICKED = Click(GridPoint(579, 550, GRID))
TAGGED = f"<tool_call>\n{CLICK}\n</tool_call>"
PROPERTY = settings(deadline=None, max_examples=200)


@pytest.mark.parametrize(
    ("more", "left_out"), [("", 0), (TAGGED, 0), (TAGGED.replace("579", "1"), 1), ("<tool_call>{", 0)]
)
def test_further_calls_are_left_out_and_counted(more: str, left_out: int) -> None:
    decision = read(f"<thinking>x</thinking>{TAGGED}\n{more}")
    assert isinstance(decision, Decision)
    assert (len(decision.actions), decision.left_out) == (1, left_out)


def test_full_width_marks_of_the_call_are_mended_and_those_of_its_text_kept() -> None:
    body = '{"name"："mobile_use"，"arguments"：{"action"："type"，"text"："你好，“世界”（一）"}}'
    assert action(answer(body)) == TypeText("你好，“世界”（一）")


@PROPERTY
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40))
def test_any_text_can_be_typed(text: str) -> None:
    assert action(answer({"action": "type", "text": text})) == TypeText(text)


def test_a_call_that_is_only_talked_about_is_never_carried_out() -> None:
    talk = f"I could <tool_call>{OTHER}</tool_call> or {OTHER}, but no."
    assert action(f"<thinking>{talk}</thinking>\n{TAGGED}") == CLICKED
    assert action(f"{talk}</think>\n{TAGGED}") == CLICKED
    assert failure(f"<thinking>{talk}</thinking>").kind == "no_action"
    assert failure(f"<thinking>{talk}").kind == "truncated"
    assert failure(f"<thinking>{OTHER}").kind == "truncated"


def test_a_call_inside_a_text_to_type_is_text_and_never_carried_out() -> None:
    text = "<tool_call>{'action':'click','coordinate':[1,2]}</tool_call>"
    written = call({"action": "type", "text": text})
    assert action(answer(written)) == action(f"<thinking>x</thinking>{written}") == action(written) == TypeText(text)
    assert failure(f"<thinking>x</thinking>{written[:-4]}").kind == "truncated"


def test_the_thought_is_kept_also_where_the_call_is_refused() -> None:
    result = read(answer({"action": "fly"}, "I fly away."))
    assert not isinstance(result, Decision)
    assert result.thought == "I fly away."


def test_a_drag_may_name_its_ends_in_the_ways_of_its_relatives() -> None:
    start, end = GridPoint(1, 2, GRID), GridPoint(3, 4, GRID)
    for names in (("start_coordinate", "end_coordinate"), ("coordinate", "coordinate2"), ("start", "end")):
        written = {"action": "drag", names[0]: [1, 2], names[1]: [3, 4]}
        assert action(answer(written)) == Drag(start, end)
    qwen = {"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]}
    assert action(answer(qwen)) == Drag(start, end)
    assert action(answer({"action": "left_click_drag", "coordinate": [3, 4]})) == Drag(None, end)


def test_names_of_related_models_are_understood() -> None:
    assert action(answer({"action": "AWAKE", "text": "Mail"})) == OpenApp("Mail")
    assert action(answer({"action": "left-click", "coordinate": [579, 550]})) == CLICKED
    assert action(answer('{"name": "wait", "arguments": {}}')) == Wait(1.0)
    assert action(answer('{"name": "search", "arguments": {}}')) == CallTool("search", {})
