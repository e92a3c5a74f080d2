"""Typing that says where to click before it, what it replaces, and whether Enter follows."""

from typing import Any

import pytest

from agent.core.actions import CallTool, Click, Finish, PressKeys, Scroll, TypeText
from agent.core.geometry import Grid, GridPoint
from agent.families.base import ArgumentError, Call
from agent.families.registry import family_names
from agent.families.shared.computer_use import Vocabulary, read_action
from agent.families.shared.own_names import read_typing
from foundation.families import family_data

GRID = Grid.relative(1000)
WORDS = Vocabulary(GRID)
CLICK, ALL, TEXT, ENTER = Click(GridPoint(5, 6, GRID)), PressKeys(("ctrl", "a")), TypeText("a"), PressKeys(("enter",))


def typed(arguments: dict[str, Any], words: Vocabulary = WORDS) -> Any:
    return read_typing(Call("computer_use", {"action": "type", "text": "a", **arguments}), words)


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


def test_what_typing_does_unless_the_call_says_is_the_familys() -> None:
    words = Vocabulary(GRID, enters=True, replaces=True)
    assert typed({}, words) == [ALL, TEXT, ENTER]
    assert typed({"press_enter": False, "clear": 0}, words) == [TEXT]
    assert typed({"text": "a\n"}, words) == [ALL, TypeText("a\n")], "it is sent once"
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
    ("end", "dx", "dy"), [([500, 100], 0, 5), ([480, 900], 0, -5), ([900, 520], -5, 0), ([100, 480], 5, 0)]
)
def test_a_finger_that_moves_from_here_to_there_turns_the_wheel(end: list[int], dx: int, dy: int) -> None:
    words = Vocabulary(GRID)
    arguments = {"action": "swipe", "coordinate": [500, 500], "coordinate2": end}
    assert read_action(arguments, words) == Scroll(GridPoint(500, 500, GRID), dx, dy)


@pytest.mark.parametrize("family", [name for name in family_names() if "navigation" in family_data(name)["grid"]])
def test_more_pixels_never_turn_the_wheel_less(family: str) -> None:
    words = Vocabulary.of(family_data(family), GRID)
    read: list[Any] = [read_action({"action": "scroll", "pixels": -pixels}, words) for pixels in range(1, 3000)]
    turns = [action.dy for action in read]
    assert turns == sorted(turns)
    assert (turns[0], turns[-1]) >= (1, 7)


@pytest.mark.parametrize(
    ("family", "notches"),
    [
        ("qwen2.5-vl", {-5: 5, 20: -20, 21: -21, -1000: 50}),
        ("gui-owl-1.5", {-5: 5, 21: -21}),
        ("evocua", {1: -1, -50: 50}),
        ("fara", {-1: 7, 900: -7}),  # a page, whatever the amount is
        ("fara-1.5", {-67: 1, 670: -10}),
        ("openai-computer", {-100: 1, 350: -4}),
    ],
)
def test_pixels_are_notches_as_the_familys_own_client_counts_them(family: str, notches: dict[int, int]) -> None:
    words = Vocabulary.of(family_data(family), GRID)
    for pixels, dy in notches.items():
        assert read_action({"action": "scroll", "pixels": pixels}, words) == Scroll(None, 0, dy)


def test_a_click_is_at_the_pointer_only_if_nothing_in_the_call_may_be_a_point() -> None:
    words = Vocabulary(GRID, at_pointer=True)
    assert read_action({"action": "right_click", "coordinate": None}, words) == Click(None, "right")
    for wrong in ({"target": [5, 6]}, {"coordinates": [5, 6]}, {"x": 5}):
        with pytest.raises(ArgumentError, match="missing"):
            read_action({"action": "left_click", **wrong}, words)
    with pytest.raises(ArgumentError, match="missing"):
        read_action({"action": "left_click"}, WORDS)


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        (r"a\nb", "a\nb"),
        (r"say \"hi\"", 'say "hi"'),
        (r"C:\\new", r"C:\new"),
        (r"C:\Users\new", r"C:\Users\new"),  # no escape sequence is a backslash and a U
        ("a\\", "a\\"),
        ("世界\n", "世界\n"),
    ],
)
def test_escape_sequences_mean_characters_where_the_familys_client_decodes_them(written: str, typed: str) -> None:
    call = {"action": "type", "text": written}
    assert read_action(call, Vocabulary(GRID, unescapes=True)) == TypeText(typed)
    assert read_action(call, WORDS) == TypeText(written)


def test_a_task_ends_as_the_family_says_where_the_call_does_not() -> None:
    assert read_action({"action": "terminate"}, Vocabulary(GRID, status="success")) == Finish(True)
    with pytest.raises(ArgumentError, match="status"):
        read_action({"action": "terminate"}, WORDS)
