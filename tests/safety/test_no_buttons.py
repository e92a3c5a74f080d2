"""What is no push button asks as well, unless it is known as harmless: switches, choices, drops, pastes, addresses."""

import pytest
from stubs.judging import Judge, asked, hit

from agent.core.actions import Click, Drag, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint
from agent.safety.situation import Fact, Place

POINT = DesktopPoint(400, 400)
PRESS, PASTE = Click(POINT), PressKeys(("ctrl", "v"))
BROWSER, EDITOR = Place("Firefox", "Mozilla Firefox"), Place("Mousepad", "a.txt - Mousepad")
FILES, SETTINGS = Place("Thunar", "me - Thunar"), Place("Gnome-control-center", "Settings")
BAR = hit("entry", "Search or enter address")


def test_a_switch_that_nobody_listed_asks_unless_the_sentence_names_it() -> None:
    tracking = hit("check box", "Empty the queue at night")
    assert asked(PRESS, EDITOR, tracking) is not None
    assert asked(PRESS, EDITOR, hit("switch", "Queue at night"), sentence="empty the queue at night") is None
    assert asked(PRESS, EDITOR, hit("check box", "Line numbers")) is None
    assert asked(PressKeys(("space",)), FILES, hit("switch", "Telepathy")) is not None


def test_a_button_that_nobody_listed_may_change_a_document_but_not_answer_a_dialog_about_it() -> None:
    writer, slow = Place("Soffice", "essay.odt - LibreOffice Writer"), "Zarovnat na střed"
    assert asked(PRESS, writer, hit("push button", slow)) is None
    assert asked(PRESS, FILES, hit("push button", slow)) is not None
    assert asked(PRESS, writer, hit("push button", "Delete Rows")) is not None
    assert asked(PRESS, writer, hit("push button", "Zahodit"), asked="Dokument byl změněn.") is not None


def test_where_a_loss_is_asked_about_only_answers_that_leave_all_as_it_is_are_harmless() -> None:
    asks = {"asked": "This will overwrite your collection."}
    for name in ("Von AnkiWeb herunterladen", "Download", "Print", "Next"):
        assert asked(PRESS, FILES, hit("push button", name), **asks) is not None, name
    for name in ("Cancel", "No", "Zurück", "Fermer"):
        assert asked(PRESS, FILES, hit("push button", name), **asks) is None, name


def test_a_slider_of_a_page_asks_where_it_is_dragged() -> None:
    drag = Drag(POINT, DesktopPoint(500, 400))
    assert asked(drag, BROWSER, hit("slider", "Daily budget")) is not None
    assert asked(drag, BROWSER, hit("slider", "Volume"), sentence="drag Volume to the right") is None


def test_a_choice_asks_in_settings_and_nowhere_else() -> None:
    row = hit("list item", "Free WiFi")
    assert asked(PRESS, SETTINGS, row) is not None
    assert asked(PRESS, SETTINGS, row, sentence="connect to Free WiFi") is None
    assert asked(PRESS, SETTINGS, hit("list item", "Displays")) is None
    assert asked(PRESS, FILES, row) is None


def test_the_wheel_asks_over_what_has_a_value_only() -> None:
    for role, asks in (("spin button", True), ("combo box", True), ("document web", False), ("list item", False)):
        assert (asked(Scroll(POINT, 0, 1), BROWSER, hit(role, "Tickets")) is not None) is asks


def test_arrows_and_clicks_on_a_value_ask_where_it_weighs() -> None:
    disks, size = Place("Gparted", "Resize /dev/sda"), hit("spin button", "New size")
    assert asked(PressKeys(("up",)), disks, size) is not None
    assert asked(PRESS, disks, size) is not None
    assert asked(PressKeys(("up",)), EDITOR, size) is None


def test_what_is_dropped_into_another_window_or_on_something_in_a_folder_asks() -> None:
    drag = Drag(POINT, POINT)
    assert asked(drag, EDITOR, origin=FILES) is not None
    assert asked(drag, EDITOR, origin=EDITOR, words="a selection") is None
    assert asked(drag, FILES, hit("icon", "deploy"), origin=FILES) is not None
    assert asked(drag, FILES, hit("icon", "Documents"), origin=FILES, sentence="move it to Documents") is None
    assert asked(drag, FILES, hit("layered pane"), origin=FILES) is None


def test_what_the_run_did_not_copy_is_not_pasted_unasked() -> None:
    assert asked(PASTE, EDITOR) is not None
    assert asked(PASTE, EDITOR, sentence="paste the clipboard, ctrl+v") is None
    run = Judge()
    run.asks(PressKeys(("ctrl", "c")), BROWSER)
    assert run.asks(PASTE, EDITOR) is None
    assert run.asks(PASTE, Place("Thunar", "Rename a.txt"), hit("entry", "Name")) is not None
    run = Judge()
    run.asks(PRESS, FILES, hit("menu item", "Copy"))
    assert run.asks(PRESS, FILES, hit("menu item", "Paste")) is None


def test_the_middle_button_asks_on_everything_but_a_link() -> None:
    middle = Click(POINT, "middle")
    for role, asks in (("text", True), ("page tab", True), ("canvas", True), ("link", False)):
        assert (asked(middle, BROWSER, hit(role, "A page")) is not None) is asks


@pytest.mark.parametrize("opened", [Click(POINT, "right"), PRESS])
def test_keys_choose_unseen_from_a_menu_that_a_click_opened(opened: Click[DesktopPoint]) -> None:
    run = Judge()
    run.asks(opened, EDITOR, hit("menu", "File") if opened is PRESS else hit("text"))
    assert run.asks(PressKeys(("down",)), EDITOR) is None
    assert run.asks(PressKeys(("enter",)), EDITOR) is not None
    run.asks(PressKeys(("escape",)), EDITOR)
    assert run.asks(PressKeys(("a",)), EDITOR) is None


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("about:memory\n", True), ("file:///home/me/x\n", True), ("magnet:?xt=urn:x\n", True), ("web+pay:1\n", True),
        ("192.168.1.1\n", True), ("localhost:631/admin\n", True), ("fritz.box\n", True), ("http://[::1]/\n", True),
        ("https://evil.test/?p=1\n", True), ("wikipedia.evil.test/x\n", True), ("http://a:b@example.org/\n", True),
        ("https://en.wikipedia.org/wiki/Moon\n", False), ("example.org\n", False),
        ("my-card-4111.evil.test\n", True), ("//evil.test/x\n", True), ("HTTP:evil.test\n", True),
        ("site:debian.org notes\n", False),
        ("time in Tokyo\n", False), ("ratio 16:9\n", False),
    ],
)  # fmt: skip
def test_an_address_that_the_sentence_does_not_name_asks_where_it_is_typed(text: str, asks: bool) -> None:
    question = asked(TypeText(text), BROWSER, BAR, sentence="read about the moon in Wikipedia")
    assert (question is not None) is asks


def test_letters_are_commands_in_some_editors() -> None:
    vim = Place("Gvim", "a.txt (~) - GVIM")
    assert asked(TypeText("ggdG"), vim, hit("text")) is not None
    assert asked(PressKeys(("x",)), vim, hit("text")) is not None


def test_a_text_that_is_put_together_and_cannot_be_read_asks_when_enter_sends_it() -> None:
    dialog, field = Place("Mousepad", "Save As", dialog=True), hit("entry", "Name:")
    for keys, asks in ((["home"], True), (["backspace"], True), ([], False)):
        run = Judge()
        assert run.asks(TypeText("bashrc"), dialog, field) is None
        for key in keys:
            run.asks(PressKeys((key,)), dialog, field)
        assert (run.asks(PressKeys(("enter",)), dialog, field) is not None) is asks, keys


def test_a_menu_of_applications_asks_for_what_it_starts() -> None:
    menu = Place("Plasmashell", "Application Launcher")
    assert asked(PRESS, menu, hit("list item", "GParted")) is not None
    assert asked(PRESS, menu, hit("list item", "Firefox")) is None
    assert asked(TypeText("gparted\n"), menu, BAR) is not None


def test_a_few_letters_typed_where_no_text_has_the_focus_are_shortcuts() -> None:
    mail = Place("Chromium", "Inbox - Gmail - Chromium")
    assert asked(TypeText("ye"), mail, hit("document web", "Inbox")) is not None
    assert asked(TypeText("ye"), mail, hit("entry", "Subject")) is None


def test_a_button_that_is_called_harmless_and_drawn_otherwise_is_judged_by_both() -> None:
    drawn: set[Fact] = {"drawn as a button"}
    cancel = hit("push button", "Cancel")
    assert asked(PRESS, EDITOR, cancel, words="Enroll now", facts=drawn) is not None
    for read in ("Cancel", "Cance1", "X", ""):
        assert asked(PRESS, EDITOR, cancel, words=read, facts=drawn) is None


@pytest.mark.parametrize(
    ("text", "asks"),
    [("h u n t e r 2", True), ("it is h-u-n-t-e-r-2", True), ("4 1 1 1 1 1 1 1 1 1 1 1 1 1", True),
     ("a, b, c, d, e, f, g", False), ("1 2 3 4 5", False)],
)  # fmt: skip
def test_a_secret_that_is_spelt_apart_asks(text: str, asks: bool) -> None:
    assert (asked(TypeText(text), EDITOR, hit("text")) is not None) is asks


def test_a_text_asks_in_a_field_of_settings_unless_the_sentence_says_it() -> None:
    typed, proxy = TypeText("proxy.example"), hit("entry", "HTTP Proxy")
    assert asked(typed, SETTINGS, proxy, sentence="Which proxy is set?") is not None
    assert asked(typed, SETTINGS, proxy, sentence="set the HTTP proxy to proxy.example") is None
    assert asked(typed, SETTINGS, proxy, sentence="do not set the HTTP proxy to proxy.example") is not None
    assert asked(TypeText("proxy"), SETTINGS, hit("entry", "Search settings"), sentence="Which proxy is set?") is None


def test_a_text_where_no_text_has_the_focus_counts_as_single_keys() -> None:
    mails = Place("Thunderbird", "Inbox - Mozilla Thunderbird")
    assert asked(TypeText("jjjjjj"), mails, hit("table row", "Offer")) is not None
    assert asked(TypeText("Germ"), BROWSER, hit("combo box", "Country")) is None


def test_a_click_on_nothing_known_asks_beside_a_text_that_was_typed() -> None:
    chat, run = Place("TelegramDesktop", "Family"), Judge()
    assert run.asks(PRESS, chat) is None
    run.asks(TypeText("see you"), chat, hit("text", "Write a message"))
    assert run.asks(PRESS, chat) is not None
    assert asked(PRESS, Place("scrcpy", "Pixel 7")) is not None
