"""The desktop's own actions, and arguments that do not fit."""

from typing import Any

import pytest
from answers import action, answer, failure

from agent.core.actions import Action, Click, Finish, HoldKeys, LongPress, Move, PressKeys, Scroll, TypeText, Wait
from agent.core.geometry import Grid, GridPoint
from agent.families.shared.computer_use import ACTION_NAMES

HERE = GridPoint(5, 6, Grid.relative(999))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"action": "right_click", "coordinate": [5, 6]}, Click(HERE, "right")),
        ({"action": "middle_click", "coordinate": [5, 6]}, Click(HERE, "middle")),
        ({"action": "triple_click", "coordinate": [5, 6]}, Click(HERE, "left", 3)),
        ({"action": "move", "coordinate": [5, 6]}, Move(HERE)),
        ({"action": "mouse_move", "coordinate": [5, 6]}, Move(HERE)),
        ({"action": "long_press", "coordinate": [5, 6], "seconds": 2.5}, LongPress(HERE, 2.5)),
        ({"action": "long_press", "coordinate": [5, 6], "time": "3"}, LongPress(HERE, 3.0)),
        ({"action": "scroll", "direction": "down"}, Scroll(None, 0, 5)),
        ({"action": "scroll", "direction": "up", "amount": 3, "coordinate": [5, 6]}, Scroll(HERE, 0, -3)),
        ({"action": "scroll", "direction": "Right", "amount": 1.6}, Scroll(None, 2, 0)),
        ({"action": "scroll", "direction": "left", "amount": 9999}, Scroll(None, -50, 0)),
        ({"action": "scroll", "direction": "down", "coordinate": []}, Scroll(None, 0, 5)),
        ({"action": "key", "keys": "ctrl+s"}, PressKeys(("ctrl", "s"))),
        ({"action": "key", "keys": ["Control_L", "S"]}, PressKeys(("ctrl", "s"))),
        ({"action": "hotkey", "key": "alt F4"}, PressKeys(("alt", "f4"))),
        ({"action": "press", "text": "Return"}, PressKeys(("enter",))),
        ({"action": "hold_key", "keys": "shift", "seconds": 1.5}, HoldKeys(("shift",), 1.5)),
        ({"action": "hold_key", "keys": "shift", "seconds": 1e6}, HoldKeys(("shift",), 60.0)),
        ({"action": "wait", "seconds": 0}, Wait(0)),
        ({"action": "wait", "seconds": 600}, Wait(60)),
        ({"action": "wait", "time": 0.5}, Wait(0.5)),
        ({"action": "type", "text": " keep the spaces "}, TypeText(" keep the spaces ")),
        ({"action": "type", "content": "x"}, TypeText("x")),
        ({"action": "type", "text": "line\r\n"}, TypeText("line\n")),
        ({"action": "terminate", "status": "Success", "text": "All done."}, Finish(True, "All done.")),
        ({"action": "terminate", "status": "failure"}, Finish(False)),
        ({"action": "finished", "status": "infeasible", "message": 5}, Finish(False)),
    ],
)
def test_the_desktops_actions_are_understood(written: dict[str, Any], expected: Action[GridPoint]) -> None:
    assert action(answer(written)) == expected


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ({"action": "click", "coordinate": [1920, 1080]}, "off_screen"),
        ({"action": "click", "coordinate": [-50, 5]}, "off_screen"),
        ({"action": "click", "coordinate": [0.5, 0.2]}, "bad_point"),
        ({"action": "click", "coordinate": None}, "bad_point"),
        ({"action": "click", "coordinate": []}, "bad_point"),
        ({"action": "drag", "start_coordinate": [1, 2]}, "bad_point"),
        ({"action": "drag", "end_coordinate": [1, 2]}, "bad_point"),
        ({"action": "drag", "start_coordinate": [1, 2], "end_coordinate": [1, 5000]}, "off_screen"),
        ({"action": "swipe"}, "bad_argument"),
        ({"action": "swipe", "direction": "north"}, "bad_argument"),
        ({"action": "swipe", "direction": ["up"]}, "bad_argument"),
        ({"action": "swipe", "direction": "up", "coordinate": [1]}, "bad_point"),
        ({"action": "scroll", "direction": "up", "amount": -1}, "bad_argument"),
        ({"action": "scroll", "direction": "up", "amount": "many"}, "bad_argument"),
        ({"action": "type"}, "bad_argument"),
        ({"action": "type", "text": ""}, "bad_argument"),
        ({"action": "type", "text": None}, "bad_argument"),
        ({"action": "type", "text": True}, "bad_argument"),
        ({"action": "type", "text": ["a"]}, "bad_argument"),
        ({"action": "type", "text": "\x00\x07"}, "bad_argument"),
        ({"action": "open", "text": "  "}, "bad_argument"),
        ({"action": "answer", "text": "\n"}, "bad_argument"),
        ({"action": "key"}, "bad_argument"),
        ({"action": "key", "keys": []}, "bad_argument"),
        ({"action": "key", "keys": ["ctrl", 5]}, "bad_argument"),
        ({"action": "key", "keys": "hyperdrive"}, "bad_argument"),
        ({"action": "key", "keys": "hello world"}, "bad_argument"),
        ({"action": "wait", "seconds": -1}, "bad_argument"),
        ({"action": "wait", "seconds": [1]}, "bad_argument"),
        ({"action": "wait", "seconds": "soon"}, "bad_argument"),
        ({"action": "terminate"}, "bad_argument"),
        ({"action": "terminate", "status": "maybe"}, "bad_argument"),
        ({"action": "terminate", "status": {"success": True}}, "bad_argument"),
        ({"action": "system_button", "button": "power"}, "bad_argument"),
        ({"action": "system_button"}, "bad_argument"),
        ({"action": "fly"}, "unknown_action"),
        ({"action": "click()"}, "unknown_action"),
        ({"action": ""}, "bad_argument"),
        ({"action": None}, "bad_argument"),
        ({"action": 5}, "bad_argument"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused_with_its_kind(written: dict[str, Any], kind: str) -> None:
    assert failure(answer(written)).kind == kind


@pytest.mark.parametrize("name", sorted(ACTION_NAMES))
def test_every_action_name_is_known_to_the_reader(name: str) -> None:
    button = "back" if name == "system_button" else "left"
    filled = {"coordinate": [5, 6], "direction": "up", "pixels": 9, "text": "a", "status": "success", "button": button}
    action(answer({"action": name, **filled}))
