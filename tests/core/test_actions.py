"""The action vocabulary: mapped as a whole, written as plain JSON, told in words."""

import json
from typing import Any, get_args

import pytest

from agent.core import actions
from agent.core.actions import (
    Absent,
    Action,
    Answer,
    AskUser,
    ButtonDown,
    ButtonUp,
    CallTool,
    Click,
    Drag,
    Finish,
    HoldKeys,
    KeyDown,
    KeyUp,
    LongPress,
    Move,
    OpenApp,
    PlainAction,
    PressKeys,
    Remember,
    Scroll,
    TypeText,
    VisitPage,
    Wait,
    describe,
    map_points,
    points_of,
    shorten,
    to_json,
)
from agent.core.geometry import DesktopPoint, Grid, GridPoint, Size, Viewport

GRID = Grid.relative(1000)
HERE, THERE = GridPoint(100, 200, GRID), GridPoint(0, 0, GRID)

EVERY: list[tuple[Action[GridPoint], dict[str, Any], str]] = [
    (Click(HERE), {"type": "click", "point": [100, 200], "button": "left", "count": 1}, "click at 100,200"),
    (
        Click(HERE, "right", 2),
        {"type": "click", "point": [100, 200], "button": "right", "count": 2},
        "right-double-click at 100,200",
    ),
    (
        Click(THERE, "left", 4),
        {"type": "click", "point": [0, 0], "button": "left", "count": 4},
        "click 4 times at 0,0",
    ),
    (
        LongPress(HERE, 1.5),
        {"type": "long_press", "point": [100, 200], "seconds": 1.5},
        "hold the button for 1.5 s at 100,200",
    ),
    (Move(THERE), {"type": "move", "point": [0, 0]}, "move to 0,0"),
    (Drag(HERE, THERE), {"type": "drag", "start": [100, 200], "point": [0, 0]}, "drag from 100,200 to 0,0"),
    (Drag(None, HERE), {"type": "drag", "start": None, "point": [100, 200]}, "drag from the pointer to 100,200"),
    (Scroll(None, 0, 5), {"type": "scroll", "point": None, "dx": 0, "dy": 5}, "scroll 5 down"),
    (
        Scroll(THERE, -2, -3),
        {"type": "scroll", "point": [0, 0], "dx": -2, "dy": -3},
        "scroll 3 up and 2 left at 0,0",
    ),
    (Scroll(None, 0, 0), {"type": "scroll", "point": None, "dx": 0, "dy": 0}, "scroll nowhere"),
    (TypeText("a\nb"), {"type": "type", "text": "a\nb"}, "type “a b”"),
    (PressKeys(("ctrl", "s")), {"type": "key", "keys": ["ctrl", "s"]}, "press ctrl+s"),
    (HoldKeys(("shift",), 2), {"type": "hold", "keys": ["shift"], "seconds": 2}, "hold shift for 2 s"),
    (
        Click(HERE, held=("ctrl", "shift")),
        {"type": "click", "point": [100, 200], "button": "left", "count": 1, "held": ["ctrl", "shift"]},
        "ctrl+shift+click at 100,200",
    ),
    (
        Drag(HERE, THERE, ("shift",)),
        {"type": "drag", "start": [100, 200], "point": [0, 0], "held": ["shift"]},
        "shift+drag from 100,200 to 0,0",
    ),
    (
        Scroll(HERE, 0, -1, ("ctrl",)),
        {"type": "scroll", "point": [100, 200], "dx": 0, "dy": -1, "held": ["ctrl"]},
        "ctrl+scroll 1 up at 100,200",
    ),
    (
        ButtonDown(HERE),
        {"type": "button_down", "point": [100, 200], "button": "left"},
        "press and hold the left button at 100,200",
    ),
    (ButtonUp(None, "right"), {"type": "button_up", "point": None, "button": "right"}, "release the right button"),
    (KeyDown(("ctrl",)), {"type": "key_down", "keys": ["ctrl"]}, "press and hold ctrl"),
    (KeyUp(("ctrl",)), {"type": "key_up", "keys": ["ctrl"]}, "release ctrl"),
    (VisitPage("https://a.org"), {"type": "visit", "url": "https://a.org"}, "visit “https://a.org”"),
    (Remember("the code is 7"), {"type": "remember", "fact": "the code is 7"}, "note: “the code is 7”"),
    (Absent(), {"type": "absent"}, "see nothing of the kind"),
    (Absent("a dog"), {"type": "absent", "target": "a dog"}, "see no “a dog”"),
    (OpenApp("Files"), {"type": "open", "name": "Files"}, "open “Files”"),
    (Wait(0.5), {"type": "wait", "seconds": 0.5}, "wait 0.5 s"),
    (Answer("42"), {"type": "answer", "text": "42"}, "answer: “42”"),
    (AskUser("Which?"), {"type": "ask_user", "question": "Which?"}, "ask: “Which?”"),
    (
        CallTool("weather", {"city": "Rome"}),
        {"type": "call_tool", "name": "weather", "arguments": {"city": "Rome"}},
        "call the tool weather",
    ),
    (Finish(True), {"type": "finish", "success": True, "message": ""}, "finish"),
    (Finish(False, "stuck"), {"type": "finish", "success": False, "message": "stuck"}, "give up"),
]


def test_the_examples_here_cover_every_action() -> None:
    assert {type(action) for action, _, _ in EVERY} == set(actions.KINDS.values())
    pointing = {Click, LongPress, Move, Drag, Scroll, ButtonDown, ButtonUp}
    assert set(get_args(PlainAction)) | pointing == set(actions.KINDS.values())


@pytest.mark.parametrize(("action", "written", "words"), EVERY)
def test_an_action_is_written_as_plain_json_and_told_in_words(
    action: Action[GridPoint], written: dict[str, Any], words: str
) -> None:
    assert to_json(action) == written
    assert json.loads(json.dumps(to_json(action), allow_nan=False)) == written
    assert describe(action) == words


@pytest.mark.parametrize("action", [action for action, _, _ in EVERY])
def test_mapping_sends_every_point_and_changes_nothing_else(action: Action[GridPoint]) -> None:
    view = Viewport.of_image(Size(2000, 3000))
    mapped = map_points(action, view.to_desktop)
    assert type(mapped) is type(action)
    assert points_of(mapped) == [view.to_desktop(point) for point in points_of(action)]
    kept = {key: value for key, value in to_json(action).items() if key not in ("point", "start")}
    assert {key: value for key, value in to_json(mapped).items() if key not in ("point", "start")} == kept


def test_points_come_in_the_order_in_which_the_pointer_visits_them() -> None:
    assert points_of(Drag(HERE, THERE)) == [HERE, THERE]
    assert points_of(Drag(None, THERE)) == [THERE]
    assert points_of(Scroll(None, 0, 1)) == []
    assert points_of(Wait()) == []


def test_a_mapped_drag_from_the_pointer_still_starts_at_the_pointer() -> None:
    mapped = map_points(Drag(None, HERE), Viewport.of_image(Size(1000, 1000)).to_desktop)
    assert mapped == Drag(None, DesktopPoint(100, 200))


def test_only_actions_that_only_talk_do_not_touch() -> None:
    talking = {type(action) for action, _, _ in EVERY} - set(actions.TOUCHING)
    assert talking == {Wait, Answer, AskUser, Remember, Absent, CallTool, Finish}


def test_long_text_is_shortened_to_one_line_that_says_how_long_it_was() -> None:
    assert shorten(" a \n\t b ") == "“a b”"
    assert shorten("x" * 60) == f"“{'x' * 60}”"
    assert shorten("x" * 61) == f"“{'x' * 60}…” (61 characters)"
    assert shorten("abcdef", 3) == "“abc…” (6 characters)"
