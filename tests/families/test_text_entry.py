"""Typing that says where to click before it, what it replaces, and whether Enter follows."""

from typing import Any

import pytest

from agent.core.actions import CallTool, Click, Finish, PressKeys, Scroll, TypeText
from agent.core.geometry import Grid, GridPoint
from agent.families.base import ArgumentError, Call
from agent.families.shared.computer_use import Vocabulary, read_action
from agent.families.shared.text_entry import read_typing

GRID = Grid.relative(1000)
WORDS = Vocabulary(GRID)
CLICK, ALL, TEXT, ENTER = Click(GridPoint(5, 6, GRID)), PressKeys(("ctrl", "a")), TypeText("a"), PressKeys(("enter",))


def typed(arguments: dict[str, Any], *, enter: bool = False) -> Any:
    return read_typing(Call("computer_use", {"action": "type", "text": "a", **arguments}), WORDS, enter=enter)


@pytest.mark.parametrize(
    ("arguments", "done"),
    [
        ({}, [TEXT]),
        ({"coordinate": [5, 6]}, [CLICK, TEXT]),
        ({"coordinate": [5, 6], "clear": 1, "enter": 1}, [CLICK, ALL, TEXT, ENTER]),
        ({"delete_existing_text": True, "press_enter": False}, [ALL, TEXT]),
        ({"clear": "true", "enter": "0"}, [ALL, TEXT]),
        ({"clear": None, "enter": ""}, [TEXT]),
        ({"action": "input_text", "press_enter": "True"}, [TEXT, ENTER]),
    ],
)
def test_typing_is_done_step_by_step(arguments: dict[str, Any], done: list[Any]) -> None:
    assert typed(arguments) == done


def test_whether_enter_follows_unless_the_call_says_is_the_familys() -> None:
    assert typed({}, enter=True) == [TEXT, ENTER]
    assert typed({"press_enter": False}, enter=True) == [TEXT]
    unnamed = Call("computer_use", {"action": "type", "text_value": "a"})
    assert read_typing(unnamed, WORDS) == [TEXT]


@pytest.mark.parametrize("arguments", [{"clear": "perhaps"}, {"enter": [1]}, {"coordinate": [1]}, {"text": ""}])
def test_typing_that_cannot_be_told_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        typed(arguments)


def test_all_other_calls_are_read_as_ever() -> None:
    assert read_typing(Call("computer_use", {"action": "left_click", "coordinate": [5, 6]}), WORDS) == CLICK
    assert read_typing(Call("find", {"action": "type"}), WORDS) == CallTool("find", {"action": "type"})


@pytest.mark.parametrize(
    ("end", "dx", "dy"), [([500, 100], 0, 5), ([480, 900], 0, -5), ([900, 520], 5, 0), ([100, 480], -5, 0)]
)
def test_a_finger_that_moves_from_here_to_there_turns_the_wheel(end: list[int], dx: int, dy: int) -> None:
    words = Vocabulary(GRID, swipe_turns={"up": "down", "down": "up", "left": "left", "right": "right"})
    arguments = {"action": "swipe", "coordinate": [500, 500], "coordinate2": end}
    assert read_action(arguments, words) == Scroll(GridPoint(500, 500, GRID), dx, dy)


def test_small_amounts_of_scrolling_are_notches_where_the_family_says_so() -> None:
    words = Vocabulary(GRID, notches_up_to=20)
    assert read_action({"action": "scroll", "pixels": -20}, words) == Scroll(None, 0, 20)
    assert read_action({"action": "scroll", "pixels": 120}, words) == Scroll(None, 0, -2)


def test_a_task_ends_as_the_family_says_where_the_call_does_not() -> None:
    assert read_action({"action": "terminate"}, Vocabulary(GRID, status="success")) == Finish(True)
    with pytest.raises(ArgumentError, match="status"):
        read_action({"action": "terminate"}, WORDS)
