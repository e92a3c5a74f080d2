"""Reading words: all of a screen once, then what changed; and in which languages."""

import os
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from agent.screen.ocr import Box, Ocr, reading_languages
from agent.screen.words import WordReader

SCREENS = Path(__file__).parents[1] / "literal" / "screens"
FONT = ImageFont.load_default(16)


@pytest.fixture
def reader():
    return WordReader("The test")


def page(*lines, size=(900, 600)):
    """A grey page with lines of text at their places."""
    image = Image.new("RGB", size, (240, 240, 240))
    pen = ImageDraw.Draw(image)
    for text, place in lines:
        pen.text(place, text, fill=(20, 20, 20), font=FONT)
    return image


def texts(words):
    return {word.text for word in words}


@pytest.mark.parametrize(
    ("screen", "wanted"),
    [
        ("settings_dark", "Appearance Mouse Touchpad Close All Settings Window Manager Tweaks"),
        ("appear", "Adwaita-dark Style Fonts Set matching Xfwm4 theme there one"),
        ("appear_dark", "Adwaita-dark Adwaita Icons Close"),
        ("tweaks", "Cycle through windows list Raise while cycling Compositor"),
        ("mousepad", "File Edit View Save As... Close Window Quit account. You may"),
    ],
)
def test_the_words_of_light_and_dark_screens_are_found(reader, screen, wanted):
    words = reader.read(Image.open(SCREENS / f"{screen}.png").convert("RGB"))
    assert set(wanted.split()) - texts(words) == set()


def test_nothing_is_read_again_on_a_screen_that_is_as_it_was(reader):
    image = page(("Save the document", (100, 100)))
    first = reader.read(image)
    assert texts(first) == {"Save", "the", "document"}
    assert reader.read(image.copy()) == first
    assert reader.pixels_read == 0


def test_only_what_changed_is_read_again_and_the_other_words_stay(reader):
    first = reader.read(page(("Save the document", (100, 100)), ("Print", (100, 400))))
    second = reader.read(page(("Save the document", (100, 100)), ("Delete", (100, 400))))
    assert texts(second) == {"Save", "the", "document", "Delete"}
    assert {word for word in first if word.text != "Print"} <= set(second)
    assert 0 < reader.pixels_read < 200 * 100


def test_a_line_that_grows_is_read_as_a_whole(reader):
    reader.read(page(("Hello", (100, 100))))
    words = reader.read(page(("Hello wonderful world", (100, 100))))
    assert texts(words) == {"Hello", "wonderful", "world"}


def test_what_a_menu_had_covered_is_known_when_it_closes(reader):
    plain = page(("Save the document", (100, 100)))
    before = reader.read(plain)
    covered = plain.copy()
    ImageDraw.Draw(covered).rectangle((80, 80, 400, 300), fill="white")
    assert reader.read(covered) == ()
    assert set(reader.read(plain)) == set(before)
    assert reader.pixels_read == 0


def test_a_screen_of_another_size_is_read_from_the_start(reader):
    reader.read(page(("Save", (100, 100))))
    assert texts(reader.read(page(("Open", (100, 100)), size=(800, 500)))) == {"Open"}


def test_an_empty_desktop_costs_nothing(reader):
    gradient = Image.linear_gradient("L").resize((1280, 720)).convert("RGB")
    assert reader.read(gradient, []) == ()
    assert reader.pixels_read == 0


def test_labels_on_the_desktop_are_found_among_the_edges_of_a_photograph(reader):
    noise = Image.effect_noise((1280, 720), 90).convert("RGB")
    pen = ImageDraw.Draw(noise)
    pen.rectangle((40, 30, 240, 200), fill=(30, 60, 90))  # a calm corner of it
    pen.text((80, 100), "File System", fill="white", font=FONT)
    assert {"File", "System"} <= texts(reader.read(noise, []))
    assert reader.pixels_read < 1280 * 720 / 8


def test_boxes_are_around_the_words(reader):
    [word] = reader.read(page(("Save", (100, 100))))
    left, top, right, bottom = FONT.getbbox("Save")
    drawn = Box(100 + int(left), 100 + int(top), 100 + int(right), 100 + int(bottom))
    assert all(abs(one - other) <= 3 for one, other in zip(word.box, drawn, strict=True))


def test_what_is_selected_in_a_field_is_read(reader):
    image = Image.new("RGB", (400, 200), (246, 245, 244))
    pen, font, blue = ImageDraw.Draw(image), ImageFont.load_default(14), (53, 132, 228)
    pen.rounded_rectangle((30, 60, 250, 94), 5, fill=(255, 255, 255), outline=blue, width=2)
    left, _, right, _ = pen.textbbox((40, 69), "Letters", font=font)
    pen.rectangle((left, 66, right, 88), fill=blue)
    pen.text((40, 69), "Letters", fill=(255, 255, 255), font=font)
    assert texts(reader.read(image)) == {"Letters"}


def test_words_are_read_with_their_places() -> None:
    picture = Image.new("RGB", (300, 60), "white")
    ImageDraw.Draw(picture).text((20, 20), "Appearance settings", "black", ImageFont.load_default(18))
    words = Ocr("the test").words(picture)
    assert [word.text for word in words] == ["Appearance", "settings"]
    assert words[0].box.contains(60, 30)
    assert words[0].box.right <= words[1].box.left


def test_reading_changes_nothing_for_programs_that_are_started_later() -> None:
    before = dict(os.environ)
    Ocr("the test").words(Image.new("RGB", (64, 64), "white"))
    assert dict(os.environ) == before


@pytest.fixture
def data(tmp_path, monkeypatch):
    for name in ("eng", "deu", "chi_tra"):
        (tmp_path / f"{name}.traineddata").touch()
    monkeypatch.setenv("TESSDATA_PREFIX", str(tmp_path))


@pytest.mark.parametrize(
    ("locale", "languages"),
    [("C", ("eng",)), ("en_GB", ("eng",)), ("de_CH", ("deu", "eng")), ("zh_TW", ("chi_tra", "eng"))],
)
def test_the_own_language_is_read_before_english(data, locale, languages):
    assert reading_languages({"LANG": f"{locale}.UTF-8"}) == (languages, "")


@pytest.mark.parametrize(
    ("locale", "missing"), [("fr_FR", "tesseract-ocr-fra"), ("zh_CN", "tesseract-ocr-chi-sim"), ("tlh", "'tlh'")]
)
def test_what_cannot_be_read_is_said_with_what_to_install(data, locale, missing):
    languages, remark = reading_languages({"LANG": f"{locale}.UTF-8"})
    assert languages == ("eng",)
    assert missing in remark


def test_umlauts_are_read_on_a_german_desktop():
    languages, remark = reading_languages({"LANG": "de_DE.UTF-8"})
    assert remark == ""
    image = Image.new("RGB", (700, 200), (246, 245, 244))
    font = ImageFont.truetype("DejaVuSans.ttf", 13)
    ImageDraw.Draw(image).text((40, 60), "Löschen   Rückgängig   Schließen", fill=(40, 40, 40), font=font)
    assert {word.text for word in WordReader("The test", languages).read(image)} == {
        "Löschen", "Rückgängig", "Schließen",
    }  # fmt: skip
