from pathlib import Path

import pytest
from PIL import Image

from agent.literal.find.finder import Finder
from agent.literal.find.reader import Reader
from agent.literal.find.scene import Scene
from agent.literal.goals import Target

SCREENS = Path(__file__).parent / "screens"


@pytest.fixture(scope="module")
def read():
    reader = Reader()
    pages = {}

    def page(name):
        if name not in pages:
            pages[name] = Scene(reader.outline(Image.open(SCREENS / f"{name}.png").convert("RGB")))
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
    missing = [text for text in texts if Finder(read(screen)).best(Target(text)) is None]
    assert missing == []
