"""Rows, drops, fields and choices that weigh by where they are: devices, calendars, brokers, filters, signatures."""

from dataclasses import replace

import pytest
from stubs.judging import asked, hit

from agent.core.actions import Action, Click, Drag, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.safety.situation import Place

POINT = DesktopPoint(400, 400)
PRESS, TWICE, DROP = Click(POINT), Click(POINT, count=2), Drag(DesktopPoint(300, 300), POINT)


def _asks(action: Action[DesktopPoint], place: Place, role: str, name: str, sentence: str = "") -> bool:
    return asked(action, place, hit(role, name), words=name, origin=place, sentence=sentence) is not None


def test_a_device_that_gets_a_file_asks_and_one_that_the_sentence_names_does_not() -> None:
    devices = Place("Localsend", "LocalSend")
    assert _asks(TWICE, devices, "list item", "Kitchen tablet")
    assert not _asks(TWICE, devices, "list item", "Kitchen tablet", "Send the photo to the kitchen tablet")
    assert not _asks(TWICE, Place("Rhythmbox", "Rhythmbox"), "list item", "Kitchen tablet")


@pytest.mark.parametrize(
    "place", [Place("Thunderbird", "Inbox - Thunderbird"), Place("Chromium", "Agenda - Google Calendar - Chromium")]
)
def test_a_drop_on_a_row_of_mails_or_of_a_calendar_asks(place: Place) -> None:
    assert _asks(DROP, place, "tree item", "Tuesday")
    assert not _asks(DROP, place, "tree item", "Tuesday", "Move the lunch to Tuesday")
    assert not _asks(DROP, Place("Soffice", "a.ods - LibreOffice Calc"), "table cell", "B2")


@pytest.mark.parametrize(
    ("name", "asks"),
    [("Donate 25 €", True), ("Aufladen 15 EUR", True), ("Spenden $5", True), ("Blue walking shoes, 39 €", False),
     ("Chapter 25", False)],
)  # fmt: skip
def test_a_row_that_is_called_by_a_deed_and_an_amount_of_money_asks(name: str, asks: bool) -> None:
    assert _asks(PRESS, Place("Firefox", "My phone - Mozilla Firefox"), "list item", name) is asks


def test_enter_in_a_field_for_an_amount_or_where_one_trades_asks() -> None:
    page = Place("Firefox", "Savings - Mozilla Firefox")
    assert _asks(TypeText("500\n"), page, "entry", "Betrag")
    assert not _asks(TypeText("500"), page, "entry", "Betrag")
    assert _asks(PressKeys(("enter",)), Place("Firefox", "Trade Republic - Mozilla Firefox"), "entry", "Shares")


def test_a_name_in_a_field_for_a_signature_asks() -> None:
    page = Place("Firefox", "Lease - Mozilla Firefox")
    assert _asks(TypeText("Ann Miller"), page, "entry", "Type your name to sign")
    assert _asks(TypeText("Ann Miller"), page, "entry", "Unterschrift")
    assert not _asks(TypeText("Ann Miller"), page, "entry", "Full name")


def test_a_time_asks_where_appointments_are_made_only() -> None:
    assert _asks(PRESS, Place("Firefox", "Rendez-vous - Mozilla Firefox"), "list item", "mardi 14h30")
    assert not _asks(PRESS, Place("Firefox", "Trains - Mozilla Firefox"), "list item", "Tuesday 14:30")


def test_a_choice_in_the_filters_of_mails_asks() -> None:
    assert _asks(PRESS, Place("Evolution", "Message Filters"), "combo box", "Forward to")


def test_running_keys_ask_in_an_editor_for_code_that_is_a_page() -> None:
    run, field = PressKeys(("ctrl", "r")), "text"
    assert _asks(run, Place("Chromium", "Project Editor - Apps Script - Chromium"), field, "")
    assert not _asks(run, Place("Chromium", "News - Chromium"), field, "")


@pytest.mark.parametrize("name", ["Cookies weigeren", "Fr, 14. Juni", "Refuser tous les cookies", "Mar 3 de junio"])
def test_refusing_cookies_and_days_of_a_calendar_do_not_ask(name: str) -> None:
    assert not _asks(PRESS, Place("Firefox", "Timetable - Mozilla Firefox"), "push button", name)


def test_what_a_switch_allows_beside_cookies_still_asks() -> None:
    page = Place("Firefox", "Permissions - Mozilla Firefox")
    assert not _asks(
        PRESS, Place("Firefox", "Trains - Mozilla Firefox"), "push button", "Nur notwendige Cookies zulassen"
    )
    assert _asks(PRESS, page, "push button", "Kamera zulassen")


def test_what_is_chosen_from_a_palette_of_commands_asks() -> None:
    editor = Place("Code", "deploy.py - Visual Studio Code")
    assert _asks(PressKeys(("enter",)), editor, "entry", "Type the name of a command to run.")
    assert _asks(TypeText("task deploy\n"), editor, "entry", "Search files by name")
    assert not _asks(TypeText("invoice"), editor, "entry", "Search files by name")


@pytest.mark.parametrize("name", ["Build Now", "Redeploy", "Promote to production", "Trigger job"])
def test_a_link_that_has_a_program_run_elsewhere_asks_also_where_the_sentence_has_its_words(name: str) -> None:
    page = Place("Firefox", "nightly [Jenkins] - Mozilla Firefox")
    assert _asks(PRESS, page, "link", name, "Is the nightly build green, and was it promoted to production?")


@pytest.mark.parametrize("name", ["Start", "OK", "Write", "Finish", "Rename", "Set"])
def test_an_ordinary_button_asks_only_in_a_program_that_is_not_known(name: str) -> None:
    assert _asks(PRESS, Place("Rufus", "Rufus 4.4"), "push button", name)
    assert not _asks(PRESS, Place("Rufus", "Rufus 4.4"), "push button", name, f"Press {name} in Rufus")
    for known in ("Mousepad", "org.gnome.Nautilus", "Xfce4-appearance-settings", "Galculator", "Firefox"):
        assert name == "Set" or not _asks(PRESS, Place(known, "Something"), "push button", name), known


def test_a_slider_asks_in_a_program_that_is_not_known() -> None:
    assert _asks(DROP, Place("hmi", "Line 2 - Dosing"), "slider", "Flow")
    assert not _asks(DROP, Place("Pavucontrol", "Volume Control"), "slider", "Front Left")


def test_a_part_of_a_page_that_takes_clicks_is_a_button_and_a_row_is_none() -> None:
    page = Place("Firefox", "Blog - Mozilla Firefox")
    for role, states, asks in (
        ("section", {"clickable"}, True), ("section", set(), False), ("table row", {"clickable"}, False),
    ):  # fmt: skip
        element = replace(hit(role, "Fizetés"), states=frozenset(states))
        assert (asked(PRESS, page, element, words="", origin=page) is not None) is asks, role


@pytest.mark.parametrize(
    "text", ["The pump will start.", "Alle Nutzer werden abgemeldet.", "Bob gets control of your screen"]
)
def test_ok_asks_where_the_dialog_says_what_happens_then(text: str) -> None:
    dialog = Place("Mousepad", "Question", dialog=True)
    assert asked(PRESS, dialog, hit("push button", "OK"), words="OK", asked=text) is not None
    assert asked(PRESS, dialog, hit("push button", "OK"), words="OK", asked="The settings are fine.") is None
