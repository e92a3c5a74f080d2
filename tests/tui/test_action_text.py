"""Actions as a person writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.actions import Action, Click, Drag, Finish, HoldKeys, Move, OpenApp, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint
from agent.safety.editing import editable, edited
from agent.tui.action_text import gist

POINT = DesktopPoint(3, 4)


@given(st.text())
def test_a_text_that_is_left_alone_stays_as_it_is(text: str) -> None:
    action = TypeText(text)
    assert edited(action, editable(action)) == action
    assert "\n" not in editable(action)


@pytest.mark.parametrize(
    "action",
    [Click(POINT, "right", 2), Move(POINT), Drag(None, POINT), Drag(DesktopPoint(0, 0), POINT), Scroll(POINT, 0, 2),
     PressKeys(("ctrl", "shift", "t")), HoldKeys(("a",), 2.0), OpenApp("Files")],
    ids=lambda action: type(action).__name__,
)  # fmt: skip
def test_an_action_that_is_left_alone_stays_as_it_is(action: Action[DesktopPoint]) -> None:
    assert edited(action, editable(action)) == action


def test_only_the_point_changes_and_the_rest_of_the_action_stays() -> None:
    assert edited(Click(POINT, "right", 2), "10, 20") == Click(DesktopPoint(10, 20), "right", 2)


@pytest.mark.parametrize(
    ("action", "written"),
    [(Click(POINT), "10"), (Click(POINT), "a,b"), (Click(POINT), ""), (Drag(POINT, POINT), "1,2"),
     (PressKeys(("a",)), "ctrl+nosuchkey"), (OpenApp("x"), " "), (Finish(True), "x")],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_read_is_an_error_and_no_action(action: Action[DesktopPoint], written: str) -> None:
    with pytest.raises(ValueError, match=r"[a-z]"):
        edited(action, written)


@pytest.mark.parametrize(
    ("thought", "expected"),
    [
        ("", ""),
        ("Switch on “dark mode”: click “Adwaita-dark”. [part 2 of 2, act]", "click “Adwaita-dark”"),
        ("The user wants dark mode.\n\nI see the settings. I will click on Appearance.", "I will click on Appearance"),
        ("1. open it", "1. open it"),
        ("Click at 3,4", ""),  # says what the action says
        ("It ends with a colon:", "It ends with a colon:"),
    ],
)
def test_a_step_says_what_its_thought_comes_to(thought: str, expected: str) -> None:
    assert gist(thought, Click(POINT)) == expected


@given(st.text())
def test_what_a_thought_comes_to_is_one_line_of_it(thought: str) -> None:
    found = gist(thought, Click(POINT))
    assert len(found.splitlines()) <= 1
    assert found in thought


def test_the_end_is_said_once() -> None:
    assert gist("All parts are done.", Finish(True, "done")) == ""
