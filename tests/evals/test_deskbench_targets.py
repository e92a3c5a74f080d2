"""DeskBench asks only for what is seen whole, and only so that nothing else on the screen is meant as well."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from agent.core.geometry import Region, Size
from agent.evals.targets import Question, is_absent, questions_of, targets_of
from agent.screen.outline import Element, Outline, ShownWindow

WINDOW = ShownWindow("Options", "Test", Region(0, 0, 400, 300))


def element(number: int, role: str, name: str, left: int, top: int, **more: Any) -> Element:
    options = {"window": "Options", "source": "both"} | more
    return Element(number, role, name, Region(left, top, *options.pop("size", (80, 30))), **options)


def screen(*elements: Element) -> Outline:
    return Outline(Size(400, 300), elements, (WINDOW,))


def bare(points: Sequence[tuple[int, int]]) -> list[object]:
    """One window, and nothing over it."""
    return ["window"] * len(points)


def asked(outline: Outline, number: int, **more: Any) -> list[Question]:
    """What is asked about an element, sorted by the sentence."""
    [target] = [one for one in targets_of(outline, bare, **more) if one.element.id == number]
    return sorted(questions_of(target, outline, random.Random(1)), key=lambda one: one.words)


def words(outline: Outline, number: int, **more: Any) -> list[str]:
    return [question.words for question in asked(outline, number, **more)]


def test_a_name_that_stands_once_is_asked_for() -> None:
    outline = screen(element(1, "push button", "Save", 10, 10), element(2, "push button", "Open", 200, 200))
    assert words(outline, 1) == ["name", "role"]


@pytest.mark.parametrize(
    ("other", "left"),
    [
        (element(2, "push button", "Save", 200, 200), []),
        (element(2, "label", "Save:", 200, 200), ["role"]),
        (element(2, "label", "S ave", 200, 200, source="words"), ["role"]),  # as OCR reads it
        (element(2, "push button", "Other", 200, 200, value="save"), []),
        (element(2, "label", "Save", 20, 12, size=(40, 20), parent=1), ["name", "role"]),  # its own label
    ],
)
def test_what_bears_the_same_words_elsewhere_makes_a_name_useless(other: Element, left: list[str]) -> None:
    assert words(screen(element(1, "push button", "Save", 10, 10), other), 1) == left


def test_a_value_is_no_name_and_the_label_is() -> None:
    slider = element(1, "slider", "4 pixels", 100, 10, label="Speed:")
    assert asked(screen(slider), 1) == [
        Question("name", "name", name="Speed"),
        Question("role", "only", "slider", window="Options"),
        Question("role", "role", "slider", "Speed"),
    ]


def test_a_place_is_told_by_the_nearest_text_if_nothing_else_is_there() -> None:
    label, box = element(1, "label", "Colour", 10, 10), element(2, "combo box", "Red", 100, 10)
    assert Question("place", "right", "list", "Colour") in asked(screen(label, box), 2)
    between = element(3, "push button", "", 91, 12, size=(8, 8))
    assert "right" not in words(screen(label, box, between), 2)
    tall, beside = element(1, "label", "Colour", 10, 10, size=(80, 60)), element(3, "combo box", "", 100, 45)
    assert "right" in words(screen(tall, box), 2)
    assert "right" not in words(screen(tall, box, beside), 2)
    aside = element(3, "push button", "", 100, 60, size=(80, 40))
    assert questions_of_place(screen(tall, aside), 3) == []
    far = element(1, "label", "Colour", 10, 200)
    assert questions_of_place(screen(far, box), 2) == []


def questions_of_place(outline: Outline, number: int) -> list[Question]:
    return [question for question in asked(outline, number) if question.asks == "place"]


def test_places_go_in_all_four_directions() -> None:
    middle = element(1, "push button", "", 150, 120)
    around = {"right": (40, 120), "left": (260, 120), "below": (150, 60), "above": (150, 180)}
    for number, (side, (left, top)) in enumerate(around.items(), 2):
        outline = screen(middle, element(number, "label", "here", left, top))
        assert asked(outline, 1) == [Question("place", side, "button", "here")]


@pytest.mark.parametrize("name", ["x_squared", "dialog-error-symbolic", "2026-11-24", "a" * 41, "\u202eevas"])
def test_names_that_no_person_would_say_are_not_asked_for(name: str) -> None:
    assert words(screen(element(1, "push button", name, 10, 10)), 1) == []


def test_the_entries_of_a_menu_bar_are_menus_whatever_a_toolkit_calls_them() -> None:
    bar = element(1, "menu bar", "", 0, 0, size=(400, 30))
    outline = screen(bar, element(2, "menu item", "File", 10, 0, parent=1), element(3, "menu item", "Open", 10, 60))
    assert [target.role for target in targets_of(outline, bare)] == ["menu", "item"]


def test_names_of_the_buttons_of_window_frames_are_not_asked_for() -> None:
    outline = screen(element(1, "push button", "Schließen", 10, 10))
    assert words(outline, 1, frame_words=["schließen"]) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"trusted": False},
        {"source": "words"},
        {"states": frozenset({"disabled"})},
        {"states": frozenset({"offscreen"})},
        {"size": (400, 290)},  # nearly all of the screen
        {"size": (6, 30)},
        {"size": (395, 30)},  # beyond the edge
    ],
)
def test_what_is_not_seen_whole_or_is_not_sure_is_left_out(changed: dict[str, Any]) -> None:
    assert targets_of(screen(element(1, "push button", "Save", 10, 5, **changed)), bare) == []


def test_what_another_window_or_element_covers_a_little_is_left_out() -> None:
    button = element(1, "push button", "Save", 10, 10)

    def corner(points: Sequence[tuple[int, int]]) -> list[object]:
        return ["menu" if x > 75 and y > 30 else "window" for x, y in points]

    assert targets_of(screen(button), corner) == []
    own = Region(0, 10, 300, 200)
    assert targets_of(screen(button), bare, [Region(89, 0, 300, 300), own]) == []
    assert targets_of(screen(button), bare, [Region(90, 0, 300, 300), own]) == []  # it may go on below that window
    assert len(targets_of(screen(button), bare, [Region(0, 50, 50, 50), own, Region(0, 0, 400, 300)])) == 1
    over = element(2, "label", "over it", 65, 10, size=(60, 30))
    assert targets_of(screen(button, over), bare) == []
    assert len(targets_of(screen(button, element(2, "label", "in it", 70, 10, size=(15, 30), parent=1)), bare)) == 1


def test_something_is_absent_only_if_nothing_looks_like_it() -> None:
    outline = screen(
        element(1, "push button", "Save as", 10, 10), element(2, "label", "Prin ter", 9, 90, source="words")
    )
    assert [is_absent(name, outline) for name in ("Save", "Printer", "Options", "Volume")] == [
        False,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("read", [(), ("Persönlich", "Ordner ei"), ("Ordner", "ei"), ("i", "OX", "p.1")])
def test_what_ocr_reads_once_and_not_the_next_time_does_not_change_what_is_absent(read: Sequence[str]) -> None:
    """The labels under a desktop's icons, and the icons, as they were read from equal screens."""
    seen = (element(number, "label", text, 9, 30 * number, source="words") for number, text in enumerate(read, 1))
    assert is_absent("Verzeichnismenü", screen(*seen))


def test_a_name_of_which_ocr_reads_one_word_is_not_absent() -> None:
    assert not is_absent("Persönlicher Ordner", screen(element(1, "label", "Ordner ei", 9, 9, source="words")))
