"""A screen is read in the desktop's language and in English, and what is missing is said."""

import pytest
from PIL import Image, ImageDraw, ImageFont

from agent.screen.ocr import reading_languages
from agent.screen.words import WordReader


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
