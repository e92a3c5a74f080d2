"""MAI-UI's own answers, in the published form."""

import json
from typing import Any

import pytest
from answers import SCREEN, action, answer, arguments, call, failure, read
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.actions import (
    CallTool,
    Click,
    Wait,
    map_points,
    points_of,
)
from agent.core.geometry import DesktopPoint, Grid, GridPoint, Viewport
from agent.families.base import Call, Decision
from agent.families.registry import get_family

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


def test_the_function_may_have_its_desktop_name() -> None:
    assert action(answer(call({"action": "wait"}, "computer_use"))) == Wait(1.0)
    assert action(answer(call({"action": "wait"}, "Mobile_Use"))) == Wait(1.0)


def test_a_call_without_a_thought_is_a_call() -> None:
    assert action(f"<tool_call>\n{call({'action': 'wait'})}\n</tool_call>") == Wait(1.0)


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
