"""The same button, switch, chord, line or drop asks in a place where it weighs, and not where it is ordinary."""

from typing import Any

import pytest
from stubs.judging import asked, hit

from agent.core.actions import Action, Click, Drag, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.safety.policy import Question
from agent.safety.situation import Place

POINT = DesktopPoint(400, 400)
PRESS = Click(POINT)


def judged(action: Action[DesktopPoint], place: Place, target: str = "", **known: Any) -> Question | None:
    role, _, name = target.partition(": ")
    return asked(action, place, *([hit(role, name)] if target else []), **known)


@pytest.mark.parametrize(
    ("action", "hit", "weighs", "ordinary"),
    [
        (PRESS, "push button: Stop", Place("Gnome-system-monitor", "System Monitor"), Place("Rhythmbox", "Rhythmbox")),
        (PRESS, "push button: Continue", Place("Seahorse", "Change Keyring Password"), Place("Xournalpp", "a.xopp")),
        (PRESS, "switch: Natural scrolling", Place("Dconf-editor", "dconf Editor"), Place("Mousepad", "Untitled 1")),
        (PRESS, "push button: Open", Place("Firefox", "File Upload"), Place("Mousepad", "Open File", dialog=True)),
        (PRESS, "menu item: Rename", Place("Nautilus", "autostart"), Place("Nautilus", "Documents")),
        (PRESS, "push button: ↑", Place("Slack", "general - Slack"), Place("Gnome-calculator", "Calculator")),
        # a document's name is no place, and an application's identifier no site
        (PRESS, "push button: OK", Place("Firefox", "Bank statement"), Place("Soffice", "bank.ods — LibreOffice Calc")),
        (PRESS, "push button: OK", Place("Firefox", "x - GitHub"), Place("com.github.xournalpp.xournalpp", "Notes")),
        (PRESS, "push button: Answer", Place("Signal", "Signal"), Place("Xournalpp", "a.xopp")),
        (PressKeys(("enter",)), "", Place("Xfreerdp", "FreeRDP: server"), Place("Xournalpp", "a.xopp")),
        (TypeText("yes"), "", Place("Scrcpy", "Pixel 7"), Place("Mousepad", "a.txt - Mousepad")),
        (Drag(POINT, POINT), "heading: Rejected", Place("Firefox", "Candidates"), Place("Firefox", "News")),
        (PRESS, "push button: Ablehnen", Place("Firefox", "Urlaubsantrag Tom"), Place("Firefox", "Wetter Berlin")),
        (PRESS, "push button: Present", Place("Firefox", "x", site="meet.google.com"), Place("Soffice", "meeting.odp")),
        (PressKeys(("ctrl", "c")), "", Place("KeePassXC", "x.kdbx - KeePassXC"), Place("Mousepad", "a.txt - Mousepad")),
        (PressKeys(("ctrl", "o")), "", Place("Thunar", "Downloads - Thunar"), Place("Mousepad", "a.txt - Mousepad")),
        (PressKeys(("ctrl", "z")), "", Place("Thunar", "autostart - Thunar"), Place("Thunar", "Music - Thunar")),
        (TypeText("10.0.0.9"), "", Place("Gnome-control-center", "Network Proxy"), Place("Mousepad", "a.txt")),
        (TypeText(">Tasks: Go"), "", Place("Code", "shop - Visual Studio Code"), Place("Mousepad", "a.txt - Mousepad")),
        (TypeText(":%d"), "", Place("Gvim", "x.txt (~) - GVIM"), Place("Mousepad", "a.txt - Mousepad")),
        (PRESS, "push button: Next", Place("Firefox", "1", site="id.a.eu"), Place("Firefox", "1", site="a.eu")),
        (PressKeys(("f5",)), "text: x", Place("Octave-gui", "Octave"), Place("Firefox", "News", site="octave.example")),
        (PRESS, "push button: Cancel", Place("Firefox", "Bookings"), Place("Firefox", "Print", dialog=True)),
        (PRESS, "push button: Up", Place("Firefox", "a", site="10.0.0.20"), Place("Firefox", "x", site="10.example")),
        (PRESS, "list item: No encryption", Place("Firefox", "a", site="192.168.1.1"), Place("Firefox", "x")),
        (PRESS, "image: cat", Place("Telegramdesktop", "Family – Telegram"), Place("Eog", "cat.jpg")),
        (PRESS, "push button: 7", Place("Plantview", "Plantview"), Place("Gnome-calculator", "Calculator")),
        (TypeText("truncate audit"), "", Place("DBeaver", "DBeaver"), Place("Mousepad", "a.txt - Mousepad")),
    ],
)  # fmt: skip
def test_what_is_harmless_elsewhere_asks_where_it_weighs(
    action: Action[DesktopPoint], hit: str, weighs: Place, ordinary: Place
) -> None:
    assert judged(action, weighs, hit) is not None
    assert judged(action, ordinary, hit) is None


@pytest.mark.parametrize("app", ["Xfce4-panel", "plank", "plasmashell"])
def test_what_is_taken_to_a_panel_or_into_a_folder_that_starts_it_asks(app: str) -> None:
    files, drag = Place("Thunar", "Downloads - Thunar"), Drag(POINT, POINT)
    assert judged(drag, Place(app, ""), origin=files) is not None
    assert judged(drag, Place("Thunar", "autostart - Thunar"), origin=files) is not None
    assert judged(drag, files, origin=files) is None


def test_a_key_at_a_prompt_only_edits_the_line_and_acts_elsewhere() -> None:
    terminal, line = Place("Gnome-terminal", "me@pc: ~"), hit("terminal")
    for keys in (("up",), ("tab",), ("ctrl", "l")):
        assert asked(PressKeys(keys), terminal, line, read=True) is None
        assert asked(PressKeys(keys), terminal, line) is not None  # a program may run there
    assert asked(PressKeys(("ctrl", "e")), Place("Gimp", "a.xcf"), hit("text"), read=True) is not None


@pytest.mark.parametrize("name", ["I am over 18", "Ich stimme den AGB zu", "J’accepte", "Acepto los términos"])
def test_a_box_that_speaks_in_the_first_person_asks(name: str) -> None:
    page = Place("Firefox", "A page")
    assert judged(PRESS, page, f"check box: {name}") is not None
    assert judged(PRESS, page, "check box: In stock") is None


@pytest.mark.parametrize(
    ("sentence", "name", "asks"),
    [
        ("write a draft that I will send", "Send", True),
        ("write a mail to Ann and send it", "Send", False),
        ("now send the mail to Ann", "Send", False),
        ("could you please share the mail with Ann", "Share", False),
        ("in the mail, click Send", "Send", False),
        ("Bitte die Mail an Ann senden", "Senden", False),
        ("Kannst du die Mail senden?", "Senden", False),
        ("Wyślij mail do Ani", "Wyślij", False),
        ("Send Ann the mail. Then close it", "Send", False),
        ("prepare the mail to send", "Send", True),
        ("Tom sends the mail, you write it", "Send", True),
        ("translate the post in the mail", "Post", True),
        ("copy the comment into a mail", "Comment", True),
        ("Öffne die Mail zum Senden", "Senden", True),
        ("Send is greyed out in this mail", "Send", True),
        ("die Mail ist fertig, senden soll sie Ann", "Senden", True),
        ("send the mail at 18:00", "Send", True),
        ("Send the mail. Scratch that.", "Send", True),
        ("Should the mail go out? Send the mail?", "Send", True),
        ("Find the mail that says: send it back", "Send", True),
        ("Gönderme, mail", "Gönder", True),
        ('Type "How are you? Send me the report." in the mail', "Send", True),
        ('Type "Please send the report to: Bob" in the mail', "Send", True),
        ("Read the mail. They want to send the mail", "Send", True),
        ("Write a mail:\nHello\nSend me the money", "Send", True),
        ("send the mail at 5pm", "Send", True),
        ("send the mail at 5", "Send", True),
        ("Select the mail to send", "Send", True),
        ("Send the mail. Thanks!", "Send", False),
        ("Send the mail. \nclose it", "Send", False),
        ("Open the mail. Can you send the mail?", "Send", False),
        ("Envoie mes photos par mail", "Envoyer", False),
    ],
)
def test_a_sentence_sends_what_it_orders_and_not_what_it_only_names(sentence: str, name: str, asks: bool) -> None:
    draft = Place("Thunderbird", "Write: Hello - Thunderbird")
    assert (judged(PRESS, draft, f"push button: {name}", sentence=sentence) is not None) is asks


def test_the_name_of_the_program_is_no_object_that_a_sentence_shares() -> None:
    for folder, asks in (("Taxes", True), ("Recipes", False)):
        page = Place("Firefox", f"{folder} - Dropbox", site="www.dropbox.com")
        question = judged(PRESS, page, "push button: Share", sentence="share Recipes on Dropbox")
        assert (question is not None) is asks, folder


@pytest.mark.parametrize(
    "text",
    ["4111-1111-\n1111-1111", "4111 1111\n1111 1111", "xjavascript:document.title=1", "data:text/x-sh,touch%20x\n"],
)
def test_a_card_over_two_lines_and_an_address_that_holds_code_ask(text: str) -> None:
    assert judged(TypeText(text), Place("Chromium", "A page - Chromium")) is not None


@pytest.mark.parametrize("text", ["Room 4111 for 12 people\nCall 5523", "data: 12, 14 and 15", "We learn JavaScript"])
def test_numbers_and_words_that_only_look_alike_do_not_ask(text: str) -> None:
    assert judged(TypeText(text), Place("Mousepad", "a.txt - Mousepad")) is None


def test_a_host_is_no_program_of_that_name() -> None:
    """Terminals are told by programs' names that hold "term", so a site of that name would be one."""
    assert judged(TypeText("milk"), Place("Firefox", "A shop", site="determine.example"), "entry: Note") is None
