"""What a person is asked: the whole action, told once, and nothing of it cut off."""

import pytest

from agent.core.actions import Action, CallTool, Click, Drag, HoldKeys, OpenApp, PressKeys, TypeText
from agent.core.geometry import DesktopPoint, Region
from agent.safety.policy import Question
from agent.safety.question_text import asked
from agent.safety.situation import Place, Situation
from agent.screen.outline import Element

HERE, THERE = DesktopPoint(1, 2), DesktopPoint(3, 4)
TERMINAL = Place("Xfce4-terminal", "me@host: ~")
FIELD = Element(1, "entry", "Search", Region(0, 0, 9, 9))


@pytest.mark.parametrize(
    ("action", "known", "what", "where", "text"),
    [
        (TypeText("ls\nrm x\n"), Situation(focused=TERMINAL), "type 8 characters on 2 lines",
         "into Xfce4-terminal “me@host: ~”", "ls\nrm x\n"),
        (TypeText("a"), Situation(focused=TERMINAL, elements=(FIELD,)), "type 1 character",
         "into “Search” in Xfce4-terminal “me@host: ~”", "a"),
        (Click(HERE), Situation(under=Place("Thunar", ""), words="Delete"), "click “Delete”", "in Thunar", ""),
        (Click(HERE), Situation(), "click at 1,2", "", ""),
        (Drag(HERE, THERE), Situation(origin=Place("A", ""), under=Place("B", "")), "drag from 1,2 to 3,4",
         "from A to B", ""),
        (OpenApp("term"), Situation(opens=("XTerm", "xterm")), "open “term”", "which starts XTerm, xterm", ""),
        (OpenApp("~/" + "x" * 99), Situation(), "open", "", "~/" + "x" * 99),
        (OpenApp("a“ ”b"), Situation(), "open", "", "a“ ”b"),
        (CallTool("read", {"a": "b\nc"}), Situation(), "call the tool “read”", "outside of the desktop",
         '{\n "a": "b\\nc"\n}'),
        (CallTool("read\nwrite", {}), Situation(), "call a tool", "outside of the desktop", "read\nwrite\n{}"),
        (PressKeys(("ctrl", "w")), Situation(focused=TERMINAL), "press ctrl+w", "in Xfce4-terminal “me@host: ~”", ""),
        (HoldKeys(tuple("abcdefghijklmnopqrstuvwxyz"), 3), Situation(), "hold 26 keys for 3 s", "",
         "+".join("abcdefghijklmnopqrstuvwxyz")),
    ],
)  # fmt: skip
def test_what_where_and_the_whole_text(
    action: Action[DesktopPoint], known: Situation, what: str, where: str, text: str
) -> None:
    told = asked(action, Question("r", "", situation=known))
    assert (told.what, told.where, told.text) == (what, where, text)


@pytest.mark.parametrize("disguised", ["r\u200bm -rf", "ｒｍ -rf", "rm\u0301 -rf"])
def test_what_a_rule_found_is_marked_or_told_where_the_text_disguises_it(disguised: str) -> None:
    told = asked(TypeText(f"x {disguised} y sudo rm z"), Question("r", "", matched=("rm -rf", "sudo rm")))
    assert [told.text[start:end] for start, end in told.marks] == ["sudo rm"]
    assert told.found == ("rm -rf",)


def test_what_was_typed_just_before_is_told_where_a_rule_found_something() -> None:
    known = Situation(focused=TERMINAL, typed="sudo rm -r")
    told = asked(PressKeys(("f",)), Question("r", "", matched=("f",), situation=known))
    assert told.facts == ("typed there just before: sudo rm -r",)


def test_a_name_that_the_line_cuts_is_told_in_full() -> None:
    name = "harmless " * 20 + "DELETE"
    known = Situation(elements=(Element(1, "push button", name, Region(0, 0, 9, 9)),), words=name)
    told = asked(Click(HERE), Question("r", "", situation=known))
    assert [fact.endswith("DELETE") for fact in told.facts] == [True, True]


def test_every_reason_stands_by_itself() -> None:
    told = asked(Click(HERE), Question("a; b", "", reasons=("a", "b")))
    assert told.reasons == ("a", "b")
    assert asked(Click(HERE), Question("a; b", "")).reasons == ("a; b",)
