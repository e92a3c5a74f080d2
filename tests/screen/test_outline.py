"""The outline of a screen, as values and as text."""

import json

from agent.core.geometry import Grid, Region, Size
from agent.screen.outline import Element, Numbers, Outline, ShownWindow, write_outline


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


GRID = Grid.relative(1000)
BOX = Region(100, 100, 200, 40)
BACK = ShownWindow("Files", "Thunar", Region(0, 0, 400, 400))
FRONT = ShownWindow("Settings", "xfce4-settings", Region(100, 0, 400, 400), active=True)


def element(number: int, role: str = "push button", name: str = "Save", box: Region = BOX, **more: object) -> Element:
    return Element(number, role, name, box, **more)  # type: ignore[arg-type]


def outline(*elements: Element, windows: tuple[ShownWindow, ...] = (), origin: tuple[int, int] = (0, 0)) -> Outline:
    return Outline(Size(1000, 500), elements, windows, origin=origin)


def lines(told: Outline, most: int = 12_000) -> list[str]:
    return write_outline(told, GRID, most).text.splitlines()


def test_a_line_says_number_kind_name_state_and_the_centre_on_the_models_grid() -> None:
    told = outline(
        element(3, "check box", "Dark", states=frozenset({"focused"})),
        element(4, "text", "Name", value="a “b”\nc"),
    )
    assert lines(told) == [
        "the desktop",
        '3 check box "Dark" (not checked) [focused] @ 200,240',
        '4 text "Name" = "a “b” c" @ 200,240',
    ]


def test_the_centre_is_counted_from_the_monitor_that_is_shown() -> None:
    assert lines(outline(element(1, box=Region(-900, 50, 200, 100)), origin=(-1000, 0)))[1].endswith("@ 200,200")


def test_windows_come_the_top_most_first_and_the_active_one_is_told() -> None:
    told = outline(
        element(1, name="Back", window="Files", app="Thunar"),
        element(2, name="Front", window="Settings", app="xfce4-settings"),
        element(3, name="Trash"),
        windows=(FRONT, BACK),
    )
    assert [line.partition(" @")[0] for line in lines(told)] == [
        'window "Settings" (xfce4-settings), active',
        '2 push button "Front"',
        'window "Files" (Thunar)',
        '1 push button "Back"',
        "the desktop",
        '3 push button "Trash"',
    ]


def test_what_cannot_be_seen_is_not_told_and_neither_is_a_part_of_a_caption() -> None:
    caption = element(5, "label", "Window Manager Tweaks", Region(10, 10, 200, 30), source="words")
    told = outline(
        element(1, states=frozenset({"offscreen"})),
        element(2, name="", trusted=False),
        element(3, box=Region(1200, 10, 20, 20)),
        element(4, "label", "Tweaks", Region(10, 28, 60, 12), source="words"),
        caption,
    )
    assert write_outline(told, GRID).elements == (caption,)


def test_where_there_is_no_room_plain_words_go_first_and_the_number_left_out_is_said() -> None:
    words = [element(number, "label", f"word {number:02}", source="words") for number in range(1, 40)]
    told = write_outline(outline(*words, element(99)), GRID, 200)
    assert 99 in [one.id for one in told.elements]
    assert 1 < len(told.elements) < 40
    assert told.text.endswith(f"({40 - len(told.elements)} more elements are not listed)")


def test_text_on_the_screen_makes_no_line_of_its_own() -> None:
    told = outline(element(1, name='Save\n2 push button "Delete" @ 5,5\x1b[2J'))
    assert len(lines(told)) == 2
    assert "\x1b" not in lines(told)[1]


def test_a_password_is_not_told() -> None:
    assert "hunter2" not in write_outline(outline(element(1, "password text", "", value="hunter2")), GRID).text


def test_an_element_keeps_its_number_while_others_come_and_go() -> None:
    numbers = Numbers()
    save, close, twin = element(1), element(2, name="Close"), element(3, box=Region(600, 100, 200, 40))
    first = numbers.renumbered([save, close, twin])
    assert [one.id for one in first] == [1, 2, 3]
    moved = element(7, box=Region(110, 110, 200, 40))
    menu = element(8, "menu item", "Open", parent=9)
    second = numbers.renumbered([menu, element(9, name="Close"), element(10, box=Region(601, 100, 200, 40)), moved])
    assert [(one.id, one.name) for one in second] == [(4, "Open"), (2, "Close"), (3, "Save"), (1, "Save")]
    assert second[0].parent == 2
    assert [one.id for one in numbers.renumbered([close])] == [2]
