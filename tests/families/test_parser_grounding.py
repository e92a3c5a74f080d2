"""Grounding answers: one point on the grid of 1000."""

import pytest
from answers import FAMILY, SCREEN, ground, ground_failure, grounded
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.actions import Click, map_points
from agent.core.geometry import DesktopPoint, Viewport
from agent.families.base import Call, Decision
from foundation.chat_stream import Answer

PROPERTY = settings(deadline=None, max_examples=200)
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
