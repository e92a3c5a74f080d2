"""Lists of words find what is written on buttons however it is read, and nothing that only looks alike."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.actions import Click, PressKeys, TypeText
from agent.core.geometry import DesktopPoint, Region
from agent.safety.input_history import InputHistory
from agent.safety.policy import Policy
from agent.safety.situation import Place, Situation
from agent.safety.words import WordList, is_drawn_apart, is_strange, shipped_words
from agent.screen.outline import Element
from foundation.configs import load_config

SHIPPED = Policy.load("risky")
LISTS = load_config("policies/words.toml")["words"]
#: The lists whose words alone make a click ask.
RISKY = ["runs a program", "loses data", "closes", "leaves the machine", "spends", "signs or agrees",
         "weakens protection", "switches off", "starts later", "ends the session"]  # fmt: skip
CASES = [
    (name, phrase)
    for name in RISKY
    for language, phrases in LISTS[name].items()
    if language != "not"
    for phrase in (" ".join(one) for each in phrases for one in product(*(word.split("/") for word in each.split())))
]


def on(words: str = "", *elements: Element) -> Situation:
    place = Place("Firefox", "A page")
    return Situation(place, place, words=words, elements=elements)


def test_every_word_of_the_lists_makes_a_click_ask() -> None:
    click, rules = Click(DesktopPoint(1, 1)), [rule for rule in SHIPPED.rules if rule.says]
    asked = [any(rule.matches(click, on(phrase.removesuffix("*").title())) for rule in rules) for _, phrase in CASES]
    assert [case for case, is_asked in zip(CASES, asked, strict=True) if not is_asked] == []


@given(st.sampled_from(CASES))
def test_every_word_asks_by_name_for_a_click_and_for_enter(case: tuple[str, str]) -> None:
    button = Element(1, "push button", case[1].removesuffix("*"), Region(0, 0, 90, 30))
    for action in (Click(DesktopPoint(1, 1)), PressKeys(("enter",)), PressKeys(("space",)), TypeText("\n")):
        assert SHIPPED.question(action, on("", button)) is not None


@pytest.mark.parametrize(
    "language",
    ["english", "german", "french", "spanish", "italian", "portuguese", "dutch", "polish", "russian", "chinese",
     "japanese"],
)  # fmt: skip
def test_every_language_has_words_for_every_consequence(language: str) -> None:
    assert [name for name in RISKY if not LISTS[name].get(language)] == []


@pytest.mark.parametrize(
    "text",
    ["löschen", "Löschen…", "LÖSCHEN", "loschen", "Loeschen", "L\u00f6\u200bschen", "lo\u0308schen", "L_öschen",
     "&Löschen"],
)  # fmt: skip
def test_a_word_is_found_however_it_is_written(text: str) -> None:
    assert WordList(["löschen"]).found(text)


@pytest.mark.parametrize("text", ["Logout", "log-out", "LOG OUT", "log  out", "log_out"])
def test_a_space_stands_for_any_gap(text: str) -> None:
    assert WordList(["log out"]).found(text)


def test_a_word_is_a_whole_one_and_a_star_stands_for_any_ending() -> None:
    words = WordList(["run", "encrypt*"])
    assert not any(words.found(text) for text in ("Rung", "prune", "unencrypted"))
    assert words.found("Encryption")


def test_languages_without_spaces_need_none() -> None:
    assert WordList(["删除"]).found("全部删除文件")


def test_a_harmless_phrase_hides_itself_and_nothing_else() -> None:
    words = WordList(["order"], ["sort order"])
    assert not words.found("Sort order")
    assert words.found("Sort order, then order")


def test_no_list_finds_anything_in_nothing() -> None:
    assert not any(shipped_words(name).found("") for name in LISTS)


@given(st.text(max_size=200))
def test_any_text_can_be_searched(text: str) -> None:
    for name in RISKY:
        shipped_words(name).found(text)


def test_a_slash_stands_between_words_of_which_any_may_stand_there() -> None:
    words = WordList(["empty trash/bin", "add rule/user now"])
    assert [words.found(one) for one in ("Empty Bin", "empty some bin", "Add user now", "Add user", "trash")] == [
        True, False, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["D e l e t e", "D\nE\nL\nE\nT\nE", "d e l e t e   a c c o u n t"])
def test_letters_that_are_drawn_apart_are_joined_before_they_are_judged(text: str) -> None:
    assert is_drawn_apart(text)
    assert shipped_words("loses data").found(text)


@pytest.mark.parametrize("text", ["Delete", "A B", "x = 1", "1 2 3 4 5", "保 存 す る", "Sort A to Z"])
def test_single_letters_and_signs_are_not_letters_drawn_apart(text: str) -> None:
    assert not is_drawn_apart(text)


@pytest.mark.parametrize(
    ("text", "strange"),
    [("Viltu eyða skránni varanlega?", True), ("Je, una uhakika unataka kufuta folda hii?", True),
     ("Να αντικατασταθούν όλα τα αρχεία;", True), ("Bu dosyayı kalıcı olarak silmek istiyor musunuz?", True),
     ("The spelling check is complete.", False), ("Der Vorgang wurde abgeschlossen.", False), ("Go to line: 1", False),
     ("Aucun résultat n'a été trouvé pour cette recherche", False), ("文件已保存", False), ("1280 x 1024", False)],
)  # fmt: skip
def test_a_question_with_hardly_a_known_word_is_not_understood_and_yes_to_it_asks(text: str, strange: bool) -> None:
    assert is_strange(text) is strange
    ok = Element(1, "push button", "OK", Region(0, 0, 90, 20))
    place = Place("Gedit", "x", dialog=True)
    press = Click(DesktopPoint(9, 9))
    seen = InputHistory().judge(press, Situation(under=place, elements=(ok,), asked=text), "w")
    assert (SHIPPED.question(press, seen) is not None) is strange
