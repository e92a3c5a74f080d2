from pathlib import Path

import pytest
from PIL import Image

from agent.literal.reader import Reader
from agent.literal.widgets import text_fields, widgets_beside
from agent.screen.ocr import Box

SCREENS = Path(__file__).parent / "screens"


@pytest.fixture(scope="module")
def read():
    reader = Reader()
    pages = {}

    def page(name):
        if name not in pages:
            pages[name] = reader.read(Image.open(SCREENS / f"{name}.png").convert("RGB"))
        return pages[name]

    return page


@pytest.mark.parametrize(
    ("screen", "texts"),
    [
        ("settings_dark", ["Appearance", "Mouse and Touchpad", "Close", "All Settings", "Window Manager Tweaks"]),
        ("appear", ["Adwaita-dark", "Style", "Fonts", "Set matching Xfwm4 theme if there is one", "Close"]),
        ("appear_dark", ["Adwaita-dark", "Adwaita", "Icons", "Close"]),
        ("tweaks", ["Cycle through windows in a list", "Raise windows while cycling", "Compositor"]),
        ("mousepad", ["File", "Edit", "View", "Save As...", "Close Window", "Quit"]),
    ],
)
def test_every_wanted_text_is_found_on_light_and_dark_screens(read, screen, texts):
    missing = [text for text in texts if not read(screen).find(text, least=0.84)]
    assert missing == []


@pytest.mark.parametrize("key", ["0", "1", "4", "5", "6", "7", "8", "9", "+", "*", "=", "sqrt"])
def test_lone_characters_on_keys_are_found(read, key):
    assert read("calculator").find(key, least=0.94)


def test_signs_that_look_alike_are_told_apart(read):
    page = read("calculator")
    minus, equals = ([match.box.center for match in page.find(sign, least=0.94)] for sign in "-=")
    assert [place for place in minus if 255 < place[0] < 275 and 315 < place[1] < 330]
    assert [place for place in equals if 320 < place[0] < 340 and 335 < place[1] < 350]
    assert not set(minus) & set(equals)


def test_check_boxes_are_seen_as_on_or_off(read):
    page = read("tweaks")
    [checked] = page.find("Include hidden (i.e. iconified) windows")[:1]
    [empty] = page.find("Raise windows while cycling")[:1]
    assert widgets_beside(page.image, checked.label.box)[0].on is True
    assert widgets_beside(page.image, empty.label.box)[0].on is False


@pytest.mark.parametrize("screen", ["appear", "appear_dark"])
def test_a_switch_right_of_its_label_is_found_and_off(read, screen):
    page = read(screen)
    [match] = page.find("Set matching Xfwm4 theme if there is one")[:1]
    [widget] = widgets_beside(page.image, match.label.box)
    assert widget.kind == "switch"
    assert widget.on is False
    assert widget.box.left > match.box.right


def test_a_tab_has_no_widget_beside_it(read):
    page = read("tweaks")
    [match] = page.find("Compositor")[:1]
    assert widgets_beside(page.image, match.box) == []


def test_an_empty_text_field_is_found(read):
    page = read("settings_dark")
    fields = text_fields(page.image, Box(0, 0, *page.image.size))
    assert any(field.contains(590, 90) for field in fields)
