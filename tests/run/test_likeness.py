"""What lies at a point, held against what was asked for."""

import pytest

from agent.core.geometry import DesktopPoint, Region, Size
from agent.run.models.resolve_point import contradiction
from agent.screen.outline import Element, Outline

HERE = DesktopPoint(110, 110)


def element(name: str, role: str = "push button", left: int = 100, source: str = "both", **more: object) -> Element:
    return Element(left, role, name, Region(left, 100, 40, 20), source=source, **more)  # type: ignore[arg-type]


def said(words: str, *elements: Element) -> str:
    return contradiction(words, HERE, Outline(Size(800, 600), elements))


@pytest.mark.parametrize("words", ["the Save button", "Save", "click on “Save” at the bottom right", "saving the file"])
def test_what_is_named_as_it_was_asked_for_is_not_doubted(words: str) -> None:
    assert said(words, element("Save"), element("Cancel", left=300)) == ""


def test_what_is_written_on_it_and_is_something_else_is_doubted() -> None:
    assert said("the Export button", element("Import")) == (
        "you want “the Export button”, and at that point is the push button “Import”"
    )


def test_what_is_drawn_may_be_called_otherwise() -> None:
    assert said("the gear icon", element("Settings", source="tree")) == ""


def test_a_menu_item_has_its_name_written_on_it_also_where_nobody_read_it() -> None:
    there = element("Web Browser", role="menu item", source="tree")
    assert "Web Browser" in said("the trash icon on the desktop", there)
    assert said("the browser in the menu", there) == ""


def test_what_is_drawn_is_doubted_where_the_thing_itself_is_elsewhere() -> None:
    found = said("the Export button", element("Settings", source="tree"), element("Export", left=300))
    assert "Settings" in found


@pytest.mark.parametrize(
    "there",
    [
        element(""),
        element("Import", role="panel"),
        element("Import", role="text"),
        element("x " * 60),
        element("Import", trusted=False),
        element("Import", label="Export to PDF"),
        element("Import", value="export.txt"),
    ],
)
def test_what_tells_no_name_or_also_the_right_one_is_not_doubted(there: Element) -> None:
    assert said("the Export button", there) == ""


def test_a_label_beside_it_may_name_it() -> None:
    label = Element(7, "label", "Dark mode", Region(50, 100, 45, 20), source="words")
    assert said("the dark mode switch", element("Enabled", role="switch"), label) == ""
    far = Element(7, "label", "Dark mode", Region(400, 400, 45, 20), source="words")
    assert said("the dark mode switch", element("Enabled", role="switch"), far) != ""


@pytest.mark.parametrize("words", ["", "the button", "click here", "the icon at the top right"])
def test_words_that_name_nothing_contradict_nothing(words: str) -> None:
    assert said(words, element("Import")) == "" or "here" in words


def test_where_nothing_is_known_nothing_is_doubted() -> None:
    assert said("the Save button") == ""
