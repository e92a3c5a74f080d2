"""Rules know what an action hits, by role and name; names make them ask and never keep them from asking."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stubs.judging import SHIPPED, own, rule

from agent.core.actions import Click, Drag, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint, Region
from agent.safety.input_history import InputHistory
from agent.safety.sentence import Sentence
from agent.safety.situation import Place, Situation
from agent.screen.outline import Element
from foundation.errors import UsageError

TALL = Region(90, 90, 400, 300)
POINT = DesktopPoint(100, 100)
PAGE = Place("Firefox", "A page")
EDITOR = Place("Mousepad", "notes.txt")


def element(role, name="", **more):
    return Element(1, role, name, Region(90, 90, 20, 20), **more)


def on(*elements, words="", place=PAGE):
    return Situation(under=place, focused=place, words=words, elements=elements)


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("push button", "Delete"),
        ("toggle button", "Delete this message"),
        ("icon", "Empty Trash"),
        ("link", "Sign out"),
        ("menu item", "Löschen"),
        ("push button", "Supprimer"),
        ("push button", "Vider la corbeille"),
        ("push button", "Elimina"),
        ("push button", "Usuń"),
        ("push button", "D\u200belete"),  # with an invisible character in its middle
        ("image", "Pay now"),
    ],
)
def test_icons_and_buttons_without_words_ask_by_their_names(role, name):
    question = SHIPPED.question(Click(POINT), on(element(role, name)))
    assert "by its words" in question.reason


def test_a_name_is_also_what_labels_the_element():
    assert SHIPPED.question(Click(POINT), on(element("push button", label="Delete")))


@pytest.mark.parametrize("role", ["document web", "frame", "panel", "list", "paragraph", "terminal"])
def test_what_holds_other_things_is_not_judged_by_its_title(role):
    assert SHIPPED.question(Click(POINT), on(element(role, "How to delete a file"), place=EDITOR)) is None
    assert SHIPPED.question(Click(POINT), on(replace(element(role, "How to delete a file"), box=TALL))) is None
    small = SHIPPED.question(Click(POINT), on(element(role, "Delete the file")))
    assert small is not None, "in a page, a button may say that it is anything"


@pytest.mark.parametrize("name", ["Back", "", "Read more", "sort order by"])
def test_a_misleading_name_takes_no_question_away(name):
    written = on(words="Delete all")
    called = on(element("push button", name), words="Delete all")
    asked, still = SHIPPED.question(Click(POINT), written), SHIPPED.question(Click(POINT), called)
    assert asked.reason == still.reason


def test_harmless_words_take_no_question_away_from_a_name():
    assert SHIPPED.question(Click(POINT), on(element("push button", "Delete"), words="Cancel"))


def test_words_and_name_are_not_read_as_one_text():
    # "sort order" is harmless, "order" is not: a name that ends in "sort" must not excuse the word.
    assert SHIPPED.question(Click(POINT), on(element("push button", "sort"), words="order"))


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(["push button", "link", "panel", "password text"]))
def test_knowing_the_element_only_makes_the_policy_stricter(words, name, role):
    for action in (Click(POINT), Drag(POINT, POINT), TypeText("rm -rf /")):
        without = SHIPPED.question(action, on(words=words))
        with_it = SHIPPED.question(action, on(element(role, name), words=words))
        if without is not None:
            assert with_it is not None
            assert set(without.reason.split("; ")) <= set(with_it.reason.split("; "))


@pytest.mark.parametrize("action", [TypeText("hello"), PressKeys(("a",))])
def test_typing_into_a_password_field_asks_and_cannot_be_allowed_for_good(action):
    question = SHIPPED.question(action, on(element("password text", "Anything")))
    assert "field for a password" in question.reason
    assert question.scope == ""
    assert SHIPPED.question(action, on(element("entry", "Anything"))) is None


def test_clicking_a_password_field_does_not_ask():
    assert SHIPPED.question(Click(POINT), on(element("password text", "Password"))) is None


def test_a_drag_is_judged_by_both_of_its_ends():
    target, other = element("icon", "Trash"), element("icon", "report.txt")
    for both in ((other, target), (target, other)):
        assert "drops something on the trash" in SHIPPED.question(Drag(POINT, POINT), on(*both)).reason


def test_a_rule_can_name_roles_and_names(tmp_path):
    mine = own(tmp_path, rule("click", "elements = ['^push button delete', '^slider']"))
    for asked in (element("push button", "Delete all"), element("slider"), element("slider", "Volume")):
        assert mine.question(Click(POINT), on(asked))
    for free in (element("link", "Delete all"), element("push button", "Undelete")):
        assert mine.question(Click(POINT), on(free)) is None
    assert mine.question(Click(POINT), on()) is None  # what is not known matches nothing


def test_roles_and_names_are_compared_without_case(tmp_path):
    mine = own(tmp_path, rule("click", "elements = ['PUSH BUTTON save']"))
    assert mine.question(Click(POINT), on(element("push button", "SAVE")))


def test_a_condition_on_elements_must_make_sense_for_the_action(tmp_path):
    with pytest.raises(UsageError, match="elements say nothing about the action 'open'"):
        own(tmp_path, rule("open", "elements = ['x']"))


def test_scrolling_over_a_dangerous_button_asks_nothing():
    assert SHIPPED.question(Scroll(POINT, 0, 3), on(element("push button", "Delete"))) is None


@pytest.mark.parametrize(
    ("role", "name", "asks"),
    [
        ("check box", "Send me news", True),
        ("switch", "Delete old mails", True),
        ("switch", "Firewall", True),
        ("check box", "I agree to the terms", True),
        ("check box", "Start automatically", True),
        ("menu", "Format", False),
        ("menu item", "Format…", True),
        ("entry", "Delete", False),
        ("push button", "Send", True),
    ],
)
def test_a_switch_is_a_button_and_what_opens_a_menu_or_takes_text_is_none(role, name, asks):
    situation = InputHistory().judge(Click(POINT), on(element(role, name), words=name, place=EDITOR))
    assert (SHIPPED.question(Click(POINT), situation) is not None) is asks


@pytest.mark.parametrize(
    "role",
    ["menu", "entry", "text", "spin button", "terminal", "password text", "link", "list item", "check box", "slider",
     "page tab", "heading", "image", "paragraph", "landmark", "dialog", "document frame", "tool tip", "status bar"],
)  # fmt: skip
@pytest.mark.parametrize("drawn", [True, False])
def test_no_role_that_a_page_gives_a_button_keeps_its_name_from_being_asked_about(role, drawn):
    facts = frozenset({"drawn as a button"}) if drawn else frozenset()
    for said in (on(element(role, "Delete account")), on(element(role), words="Delete account")):
        situation = InputHistory().judge(Click(POINT), replace(said, facts=facts))
        assert SHIPPED.question(Click(POINT), situation) is not None


@pytest.mark.parametrize("role", ["push button", "menu", "entry", "link", "text", "list item"])
def test_a_name_that_a_page_gives_a_button_does_not_hide_what_is_written_on_it(role):
    for name, words in [
        ("Cancel", "Wire the money to Bob"),
        ("Wire the money to Bob", "Cancel"),
        ("Back", "Back my campaign with 100 EUR"),
        ("Close", "Close my account"),
    ]:
        seen = replace(on(element(role, name), words=words), facts=frozenset({"drawn as a button"}))
        assert SHIPPED.question(Click(POINT), InputHistory().judge(Click(POINT), seen)) is not None, (name, words)


def test_what_is_written_on_a_harmless_button_as_it_is_called_asks_nothing():
    for name, words in [("Next", "Next"), ("Search", "Search"), ("Close", "Clos"), ("Back", "")]:
        seen = replace(on(element("push button", name), words=words), facts=frozenset({"drawn as a button"}))
        assert SHIPPED.question(Click(POINT), InputHistory().judge(Click(POINT), seen)) is None, name


def test_the_persons_words_cover_a_button_of_a_page_only_if_they_name_all_of_it():
    sentence = Sentence("send the letter to Ann")
    seen = on(element("push button", "Send"), words="Transfer 500")
    assert "in your words" not in sentence.facts(Click(POINT), seen)
    assert "in your words" in sentence.facts(Click(POINT), on(element("push button", "Send"), words="Send"))


@pytest.mark.parametrize(
    ("said", "covered"),
    [
        ("write the letter", True),
        ("can you write the letter?", True),
        ("Comment on it, then write the letter", True),
        ("What is in it? Write the letter", True),
        ("Which letters can it write?", False),
        ("What does “Write” do?", False),
    ],
)
def test_a_question_for_something_covers_no_press(said, covered):
    facts = Sentence(said).facts(Click(POINT), on(element("push button", "Write"), words="Write"))
    assert ("in your words" in facts) is covered


def test_enter_on_a_button_that_a_page_calls_a_field_is_a_press():
    press = PressKeys(("enter",))
    hidden = InputHistory().judge(press, on(element("entry", "Delete account", states=frozenset({"focused"}))))
    assert SHIPPED.question(press, hidden) is not None
    field = element("entry", "Delete reason", states=frozenset({"focused", "editable"}))
    assert "by its words" not in str(SHIPPED.question(press, InputHistory().judge(press, on(field))))
