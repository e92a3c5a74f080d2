"""Elements are described by what is at a point, and by the texts that tell them from others of their name."""

import pytest

from agent.core.geometry import DesktopPoint, Region, Size
from agent.screen.nearby import described_at, described_field
from agent.screen.outline import Element, Outline


def element(number, role, name="", x=0, y=0, w=100, h=20, **values):
    values = {"window": "Notes", "app": "notes", "states": frozenset()} | values
    return Element(number, role, name, Region(x, y, w, h), **values)


def outline(*elements):
    return Outline(Size(800, 600), elements)


ROWS = outline(
    element(1, "panel", w=800, h=600),
    *(
        one
        for row, name in enumerate(("Bread", "Milk"))
        for one in (
            element(10 + row, "label", name, y=100 * row + 40),
            element(20 + row, "push button", "Delete", x=200, y=100 * row + 40),
            element(30 + row, "text", x=400, y=100 * row + 40),
        )
    ),
    element(40, "label", "Notes", y=0, w=800),
    element(50, "push button", "Add", x=600, y=40),
    element(51, "push button", "Under", x=600, y=300, trusted=False),
    element(52, "table cell", "Row", y=400, w=300, h=40),
    element(53, "table cell", "", y=400, w=40, h=40, parent=52),
    element(54, "label", "read", x=700, y=500, source="words"),
    element(60, "menu item", "Quit", x=190, y=30, w=200, h=60),
)


@pytest.mark.parametrize(
    ("x", "y", "name", "alike", "near"),
    [
        (250, 145, "Delete", 2, ("Milk",)),
        (250, 45, "Quit", 1, None),  # the menu lies over the button
        (650, 45, "Add", 1, None),
        (650, 305, None, 0, None),  # something lies over it
        (20, 410, "Row", 1, None),  # not the picture in it
        (710, 505, "read", 1, None),
        (790, 590, None, 0, None),
    ],
)
def test_what_is_at_a_point(x, y, name, alike, near):
    found = described_at(ROWS, DesktopPoint(x, y))
    if name is None:
        assert found is None
        return
    assert (found.element.name, found.alike) == (name, alike)
    assert near is None or found.near == near


def test_a_field_is_known_by_its_box_or_by_the_focus():
    assert described_field(ROWS, Region(400, 140, 100, 20)).near == ("Milk",)
    assert described_field(ROWS, None) is None
    focused = outline(element(1, "text", "Title", states=frozenset({"focused"})), element(2, "text", "Text", y=50))
    assert described_field(focused, None).element.name == "Title"
    assert described_field(None, None) is None
