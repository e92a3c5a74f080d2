from agent.core.geometry import Size
from agent.literal.find.reader import outline_of
from agent.screen.ocr import Box, Word


def words(*entries):
    """Words from (text, left, top), each character 8 pixels wide and 12 high."""
    return [Word(text, Box(left, top, left + 8 * len(text), top + 12), 95) for text, left, top in entries]


def texts(read):
    """The labels that these words form."""
    return [label.name for label in outline_of(read, Size(400, 200)).elements]


def test_words_with_ordinary_spaces_form_one_label():
    labels = texts(words(("Color", 10, 10), ("Profiles", 55, 10)))
    assert labels == ["Color Profiles"]


def test_columns_are_separate_labels():
    labels = texts(words(("File", 10, 10), ("Edit", 62, 10), ("View", 114, 10)))
    assert labels == ["File", "Edit", "View"]


def test_captions_over_two_lines_are_one_label_beside_their_lines():
    labels = texts(words(("Mouse", 10, 10), ("and", 55, 10), ("Touchpad", 10, 26)))
    assert labels == [
        "Mouse and",
        "Touchpad",
        "Mouse and Touchpad",
    ]


def test_an_icon_read_as_letters_is_no_part_of_a_label():
    noisy = [Word("®", Box(10, 10, 20, 22), 45), *words(("Help", 24, 10))]
    assert texts(noisy) == ["Help"]
