import pytest

from agent.literal.goals import Choose, Click, Close, Open, Press, Scroll, Target, Toggle, Type, Wait
from agent.literal.grammar import read_instruction
from agent.literal.sentences import NotUnderstoodError
from agent.literal.wording import describe_goal


@pytest.mark.parametrize(
    ("instruction", "goals"),
    [
        ("open settings and enable dark mode", [Open("settings"), Toggle(Target("dark mode"), on=True)]),
        ("Open settings. Enable dark mode.", [Open("settings"), Toggle(Target("dark mode"), on=True)]),
        ("please launch the text editor app", [Open("text editor")]),
        ("turn dark mode off", [Toggle(Target("dark mode"), on=False)]),
        ("turn on night light", [Toggle(Target("night light"), on=True)]),
        ("switch to dark mode", [Toggle(Target("dark mode"), on=True)]),
        ("uncheck 'Lock panel'", [Toggle(Target("Lock panel"), on=False)]),
        ("press ctrl+a and delete", [Press(("ctrl", "a")), Press(("delete",))]),
        ("press Tab 3 times", [Press(("tab",))] * 3),
        ("press Close", [Click(Target("Close"))]),
        ("press the 7 button", [Click(Target("7"))]),
        ("click 1, 2, + and 3", [Click(Target("1")), Click(Target("2")), Click(Target("+")), Click(Target("3"))]),
        (
            "right-click Home and choose Properties",
            [Click(Target("Home"), button="right"), Click(Target("Properties"))],
        ),
        ("double click the File System icon", [Click(Target("File System"), count=2)]),
        ("open the File menu", [Click(Target("File"))]),
        ("scroll down 3 times", [Scroll("down", 15)]),
        ("scroll up", [Scroll("up", 5)]),
        ("scroll to the bottom", [Scroll("down", 10, to_end=True)]),
        ("wait 2.5 seconds", [Wait(2.5)]),
        ("close the window", [Close()]),
        (
            "in settings, enable dark mode",
            [Click(Target("settings"), or_open=True), Toggle(Target("dark mode"), on=True)],
        ),
        ("set the theme to Adwaita-dark", [Choose("Adwaita-dark", Target("theme"))]),
        ("type hello into the search box", [Type("hello", into=Target("search"))]),
        ("open settings\nclick Keyboard", [Open("settings"), Click(Target("Keyboard"))]),
        ("could you open Mousepad?", [Open("Mousepad")]),
        ("press tab five times", [Press(("tab",))] * 5),
        ("press 1 2 3", [Press(("1",)), Press(("2",)), Press(("3",))]),
        ("click 1 and 2 and 3", [Click(Target("1")), Click(Target("2")), Click(Target("3"))]),
        ("select all", [Press(("ctrl", "a"))]),
        ("untick the box next to Show thumbnails", [Toggle(Target("Show thumbnails"), on=False)]),
        ("toggle bluetooth", [Click(Target("bluetooth"))]),
        ("open the etc folder", [Open("etc")]),
        ("close mousepad", [Close("mousepad")]),
    ],
)
def test_sentences_become_goals(instruction, goals):
    assert read_instruction(instruction) == goals


def test_quoted_text_is_never_read_as_an_instruction():
    text = "open the door, then close it and press enter"
    assert read_instruction(f"type '{text}' and press enter") == [Type(text), Press(("enter",))]


def test_quotes_keep_their_spaces_and_line_ends():
    assert read_instruction('type "a  b\\nc"') == [Type("a  b\nc")]


def test_an_apostrophe_does_not_end_a_quotation():
    assert read_instruction("type 'don't stop' and close it") == [Type("don't stop"), Close()]


def test_names_that_hold_and_stay_whole():
    assert read_instruction("click Mouse and Touchpad, then click Session and Startup") == [
        Click(Target("Mouse and Touchpad")),
        Click(Target("Session and Startup")),
    ]


def test_what_stands_after_in_may_be_a_place_or_a_part_of_the_name():
    [goal] = read_instruction("enable Show images in menus")
    assert goal == Toggle(Target("Show images", inside="menus", whole="Show images in menus"), on=True)


@pytest.mark.parametrize("instruction", ["make me a sandwich", "", "   ", "press ctrl+banana", "click"])
def test_what_is_not_understood_is_said(instruction):
    with pytest.raises(NotUnderstoodError):
        read_instruction(instruction)


@pytest.mark.parametrize(
    "instruction",
    [
        "open settings but do not change anything",
        "open appearance, click Icons, don't click Fonts",
        "close mousepad without saving",
        "close all windows",
        "type 'Dear diary' and save it with ctrl+s",
        "set number of workspaces to 3",
    ],
)
def test_what_would_be_done_wrong_is_refused_before_anything_is_done(instruction):
    with pytest.raises(NotUnderstoodError):
        read_instruction(instruction)


def test_every_goal_can_be_told_in_words():
    goals = read_instruction("open x, click y, enable z, type 'a' into b, press f5, scroll up, wait, close it")
    assert [describe_goal(goal) for goal in goals] == [
        "open “x”",
        "click “y”",
        "enable “z”",
        "type “a” into “b”",
        "press f5",
        "scroll up",
        "wait 1 s",
        "close the window",
    ]
