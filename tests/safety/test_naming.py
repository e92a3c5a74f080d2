"""What an action goes to, by its name: what people read instead of coordinates."""

import pytest

from agent.core.actions import Action, Click, Drag, OpenApp, PressKeys, Scroll, TypeText, Wait
from agent.core.geometry import DesktopPoint, Region
from agent.safety.naming import Aim, aim_of, named
from agent.safety.situation import UNKNOWN, Place, Situation
from agent.screen.outline import Element

HERE, THERE = DesktopPoint(412.4, 305.6), DesktopPoint(10, 20)
SETTINGS = Place("Xfce4-settings-manager", "Settings")


def element(role: str, name: str = "", label: str = "") -> Element:
    return Element(1, role, name, Region(400, 300, 20, 20), label=label)


def told(action: Action[DesktopPoint], **known: object) -> str:
    return named(action, aim_of(action, Situation(**known)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("action", "known", "words"),
    [
        (Click(HERE), {"words": "Appearance", "under": SETTINGS}, "click “Appearance” · Settings"),
        (Click(HERE, count=2), {"elements": (element("icon", "notes.txt"),)}, "double-click “notes.txt”"),
        (Click(HERE), {"elements": (element("check box", label="Dark"),)}, "click “Dark”"),
        (Click(HERE), {"elements": (element("push button"),), "under": SETTINGS}, "click the push button · Settings"),
        (Click(HERE), {"elements": (element("push button"),), "words": "Save"}, "click “Save”"),
        (Click(HERE), {"elements": (element("push button"),), "words": "4", "words_at": THERE},
         "click the push button"),
        (Click(HERE), {"described": element("push button", "7"), "words": "4", "words_at": THERE}, "click “7”"),
        (Click(HERE), {"elements": (element("push button"),), "described": element("push button", "7")}, "click “7”"),
        (Click(HERE), {"described": element("push button"), "words": "7", "words_at": HERE}, "click “7”"),
        (Click(HERE), {"elements": (element("frame", "A page's own title"),)}, "click at 412,305"),
        (Click(HERE), {"under": Place("xterm", "")}, "click at 412,305 · xterm"),
        (Scroll(HERE, 0, 3), {"under": SETTINGS}, "scroll 3 down at 412,305 · Settings"),
        (Scroll(None, 0, 3), {"under": SETTINGS}, "scroll 3 down · Settings"),
        (Drag(HERE, THERE), {"elements": (element("icon", "a"), element("icon", "Trash"))}, "drag from “a” to “Trash”"),
        (Drag(HERE, THERE), {"elements": (element("icon", "a"),)}, "drag from 412,305 to 10,20"),
        (Drag(None, THERE), {"elements": (element("icon", "Trash"),)}, "drag from the pointer to 10,20"),
        (TypeText("hi"), {"focused": SETTINGS, "elements": (element("entry", "Name"),)},
         "type “hi” into “Name” · Settings"),
        (TypeText("ls"), {"focused": Place("XTerm", "user@host")}, "type “ls” · user@host"),
        (PressKeys(("ctrl", "w")), {"focused": SETTINGS}, "press ctrl+w · Settings"),
        (OpenApp("Files"), {"opens": ("Thunar", "thunar")}, "open “Files”"),
        (Wait(1), {}, "wait 1 s"),
    ],
)  # fmt: skip
def test_an_action_is_told_by_the_names_of_what_it_hits(
    action: Action[DesktopPoint], known: dict[str, object], words: str
) -> None:
    assert told(action, **known) == words


def test_where_nothing_is_known_the_coordinates_are_left() -> None:
    assert named(Click(HERE), aim_of(Click(HERE), UNKNOWN)) == "click at 412,305"


def test_a_button_that_is_called_otherwise_than_it_reads_is_told_by_both() -> None:
    known = {"words": "Delete all", "elements": (element("push button", "Cancel"),)}
    assert told(Click(HERE), **known) == "click “Delete all” (push button “Cancel”)"


def test_names_are_on_one_line_bounded_and_cannot_close_their_own_quotes() -> None:
    evil = "Save” · Settings\n\u202e\x1b[31m" + "x" * 500
    words = told(Click(HERE), elements=(element("push button", evil),), under=Place("a", "t\u200bi\x07tle" + "y" * 99))
    assert words.isprintable()
    assert len(words) < 110
    assert words.count("”") == 1


def test_an_aim_for_fewer_points_than_there_are_names_the_first_only() -> None:
    assert named(Drag(HERE, THERE), Aim(("“a”",))) == "drag from “a” to 10,20"


def test_the_place_of_the_window_is_known_with_its_name() -> None:
    box = Region(50, 60, 700, 500)
    window = Place("Thunar", "Documents", box)
    assert aim_of(TypeText("hi"), Situation(focused=window)).box == box
    for action in (Click(HERE), Scroll(None, 0, 3), Drag(HERE, THERE)):
        assert aim_of(action, Situation(under=window)).box == box
    field = element("entry", "Name")
    assert aim_of(TypeText("hi"), Situation(focused=window, elements=(field,))).field == field.box
    assert aim_of(TypeText("hi"), Situation(focused=window, elements=(element("frame"),))).field is None
    assert aim_of(OpenApp("Thunar"), Situation(focused=window, under=window)).box is None
