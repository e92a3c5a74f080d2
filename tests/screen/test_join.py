"""The tree's elements and the words on the screen become one outline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.geometry import Region, Size, Viewport
from agent.screen.join import agreement, join
from agent.screen.ocr import Box, Word
from agent.screen.outline import Element, Outline, ShownWindow

SIZE = Size(1000, 800)
VIEWPORT = Viewport.of_image(SIZE)


def tree(*elements, windows=()):
    return Outline(SIZE, elements, windows)


def button(name, left, top, role="push button", **more):
    return Element(1, role, name, Region(left, top, 120, 30), **more)


def written(text, left, top, confidence=95.0):
    """The words of a line, 10 pixels a letter."""
    words, at = [], left
    for word in text.split():
        words.append(Word(word, Box(at, top, at + 8 * len(word), top + 14), confidence))
        at += 8 * len(word) + 6
    return words


def test_an_element_with_its_name_on_it_is_known_from_both():
    [element] = join(tree(button("Save as", 100, 100)), written("Save as", 110, 108), VIEWPORT).elements
    assert (element.source, element.trusted, element.name) == ("both", True, "Save as")


def test_misread_letters_are_no_other_name():
    [element] = join(tree(button("Document", 100, 100)), written("Docurnent", 110, 108), VIEWPORT).elements
    assert element.source == "both"


def test_a_field_is_known_from_both_by_what_it_holds():
    field = button("Search", 100, 100, role="entry", value="my words")
    [element] = join(tree(field), written("my words", 110, 108), VIEWPORT).elements
    assert (element.source, element.name, element.trusted) == ("both", "Search", True)


def test_words_on_no_element_become_labels_in_reading_order():
    words = [*written("Trash bin", 40, 300), *written("Home", 40, 200)]
    outline = join(tree(button("Save", 500, 100)), words, VIEWPORT)
    labels = outline.elements[1:]
    assert [(one.name, one.role, one.source) for one in labels] == [
        ("Home", "label", "words"), ("Trash bin", "label", "words"),
    ]  # fmt: skip
    assert len({one.id for one in outline.elements}) == 3


def test_a_caption_of_several_lines_is_an_element_besides_its_lines():
    flush = [*written("Window", 40, 200), *written("Manager", 40, 217), *written("Tweaks", 40, 234)]
    centred = [*written("Persönlicher", 300, 200), *written("Ordner", 324, 217)]
    outline = join(Outline(SIZE, ()), [*flush, *centred, *written("Apart", 40, 280)], VIEWPORT)
    names = [element.name for element in outline.elements]
    assert sorted(names[:6]) == ["Apart", "Manager", "Ordner", "Persönlicher", "Tweaks", "Window"]
    assert names[6:] == ["Window Manager Tweaks", "Persönlicher Ordner"]
    assert outline.elements[6].box == Region(40, 200, 56, 48)


def test_the_lines_of_a_page_of_text_are_no_caption():
    page = [word for row in range(8) for word in written(f"line{row}", 40, 200 + 17 * row)]
    assert len(join(Outline(SIZE, ()), page, VIEWPORT).elements) == 8


def test_a_label_tells_what_holds_it_and_in_which_window():
    pane = Element(7, "panel", "", Region(0, 0, 400, 400))
    window = ShownWindow("Settings", "Xfce4-settings", Region(0, 0, 500, 500))
    label = join(tree(pane, windows=(window,)), written("Appearance", 40, 200), VIEWPORT).elements[-1]
    assert (label.parent, label.window, label.app) == (7, "Settings", "Xfce4-settings")


def test_a_button_whose_words_say_something_else_is_not_found_by_its_name():
    outline = join(tree(button("Cancel", 100, 100)), written("Delete", 110, 108), VIEWPORT)
    liar, label = outline.elements
    assert (liar.name, liar.trusted, liar.source) == ("Cancel", False, "tree")
    assert (label.name, label.trusted) == ("Delete", True)


@pytest.mark.parametrize(
    ("name", "words"), [("Delete account", "Continue"), ("Yes", "Never"), ("Keep it", "Throw away")]
)
def test_no_word_of_a_name_need_be_written_elsewhere_on_the_element(name, words):
    assert not join(tree(button(name, 100, 100)), written(words, 102, 108), VIEWPORT).elements[0].trusted


@pytest.mark.parametrize(
    ("name", "words"), [("Close the window", "Close"), ("Document", "Docurnent 1"), ("Show all files", "files Ctri+H")]
)
def test_names_of_which_a_word_is_written_are_believed(name, words):
    assert join(tree(button(name, 100, 100)), written(words, 102, 108), VIEWPORT).elements[0].trusted


def test_unsure_readings_signs_and_badges_contradict_no_name():
    for words in (written("Delete", 110, 108, confidence=70), written("x", 110, 108), written("12", 110, 108)):
        element = join(tree(button("Cancel", 100, 100)), words, VIEWPORT).elements[0]
        assert element.trusted


def test_a_word_wider_than_the_button_is_not_on_it():
    wide = [Word("wrapping", Box(20, 104, 280, 122), 96.0)]
    assert join(tree(button("Reset", 100, 100)), wide, VIEWPORT).elements[0].trusted


def test_a_name_within_longer_words_is_not_contradicted():
    element = join(tree(button("Delete", 100, 100)), written("Delete (all 12", 102, 108), VIEWPORT).elements[0]
    assert element.trusted


def test_what_holds_other_things_is_not_judged_by_their_words():
    pane = Element(1, "panel", "Sidebar", Region(0, 0, 400, 400))
    assert join(tree(pane), written("Delete everything", 40, 100), VIEWPORT).elements[0].trusted


def test_an_untrusted_element_stays_so():
    [element] = join(tree(button("Save", 100, 100, trusted=False)), written("Save", 110, 108), VIEWPORT).elements
    assert not element.trusted


def test_boxes_of_words_are_in_desktop_units_on_scaled_and_second_monitors():
    viewport = Viewport(Region(1000, 50, 800, 600), Size(1600, 1200))
    [label] = join(Outline(Size(800, 600), ()), [Word("Save", Box(200, 100, 260, 130), 95)], viewport).elements
    assert label.box == Region(1100, 100, 30, 15)


def test_a_cut_name_is_as_good_as_the_whole():
    assert agreement("Show all documents that…", "Show all documents that were changed since Monday") == 1.0


@given(st.text(), st.text())
def test_agreement_is_a_share_and_does_not_depend_on_the_order(one, other):
    assert 0.0 <= agreement(one, other) <= 1.0
    assert agreement(one, one) == 1.0
