"""The outline of a screen as a program reads it."""

import json

from agent.core.geometry import Region, Size
from agent.screen.outline import Element, Outline


def test_an_outline_is_plain_json_with_boxes_in_pixels_of_the_desktop() -> None:
    box = Element(
        1, "check box", "Dark", Region(-10, 20, 30, 40), None, frozenset({"showing", "checked"}), "Settings", "both"
    )
    slider = Element(2, "slider", "", Region(0, 0, 1, 1), value="30", source="words", trusted=False)
    told = Outline(Size(1920, 1080), (box, slider)).to_json()
    assert json.loads(json.dumps(told)) == told
    assert told["size"] == [1920, 1080]
    assert told["elements"] == [
        {"id": 1, "role": "check box", "name": "Dark", "value": None, "states": ["checked", "showing"],
         "box": [-10, 20, 30, 40], "window": "Settings", "source": "both", "trusted": True, "app": "", "parent": None,
         "label": "", "limits": None},
        {"id": 2, "role": "slider", "name": "", "value": "30", "states": [],
         "box": [0, 0, 1, 1], "window": "", "source": "words", "trusted": False, "app": "", "parent": None,
         "label": "", "limits": None},
    ]  # fmt: skip
