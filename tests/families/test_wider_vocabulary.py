"""What other families' models say beside MAI-UI's words: held keys and buttons, wheels by pixels, the web, notes."""

from typing import Any

import pytest
from answers import action, answer

from agent.core.actions import (
    Action,
    AskUser,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    KeyDown,
    KeyUp,
    PressKeys,
    Remember,
    Scroll,
    VisitPage,
)  # fmt: skip
from agent.core.geometry import Grid, GridPoint
from agent.families.base import ArgumentError
from agent.families.shared.computer_use import ACTION_NAMES, Vocabulary, read_action

GRID = Grid.relative(1000)
HERE, THERE = GridPoint(5, 6, GRID), GridPoint(70, 80, GRID)
QWEN = Vocabulary(GRID, pixels_per_notch=100, held_in_text=True)


def said(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"action": name, **arguments}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (said("key_down", keys=["shift"]), KeyDown(("shift",))),
        (said("key_up", text="Control"), KeyUp(("ctrl",))),
        (said("left_mouse_down", coordinate="[5, 6]"), ButtonDown(HERE)),
        (said("mouse_down", button="right"), ButtonDown(None, "right")),
        (said("left_mouse_up"), ButtonUp(None)),
        (said("mouse_up", coordinate=["70", "80"]), ButtonUp(THERE)),
        (said("click", coordinate=[5, 6], button="middle"), Click(HERE, "middle")),
        (said("hscroll", pixels=300), Scroll(None, 3, 0)),
        (said("hscroll", pixels="-300", coordinate=[5, 6]), Scroll(HERE, -3, 0)),
        (said("hscroll", direction="left", pixels=300), Scroll(None, -3, 0)),
        (said("scroll", pixels=300), Scroll(None, 0, -3)),
        (said("scroll", pixels="-300"), Scroll(None, 0, 3)),
        (said("scroll", pixels=-1), Scroll(None, 0, 1)),
        (said("scroll", pixels=-1e6), Scroll(None, 0, 50)),
        (said("scroll", direction="down", pixels=200), Scroll(None, 0, 2)),
        (said("left_click_drag", coordinate=[70, 80]), Drag(None, THERE)),
        (said("remember", text="It is 4."), Remember("It is 4.")),
        (said("pause_and_memorize_fact", fact="It is 4."), Remember("It is 4.")),
        (said("visit_url", url="example.org/a?b=c"), VisitPage("https://example.org/a?b=c")),
        (said("goto", url="http://example.org"), VisitPage("http://example.org")),
        (said("goto", url="localhost:8000/x"), VisitPage("http://localhost:8000/x")),
        (said("goto", url="about:config"), VisitPage("about:config")),
        (said("goto", url="file:///etc/passwd"), VisitPage("file:///etc/passwd")),
        (said("visit_url", url="how tall is it"), VisitPage("https://duckduckgo.com/?q=how+tall+is+it")),
        (said("web_search", query="red & blue"), VisitPage("https://duckduckgo.com/?q=red+%26+blue")),
        (said("history_back"), PressKeys(("alt", "left"))),
        (said("interact", text="Log in."), AskUser("Log in.")),
        (said("ask_user_question", question="Which?"), AskUser("Which?")),
    ],
)
def test_the_words_of_other_families_are_understood(written: dict[str, Any], meant: Action[GridPoint]) -> None:
    assert read_action(written, QWEN) == meant


@pytest.mark.parametrize(
    ("keys", "chord"),
    [
        (["keys=['ctrl'", "v']"], ("ctrl", "v")),
        (['["ctrl"', "v"], ("ctrl", "v")),
        (["['ctrl", "'v']"], ("ctrl", "v")),
        ('["ctrl", "shift", "t"]', ("ctrl", "shift", "t")),
        (["ctrl+c"], ("ctrl", "c")),
        ("ctrl c", ("ctrl", "c")),
        (["ctrl", "]"], ("ctrl", "]")),
        ("ctrl+]", ("ctrl", "]")),
        (["Control", "ArrowUp"], ("ctrl", "up")),
        (["Enter"], ("enter",)),
        ("PageDown", ("page_down",)),
        ("Prior", ("page_up",)),
        ("Next", ("page_down",)),
        ("Return", ("enter",)),
        ("KP_Enter", ("kp_enter",)),
    ],
)
def test_keys_are_read_through_the_ways_in_which_models_break_them(keys: Any, chord: tuple[str, ...]) -> None:
    assert read_action(said("key", keys=keys), QWEN) == PressKeys(chord)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (said("left_click", coordinate=[5, 6], text="ctrl"), Click(HERE, held=("ctrl",))),
        (said("left_click", coordinate=[5, 6], text="shift+ctrl"), Click(HERE, held=("ctrl", "shift"))),
        (said("left_click", coordinate=[5, 6], text=""), Click(HERE)),
        (said("scroll", pixels=-100, text="ctrl"), Scroll(None, 0, 1, ("ctrl",))),
        (said("left_click_drag", coordinate=[70, 80], text="alt"), Drag(None, THERE, ("alt",))),
    ],
)
def test_text_names_the_keys_that_are_held_where_the_family_says_so(
    written: dict[str, Any], meant: Action[GridPoint]
) -> None:
    assert read_action(written, QWEN) == meant


def test_text_of_a_click_holds_nothing_where_the_family_does_not_say_so() -> None:
    assert read_action(said("left_click", coordinate=[5, 6], text="ctrl"), Vocabulary(GRID)) == Click(HERE)


@pytest.mark.parametrize(
    "written",
    [
        said("left_click", coordinate=[5, 6], text="the Save button"),
        said("left_click", coordinate=[5, 6], text="a"),
        said("mouse_down", button="back"),
        said("scroll"),
        said("scroll", pixels=0),
        said("scroll", pixels="many"),
        said("hscroll", direction="up"),
        said("visit_url", url=""),
        said("visit_url", url="https://example.org/two words"),
        said("visit_url", url="example.org\nhttps://other.example"),
        said("web_search"),
        said("remember"),
        said("key_down"),
        said("key_up", keys=["hyperdrive"]),
    ],
)
def test_what_does_not_fit_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        read_action(written, QWEN)


def test_a_familys_own_names_and_numbers_come_from_its_file() -> None:
    names = {"press": "key_down", "release": "key_up"}
    words = Vocabulary.of({"reading": {"names": names, "held_in_text": True, "pixels_per_notch": 10}}, GRID)
    assert read_action(said("press", key="shift"), words) == KeyDown(("shift",))
    assert read_action(said("scroll", pixels=-100, text="shift"), words) == Scroll(None, 0, 10, ("shift",))


@pytest.mark.parametrize("name", sorted(ACTION_NAMES))
def test_every_action_name_is_known_to_the_reader(name: str) -> None:
    button = "back" if name == "system_button" else "left"
    filled = {"coordinate": [5, 6], "direction": "up", "pixels": 9, "text": "a", "status": "success", "button": button}
    action(answer({"action": name, **filled}))
