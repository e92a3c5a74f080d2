from agent.literal.labels import find, labels_of
from agent.screen.ocr import Box, Word


def words(*entries):
    """Words from (text, left, top), each character 8 pixels wide and 12 high."""
    return [Word(text, Box(left, top, left + 8 * len(text), top + 12), 95) for text, left, top in entries]


def test_words_with_ordinary_spaces_form_one_label():
    labels = labels_of(words(("Color", 10, 10), ("Profiles", 55, 10)))
    assert [label.text for label in labels] == ["Color Profiles"]


def test_columns_are_separate_labels():
    labels = labels_of(words(("File", 10, 10), ("Edit", 62, 10), ("View", 114, 10)))
    assert [label.text for label in labels] == ["File", "Edit", "View"]


def test_captions_over_two_lines_are_found_as_one():
    [match] = find(labels_of(words(("Mouse", 10, 10), ("and", 55, 10), ("Touchpad", 10, 26))), "Mouse and Touchpad")
    assert match.quality == 1.0
    assert match.box == Box(10, 10, 79, 38)


def test_a_whole_label_is_better_than_a_part_of_one():
    matches = find(labels_of(words(("Settings", 10, 10), ("Editor", 80, 10), ("Settings", 10, 80))), "settings")
    assert matches[0].box.top == 80
    assert matches[0].quality == 1.0


def test_a_line_of_a_longer_caption_is_marked_as_a_part():
    [match, *_] = find(labels_of(words(("Window", 10, 10), ("Tweaks", 10, 26))), "Window")
    assert match.label.part


def test_a_letter_may_be_misread_in_a_long_word_but_not_in_a_short_one():
    labels = labels_of(words(("Appearonce", 10, 10), ("Of", 10, 60)))
    assert find(labels, "Appearance")
    assert not find(labels, "On")


def test_a_star_stands_for_anything():
    labels = labels_of(words(("Adwaita-dark", 10, 10), ("Adwaita", 10, 60)))
    assert [match.label.text for match in find(labels, "*-dark")] == ["Adwaita-dark"]


def test_a_lone_star_is_a_key_and_not_a_wildcard():
    assert [match.label.text for match in find(labels_of(words(("*", 10, 10), ("abc", 10, 60))), "*")] == ["*"]


def test_icons_read_as_letters_do_not_hide_a_label():
    noisy = [Word("®", Box(10, 10, 20, 22), 45), *words(("Help", 24, 10))]
    [match] = find(labels_of(noisy), "Help")
    assert match.quality > 0.9


def test_nothing_is_found_where_nothing_alike_is():
    assert find(labels_of(words(("Keyboard", 10, 10))), "Dark mode") == []
