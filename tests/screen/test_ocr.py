"""Reading words: what it reads, and what it leaves behind in its process."""

import os

from PIL import Image, ImageDraw, ImageFont

from agent.screen.ocr import Ocr


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
