"""What a task asks for by its words, and what a claim that it is done is worth."""

from dataclasses import replace

import pytest
from stubs.witness import DARK, OPENED

from agent.core.actions import Click, Finish, Move, OpenApp
from agent.core.changes import Change
from agent.core.geometry import DesktopPoint, Region, Size
from agent.events.run_events import Acted, Receipt
from agent.evidence.claims import Claims, asked
from agent.screen.outline import Element, Outline

BOX = Element(1, "check box", "Dark mode", Region(10, 10, 100, 20))
PAGE = Element(2, "list item", "Appearance", Region(10, 40, 100, 20))
THEME = Element(3, "table cell", "Adwaita-dark", Region(10, 70, 100, 20))
PASSWORD = Element(4, "password text", "Password", Region(10, 100, 100, 20), value="hunter2")
FRAME = Element(5, "frame", "Settings", Region(0, 0, 400, 300))
CLAIM = Finish(True, "It is done.")


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [
        ("enable dark mode", "setting"),
        ("Open the settings and turn the night light off, please.", "setting"),
        ("Could you please make the text bigger?", "setting"),
        ("I want dark mode", "setting"),
        ("switch to the dark theme", "setting"),
        ("set the wallpaper to 'open me.png'", "setting"),
        ("in Settings turn on Wi-Fi", "setting"),
        ("make sure that the night light is switched on", "setting"),
        ("create a folder called 'enable me'", "file"),
        ("make a new folder", "file"),
        ("rename a.txt to b.txt", "file"),
        ("move the report to the trash", "thing"),
        ("close the window", "thing"),
        ("open the text editor and type 'disable the firewall'", "open"),
        ("please launch Firefox", "open"),
        ("switch to the Firefox window", "action"),
        ("click Save", "action"),
        ("close the tab", "action"),
        ("scroll down", "action"),
        ("what is the weather?", ""),
        ("Is dark mode enabled?", ""),
        ("which file is the largest", ""),
        ("wait 2 seconds", ""),
        ("", ""),
        ("“enable dark mode”", ""),
    ],
)
def test_the_words_of_a_task_say_what_must_change(instruction: str, kind: str) -> None:
    assert asked(instruction)[0] == kind


def claims(instruction: str, before: Element, now: Element | None) -> Claims:
    """A run that touched an element once, which stands so now."""
    made = Claims(instruction)
    acted = Acted(1, Click(DesktopPoint(before.box.left + 5, before.box.top + 5)), True, False, "", None, 1.0)
    made.handle(replace(acted, elements=(before,)))
    made.saw(Outline(Size(400, 300), (FRAME, *([now] if now else []))))
    return made


def standing(element: Element, *states: str) -> Element:
    return replace(element, states=frozenset(states))


def test_a_control_that_was_touched_and_stands_as_asked_is_evidence() -> None:
    verdict = claims("enable dark mode", BOX, standing(BOX, "checked", "focused")).judge(Receipt())
    assert (verdict.evidence, verdict.verified, verdict.doubt) == (("check box “Dark mode” (checked)",), True, "")


def test_a_control_that_stood_as_asked_already_is_evidence_too() -> None:
    on = standing(BOX, "checked")
    assert claims("enable dark mode", on, on).judge(Receipt()).verified is True
    assert claims("turn dark mode off", BOX, BOX).judge(Receipt()).verified is True


def test_a_control_that_stands_otherwise_than_asked_contradicts_whatever_else_changed() -> None:
    for instruction, states in (("enable dark mode", ()), ("switch dark mode off", ("checked",))):
        verdict = claims(instruction, BOX, standing(BOX, *states)).judge(Receipt((DARK,)))
        assert verdict.verified is None
        assert "this is not as asked: check box “Dark mode”" in verdict.doubt


def test_a_control_that_the_task_does_not_name_is_no_evidence_and_no_contradiction() -> None:
    icons = replace(BOX, name="Show icons")
    verdict = claims("enable dark mode", icons, standing(icons, "checked")).judge(Receipt())
    assert (verdict.evidence, verdict.verified, verdict.doubt) == (("check box “Show icons” (checked)",), None, "")


def test_the_elements_at_the_places_that_were_touched_tell_where_there_is_no_outline() -> None:
    made = claims("enable dark mode", BOX, None)
    assert made.places == [DesktopPoint(60, 20)]
    assert made.judge(Receipt(), [FRAME, standing(BOX, "checked")]).verified is True


def test_a_page_that_was_chosen_is_no_evidence_and_a_choice_that_the_task_names_is() -> None:
    for element, expected in ((PAGE, None), (THEME, True)):
        verdict = claims("enable dark mode", element, standing(element, "selected")).judge(Receipt())
        assert (verdict.verified, bool(verdict.doubt)) == (expected, expected is None)


@pytest.mark.parametrize(
    ("instruction", "role", "value", "verified"),
    [
        ("set the volume to 30", "slider", "30", True),
        ("set the name of the computer to Daloa", "entry", "Daloa", True),
        ("enable dark mode", "entry", "dark", None),  # looked for in a search field
        ("set the password to hunter3", "password text", "hunter3", None),
    ],
)
def test_a_value_is_evidence_where_the_task_gives_it(
    instruction: str, role: str, value: str, verified: bool | None
) -> None:
    before = Element(6, role, "Volume of the computer", Region(10, 10, 100, 20), value="old")
    verdict = claims(instruction, before, replace(before, value=value)).judge(Receipt())
    assert (verdict.verified, bool(verdict.doubt)) == (verified, verified is None)


def test_a_control_that_is_gone_says_nothing() -> None:
    assert claims("enable dark mode", BOX, None).judge(Receipt()).doubt


def test_what_is_in_a_field_for_a_password_is_never_told() -> None:
    verdict = claims("enable dark mode", PASSWORD, replace(PASSWORD, value="hunter3")).judge(Receipt())
    assert "hunter" not in str(verdict)


def test_names_of_elements_are_strangers_texts() -> None:
    evil = replace(BOX, name="a\x1b[2J\u202e" + "b" * 500)
    verdict = claims("enable dark mode", evil, standing(evil, "checked")).judge(Receipt())
    assert not {"\x1b", "\u202e"} & set(verdict.evidence[0])
    assert len(verdict.evidence[0]) < 100


@pytest.mark.parametrize(
    ("instruction", "change", "verified"),
    [
        ("enable dark mode", DARK, True),
        ("set the scaling to 1.5", Change("setting", "xfconf xsettings /Gdk/Scale", "1", "1.5"), True),
        ("turn on natural scrolling", Change("setting", "dconf /org/gnome/x/natural-scroll", "false", "true"), True),
        ("enable dark mode", Change("setting", "dconf /org/gnome/desktop/dark/speed", "0", "1"), None),
        ("create a folder called Plans", Change("file", "/home/me/Plans", None, "folder"), True),
        ("create a folder called Plans", Change("file", "/home/me/other", None, "folder"), None),
        ("close the Calculator", Change("window", "Calculator", "Calculator", None), True),
        ("open the Calculator", Change("window", "Calculator", None, "Calculator"), True),
    ],
)
def test_a_change_is_evidence_where_it_is_about_the_same(
    instruction: str, change: Change, verified: bool | None
) -> None:
    verdict = claims(instruction, PAGE, PAGE).judge(Receipt((change,)))
    assert (verdict.verified, verdict.doubt) == (verified, "")


@pytest.mark.parametrize(
    ("instruction", "title"),
    [
        ("create a folder called Plans", "Create New Folder"),
        ("create a folder called Plans", "Plans - Create New Folder"),
        ("rename a.txt to b.txt", "Rename “a.txt”"),
        ("please add a new directory Plans to my documents", "Documents"),
    ],
)
def test_the_dialog_that_asks_for_a_name_is_no_folder_and_no_renamed_file(instruction: str, title: str) -> None:
    verdict = claims(instruction, PAGE, PAGE).judge(Receipt((Change("window", "Thunar", None, title),)))
    assert verdict.verified is None and "no file" in verdict.doubt


def test_moving_the_pointer_through_a_failed_action_is_doing_nothing() -> None:
    made = Claims("click Save")
    made.handle(Acted(1, Move(DesktopPoint(1, 1)), False, False, "", "it failed", 1.0))
    assert made.judge(Receipt()).doubt == "nothing was done"


# The built-in engine


def own(claim: Finish, receipt: Receipt, instruction: str = "enable dark mode") -> tuple[bool | None, bool]:
    verdict = claims(instruction, PAGE, PAGE).judge_own(claim, receipt)
    return verdict.verified, bool(verdict.doubt)


def test_what_the_engine_could_not_verify_is_not_verified() -> None:
    assert own(Finish(True, "", ("check box not found",), False), Receipt((DARK,))) == (False, True)


def test_what_the_engine_verified_is_believed_with_its_evidence_only() -> None:
    assert own(Finish(True, "", ("check box “Dark mode” is on",), True), Receipt()) == (True, False)
    assert own(Finish(True, "", (), True), Receipt()) == (None, True)


def test_a_change_that_the_engine_names_must_be_in_the_receipt() -> None:
    claim = Finish(True, "", (str(DARK),), True)
    assert own(claim, Receipt((DARK,))) == (True, False)
    assert own(claim, Receipt((OPENED,))) == (None, True)
    assert own(claim, Receipt(watched=False)) == (True, False)
    twice = Finish(True, "", (str(DARK), "and it was switched back"), True)
    assert own(twice, Receipt()) == (True, False)  # a later part of the task may undo an earlier one


def test_an_engine_that_says_nothing_is_judged_by_what_changed() -> None:
    assert own(Finish(True), Receipt((OPENED,))) == (None, True)
    assert own(Finish(True), Receipt((DARK,))) == (True, False)
    assert own(Finish(True), Receipt(), "open the settings") == (None, False)


EDITOR = Change("window", "mousepad", None, "Untitled 1 - Mousepad")
PANEL = Change("window", "Xfce4-settings-manager", None, "Appearance")
UNKNOWN = Change("window", "footterm", None, "~")
NOT_THERE = "open “nothere.txt”: no file of that name"


@pytest.mark.parametrize(
    ("instruction", "error", "receipt", "name", "verified", "doubt"),
    [
        ("open Firefox", NOT_THERE, Receipt(), "Home", None, "no file of that name"),
        ("open Firefox", None, Receipt(), "Home", None, "nothing new is open"),
        ("open Firefox", None, Receipt(), "Firefox", None, ""),  # it was open before
        ("open Firefox", "", Receipt(), "Home", None, ""),
        ("open the View menu", None, Receipt(), "View", None, ""),
        ("open the settings", None, Receipt((OPENED,)), "Home", True, ""),
        ("open Mousepad", None, Receipt((EDITOR,)), "Home", True, ""),
        ("open Mousepad and write a letter", "", Receipt((EDITOR,)), "Home", None, ""),
        ("open Firefox", None, Receipt(watched=False), "Home", None, ""),
        ("open Firefox", None, Receipt(remarks=("Windows are not known here.",)), "Home", None, ""),
        ("click Open", NOT_THERE, Receipt(), "Home", None, ""),
        ("open the terminal", None, Receipt((PANEL,)), "Home", None, "what opened is no terminal"),
        ("please open a terminal", None, Receipt((PANEL,)), "Home", None, "what opened is no terminal"),
        ("open settings", None, Receipt((PANEL,)), "Home", True, ""),
        ("open the text editor", None, Receipt((EDITOR,)), "Home", True, ""),  # by its kind
        ("open the terminal", None, Receipt((UNKNOWN,)), "Home", None, ""),  # may be one that we do not know
        ("open the terminal and the settings", None, Receipt((PANEL,)), "Home", None, ""),
    ],
)
def test_what_could_not_be_opened_is_not_done(
    instruction: str, error: str | None, receipt: Receipt, name: str, verified: bool | None, doubt: str
) -> None:
    there = replace(PAGE, name=name)
    made = claims(instruction, there, there)
    if error is not None:
        made.handle(Acted(1, OpenApp("nothere.txt"), not error, False, "", error or None, 1.0))
    verdict = made.judge(receipt)
    assert verdict.verified is verified
    assert doubt in verdict.doubt
    assert bool(doubt) is bool(verdict.doubt)


@pytest.mark.parametrize(
    ("instruction", "name", "checked"),
    [
        ("Schalte den Dunkelmodus ein", "Dunkelmodus", True),
        ("den Dunkelmodus ausschalten", "Dunkelmodus", False),
        ("active le mode sombre", "Mode sombre", True),
        ("désactive le mode sombre", "Mode sombre", False),
        ("activa el modo oscuro", "Modo oscuro", True),
        ("desactiva el modo oscuro", "Modo oscuro", False),
        ("disattiva la modalità scura", "Modalità scura", False),
    ],
)
def test_a_switch_is_held_against_a_task_in_other_languages(instruction: str, name: str, checked: bool) -> None:
    switch = replace(BOX, name=name)
    states = ("checked",) if checked else ()
    assert claims(instruction, switch, standing(switch, *states)).judge(Receipt()).verified is True
    wrong = () if checked else ("checked",)
    assert "not as asked" in claims(instruction, switch, standing(switch, *wrong)).judge(Receipt()).doubt


@pytest.mark.parametrize(
    ("instruction", "name"),
    [
        ("Erstelle ein Konto ohne Newsletter", "Newsletter"),
        ("Stuur een mail aan Jan over updates", "Updates"),
        ("Haal het bestand uit de map Updates", "Updates"),
    ],
)
def test_an_article_or_a_preposition_does_not_ask_for_a_switch(instruction: str, name: str) -> None:
    switch = replace(BOX, name=name)
    for states in ((), ("checked",)):
        assert "not as asked" not in claims(instruction, switch, standing(switch, *states)).judge(Receipt()).doubt
