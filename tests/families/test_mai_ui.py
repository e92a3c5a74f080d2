"""MAI-UI's own answers: in the published form, with the mistakes that models are known to make, and for one point."""

import json
from typing import Any

import pytest
from answers import FAMILY, SCREEN, action, answer, arguments, call, failure, ground, ground_failure, grounded, read
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.actions import CallTool, Click, Drag, OpenApp, TypeText, Wait, map_points, points_of
from agent.core.geometry import DesktopPoint, Grid, GridPoint, Viewport
from agent.families.base import Call, Decision
from agent.families.registry import get_family
from foundation.chat_stream import Answer

GRID = Grid.relative(999)
PROPERTY = settings(deadline=None, max_examples=200)


def at(x: float, y: float) -> GridPoint:
    return GridPoint(x, y, GRID)


@PROPERTY
@given(st.integers(0, 999), st.integers(0, 999))
def test_a_click_keeps_its_coordinate_on_the_grid_of_999(x: int, y: int) -> None:
    (point,) = points_of(action(answer({"action": "click", "coordinate": [x, y]})))
    assert (point.x, point.y, point.grid) == (x, y, GRID)
    on_screen = Viewport.of_image(SCREEN).to_desktop(point)
    assert on_screen.x == pytest.approx(min(max(x / 999 * 1920, 1), 1918))
    assert on_screen.y == pytest.approx(min(max(y / 999 * 1080, 1), 1078))


@PROPERTY
@given(arguments)
def test_the_call_is_kept_as_the_model_wrote_it(written: dict[str, Any]) -> None:
    decision = read(answer(written))
    assert isinstance(decision, Decision)
    assert decision.calls[0] == Call("mobile_use", written)
    assert decision.thought == "I act."


def test_a_tool_is_called_under_its_own_name() -> None:
    decision = read(answer(call({"query": "Rome", "days": 3, "coordinate": [1, 2, 3]}, "maps_search")))
    assert isinstance(decision, Decision)
    assert decision.actions[0] == CallTool("maps_search", {"query": "Rome", "days": 3, "coordinate": [1, 2, 3]})
    assert decision.calls[0] == Call("maps_search", {"query": "Rome", "days": 3, "coordinate": [1, 2, 3]})


@PROPERTY
@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(-1e9, 1e9) | st.text(max_size=9),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_a_tools_arguments_arrive_unchanged(written: dict[str, Any]) -> None:
    got = action(answer(json.dumps({"name": "tool", "arguments": written})))
    assert got == CallTool("tool", written)


def test_a_tool_without_arguments_is_called_with_none() -> None:
    assert action(answer('{"name": "list_files", "arguments": {}}')) == CallTool("list_files", {})
    assert action(answer('{"name": "list_files"}')) == CallTool("list_files", {})


def test_the_last_grid_line_is_clamped_into_the_screen() -> None:
    got = map_points(
        action(answer({"action": "click", "coordinate": [999, 999]})), Viewport.of_image(SCREEN).to_desktop
    )
    assert got == Click(DesktopPoint(1918, 1078))


def test_every_answer_that_decoding_is_constrained_to_can_be_read() -> None:
    # A bad key or an empty text can be spelled within the expression; no answer of its shape may be unreadable.
    family = get_family("mai-ui")
    for style, thinking in (("reference", True), ("desktop", True), ("desktop", False)):

        @settings(deadline=None, max_examples=150)
        @given(st.from_regex(family.constraint({"style": style, "thinking": thinking}), fullmatch=True))  # type: ignore[arg-type]
        def check(text: str) -> None:
            result = read(text)
            assert isinstance(result, Decision) or result.kind == "bad_argument"

        check()


def test_a_failure_is_told_to_the_model_with_its_reason() -> None:
    failed = failure(answer({"action": "fly"}))
    told = get_family("mai-ui").feedback(failed)
    assert failed.message in told
    assert "<tool_call>" in told


CLICK = '{"name":"mobile_use","arguments":{"action":"click","coordinate":[579,550]}}'
OTHER = '{"name":"mobile_use","arguments":{"action":"click","coordinate":[1,2]}}'
CLICKED = Click(GridPoint(579, 550, GRID))
TAGGED = f"<tool_call>\n{CLICK}\n</tool_call>"


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
    assert action(answer(call({"action": "wait"}, "computer_use"))) == Wait(1.0)
    assert action(answer(call({"action": "wait"}, "Mobile_Use"))) == Wait(1.0)
    assert action(answer('{"name": "search", "arguments": {}}')) == CallTool("search", {})


SAMPLE = (
    "<grounding_think>The gear in the top right corner opens the settings.</grounding_think>\n"
    '<answer>\n{"coordinate":[968,176]}\n</answer>'
)


def test_the_published_sample_is_read_whole() -> None:
    result = FAMILY.parse_grounding(Answer(SAMPLE), (SCREEN,))
    assert isinstance(result, Decision)
    assert result.thought == "The gear in the top right corner opens the settings."
    assert result.calls[0] == Call("grounding", {"coordinate": [968, 176]})
    mapped = map_points(result.actions[0], Viewport.of_image(SCREEN).to_desktop)
    assert mapped == Click(DesktopPoint(pytest.approx(968 * 1.92), pytest.approx(176 * 1.08)))  # type: ignore[arg-type]


@PROPERTY
@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_point_keeps_its_coordinate(x: int, y: int) -> None:
    assert ground(grounded(x, y)) == (x, y)


def test_zero_is_a_coordinate() -> None:
    assert ground(grounded(0, 0)) == (0, 0)
    assert ground(grounded(0, 1000)) == (0, 1000)


def test_a_point_named_in_the_thinking_is_no_answer() -> None:
    assert ground(grounded(968, 176, thought='Not [1,2] and not <answer>{"coordinate":[3,4]}</answer>.')) == (968, 176)
    assert ground_failure("<grounding_think>Perhaps [100,200]").kind == "truncated"
    assert ground_failure("<grounding_think>Perhaps <answer>[100,200]</answer>, or").kind == "truncated"
    assert ground_failure("I look for it. <thinking>Perhaps at [120, 340] or").kind == "truncated"
    assert ground_failure("<grounding_think>Perhaps [100,200].</grounding_think>").kind == "truncated"
    assert ground_failure('<grounding_think>[1,2]</grounding_think><answer>{"coordinate":[968,').kind == "truncated"


def test_a_point_off_the_grid_is_kept_for_scoring_and_clamped_on_the_screen() -> None:
    result = FAMILY.parse_grounding(Answer(grounded(1500, -20)), (SCREEN,))
    assert isinstance(result, Decision)
    mapped = map_points(result.actions[0], Viewport.of_image(SCREEN).to_desktop)
    assert mapped == Click(DesktopPoint(1918, 1))


def test_a_whole_answer_counts_where_only_the_closing_tag_of_the_reasoning_is_forgotten() -> None:
    text = '<grounding_think>The gear, not [1,2].\n<answer>\n{"coordinate": [968,176]}\n</answer>\n'
    assert ground(text) == ground(grounded(968, 176))
