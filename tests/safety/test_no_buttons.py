"""What is no push button asks as well, unless it is known as harmless: switches, choices, drops, pastes, addresses."""

from dataclasses import replace

import pytest

from agent.core.actions import Action, Click, Drag, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint, Region
from agent.safety.input_history import InputHistory
from agent.safety.policy import Policy, Question
from agent.safety.sentence import Sentence
from agent.safety.situation import Fact, Place, Situation
from agent.screen.outline import Element

SHIPPED = Policy.load("risky")
POINT = DesktopPoint(400, 400)
PRESS, PASTE = Click(POINT), PressKeys(("ctrl", "v"))
BROWSER, EDITOR = Place("Firefox", "Mozilla Firefox"), Place("Mousepad", "a.txt - Mousepad")
FILES, SETTINGS = Place("Thunar", "me - Thunar"), Place("Gnome-control-center", "Settings")
BAR = Element(1, "entry", "Search or enter address", Region(0, 0, 400, 30))


def hit(role: str, name: str = "") -> Element:
    return Element(1, role, name, Region(300, 300, 200, 20))


class Run:
    """A run in which every action is carried out."""

    def __init__(self, sentence: str = "") -> None:
        self.history, self.sentence = InputHistory(), Sentence(sentence)

    def asks(self, action: Action[DesktopPoint], place: Place, *elements: Element, origin: Place | None = None,
             words: str = "", facts: set[Fact] | None = None) -> Question | None:  # fmt: skip
        known = Situation(place, place, words, elements, origin=origin, facts=frozenset(facts or ()))
        seen = self.history.judge(action, known, place.app)
        self.history.did(action)
        return SHIPPED.question(action, replace(seen, facts=seen.facts | self.sentence.facts(action, seen)))


def test_a_switch_that_nobody_listed_asks_unless_the_sentence_names_it() -> None:
    tracking = hit("check box", "Empty the queue at night")
    assert Run().asks(PRESS, EDITOR, tracking) is not None
    assert Run("empty the queue at night").asks(PRESS, EDITOR, hit("switch", "Queue at night")) is None
    assert Run().asks(PRESS, EDITOR, hit("check box", "Line numbers")) is None
    assert Run().asks(PressKeys(("space",)), EDITOR, hit("switch", "Telepathy")) is not None


def test_a_choice_asks_in_settings_and_nowhere_else() -> None:
    row = hit("list item", "Free WiFi")
    assert Run().asks(PRESS, SETTINGS, row) is not None
    assert Run("connect to Free WiFi").asks(PRESS, SETTINGS, row) is None
    assert Run().asks(PRESS, SETTINGS, hit("list item", "Displays")) is None
    assert Run().asks(PRESS, FILES, row) is None


def test_the_wheel_asks_over_what_has_a_value_only() -> None:
    for role, asks in (("spin button", True), ("combo box", True), ("document web", False), ("list item", False)):
        assert (Run().asks(Scroll(POINT, 0, 1), BROWSER, hit(role, "Tickets")) is not None) is asks


def test_arrows_and_clicks_on_a_value_ask_where_it_weighs() -> None:
    disks, size = Place("Gparted", "Resize /dev/sda"), hit("spin button", "New size")
    assert Run().asks(PressKeys(("up",)), disks, size) is not None
    assert Run().asks(PRESS, disks, size) is not None
    assert Run().asks(PressKeys(("up",)), EDITOR, size) is None


def test_what_is_dropped_into_another_window_or_on_something_in_a_folder_asks() -> None:
    drag = Drag(POINT, POINT)
    assert Run().asks(drag, EDITOR, origin=FILES) is not None
    assert Run().asks(drag, EDITOR, origin=EDITOR, words="a selection") is None
    assert Run().asks(drag, FILES, hit("icon", "deploy"), origin=FILES) is not None
    assert Run("move it to Documents").asks(drag, FILES, hit("icon", "Documents"), origin=FILES) is None
    assert Run().asks(drag, FILES, hit("layered pane"), origin=FILES) is None


def test_what_the_run_did_not_copy_is_not_pasted_unasked() -> None:
    assert Run().asks(PASTE, EDITOR) is not None
    assert Run("paste the clipboard, ctrl+v").asks(PASTE, EDITOR) is None
    run = Run()
    run.asks(PressKeys(("ctrl", "c")), BROWSER)
    assert run.asks(PASTE, EDITOR) is None
    assert run.asks(PASTE, Place("Thunar", "Rename a.txt"), hit("entry", "Name")) is not None
    run = Run()
    run.asks(PRESS, FILES, hit("menu item", "Copy"))
    assert run.asks(PRESS, FILES, hit("menu item", "Paste")) is None


def test_the_middle_button_asks_on_everything_but_a_link() -> None:
    middle = Click(POINT, "middle")
    for role, asks in (("text", True), ("page tab", True), ("canvas", True), ("link", False)):
        assert (Run().asks(middle, BROWSER, hit(role, "A page")) is not None) is asks


@pytest.mark.parametrize("opened", [Click(POINT, "right"), PRESS])
def test_keys_choose_unseen_from_a_menu_that_a_click_opened(opened: Click[DesktopPoint]) -> None:
    run = Run()
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
    question = Run("read about the moon in Wikipedia").asks(TypeText(text), BROWSER, BAR)
    assert (question is not None) is asks


def test_letters_are_commands_in_some_editors() -> None:
    vim = Place("Gvim", "a.txt (~) - GVIM")
    assert Run().asks(TypeText("ggdG"), vim, hit("text")) is not None
    assert Run().asks(PressKeys(("x",)), vim, hit("text")) is not None


def test_a_text_that_is_put_together_and_cannot_be_read_asks_when_enter_sends_it() -> None:
    dialog, field = Place("Mousepad", "Save As", dialog=True), hit("entry", "Name:")
    for keys, asks in ((["home"], True), (["backspace"], True), ([], False)):
        run = Run()
        assert run.asks(TypeText("bashrc"), dialog, field) is None
        for key in keys:
            run.asks(PressKeys((key,)), dialog, field)
        assert (run.asks(PressKeys(("enter",)), dialog, field) is not None) is asks, keys


def test_a_menu_of_applications_asks_for_what_it_starts() -> None:
    menu = Place("Plasmashell", "Application Launcher")
    assert Run().asks(PRESS, menu, hit("list item", "GParted")) is not None
    assert Run().asks(PRESS, menu, hit("list item", "Firefox")) is None
    assert Run().asks(TypeText("gparted\n"), menu, BAR) is not None


def test_a_few_letters_typed_where_no_text_has_the_focus_are_shortcuts() -> None:
    mail = Place("Chromium", "Inbox - Gmail - Chromium")
    assert Run().asks(TypeText("ye"), mail, hit("document web", "Inbox")) is not None
    assert Run().asks(TypeText("ye"), mail, hit("entry", "Subject")) is None


def test_a_button_that_is_called_harmless_and_drawn_otherwise_is_judged_by_both() -> None:
    drawn: set[Fact] = {"drawn as a button"}
    cancel = hit("push button", "Cancel")
    assert Run().asks(PRESS, EDITOR, cancel, words="Enroll now", facts=drawn) is not None
    for read in ("Cancel", "Cance1", "X", ""):
        assert Run().asks(PRESS, EDITOR, cancel, words=read, facts=drawn) is None


@pytest.mark.parametrize(
    ("text", "asks"),
    [("h u n t e r 2", True), ("it is h-u-n-t-e-r-2", True), ("4 1 1 1 1 1 1 1 1 1 1 1 1 1", True),
     ("a, b, c, d, e, f, g", False), ("1 2 3 4 5", False)],
)  # fmt: skip
def test_a_secret_that_is_spelt_apart_asks(text: str, asks: bool) -> None:
    assert (Run().asks(TypeText(text), EDITOR, hit("text")) is not None) is asks
