"""Things of one name at several places: on panels, under headings, in dialogs, in rows that scroll."""

from dataclasses import replace
from functools import partial

import pytest

from agent.core.geometry import Region
from agent.literal.do.known_places import shows
from agent.literal.do.now import Now, StuckError
from agent.literal.do.wheel import safe_spot
from agent.literal.do.windows import raise_window
from agent.literal.find.finder import Finder
from agent.literal.find.scene import Scene
from agent.literal.goals import PANELS, Target
from agent.literal.vocabulary.places import find_places
from agent.literal.vocabulary.translations import Names
from agent.screen.outline import ShownWindow
from tests.literal import made_up
from tests.literal.made_up import WINDOW, element, ending, outline, screen, setting

follow = partial(made_up.follow, stays=True)
DOCK = {"window": "", "app": "xfce4-panel", "y": 760}
launcher = partial(element, "push button", **DOCK)


def points(replies):
    """Where the replies click."""
    return [tuple(reply.arguments["coordinate"]) for reply in replies if "coordinate" in reply.arguments]


def on_dock(replies):
    return [y for _, y in points(replies) if y >= 760]


def test_a_launcher_is_no_control_of_the_window_that_was_opened():
    opened = screen(element("label", "Utilities"), launcher("File Manager"))
    replies = follow("open settings and set File Manager to Caja", screen(launcher("File Manager"), windows=()), opened)
    assert ending(replies[-1])[0] == "fail"
    assert not on_dock(replies)


def test_a_click_goes_to_a_panel_once_the_opened_window_was_searched():
    opened = screen(element("label", "Utilities"), launcher("Applications"))
    replies = follow("open settings and click Applications", screen(windows=()), opened)
    assert on_dock(replies)


def test_the_panel_may_be_named():
    scene = Scene(outline(element("push button", "Terminal"), launcher("Terminal")))
    found = Finder(scene).all(Target("Terminal", inside=PANELS))
    assert [one.element.box.top for one in found] == [760]


def test_a_text_of_the_front_window_may_be_the_place_of_a_thing():
    rows = [element("label", "Search Results", y=200), element("check box", "Calculator", y=240)]
    above = element("check box", "Calculator", y=150)
    found = Finder(Scene(outline(above, *rows))).best(Target("Calculator", inside="Search Results"))
    assert found is not None
    assert found.box.top == 240


def test_a_name_that_ends_in_a_word_for_a_kind_is_found_whole():
    item = element("menu item", "Spaces Per Tab")
    found = Finder(Scene(outline(item))).best(Target("Spaces Per", "page tab", whole="Spaces Per Tab"))
    assert found is not None
    assert found.name == "Spaces Per Tab"


def test_the_wheel_keeps_off_the_whole_row_of_a_slider():
    pane = element("scroll pane", x=100, y=100, w=600, h=500)
    row = element("list item", x=100, y=300, w=600, h=120, id=7)
    slider = element("slider", "Fade", x=300, y=370, w=300, h=20, parent=7)
    spot = safe_spot(Scene(outline(pane, row, slider)))
    assert spot is not None
    assert not row.box.contains(replace(row.box, left=int(spot[0]), top=int(spot[1]), width=1, height=1).middle)


@pytest.mark.parametrize(
    ("title", "app", "is_shown"),
    [
        ("Repeat Keys", "gnome-control-center", True),
        ("Settings", "gnome-control-center", True),
        ("Repeat Keys", "a-game", False),
    ],
)
def test_a_place_is_shown_by_the_dialog_at_the_end_of_its_path(title, app, is_shown):
    (place, *_) = find_places("key repeat", "gnome")
    dialog = ShownWindow(title, app, Region(100, 100, 400, 400), dialog=True, active=True)
    main = ShownWindow("Settings", "gnome-control-center", Region(50, 50, 800, 600))
    scene = Scene(outline(windows=(dialog, main)))
    assert shows(Now(scene, names=Names("gnome", {})), place) is is_shown


@pytest.mark.parametrize("front", [WINDOW, replace(WINDOW, title="Question")])
def test_a_menu_bar_that_is_gone_from_the_same_window_shows_that_it_was_switched_off(front):
    bar = element("menu bar", x=100, y=100, w=600, id=1)
    menu = element("menu", "View", x=100, y=100, id=2, parent=1)
    item = element("check menu item", "Show Menubar", x=100, y=130, id=3, parent=2, states={"checked"})
    text = element("document text", x=100, y=150, w=600, h=400)
    replies = follow("turn off Show Menubar", screen(bar, menu, item, text), screen(text, windows=(front,)))
    assert (ending(replies[-1]) == ("success", True)) is (front is WINDOW)
    assert ("The menu bar is gone now" in replies[-1].arguments["text"]) is (front is WINDOW)


def test_a_choice_that_gives_its_box_another_label_is_proved_by_the_box():
    group = element("panel", "Background", id=1, x=100, y=150, w=500, h=300)
    combo = element("combo box", id=2, parent=1, x=200, y=200, value="None", source="tree")
    choice = element("menu item", "Transparent", x=200, y=230, id=3)
    slider = element("slider", "Opacity", id=4, parent=1, x=200, y=300)
    chosen = screen(group, replace(combo, value="Transparent"), slider)
    replies = follow(
        "set Background to Transparent", screen(group, combo), screen(group, combo, choice), chosen, chosen
    )
    assert ending(replies[-1]) == ("success", True)


def test_settings_of_the_same_name_elsewhere_prove_no_bar():
    item = element("check menu item", "Show Menubar", x=100, y=130, states={"checked"})
    changed = [setting("dconf /org/x/other", "1", "2")]
    replies = follow("turn off Show Menubar", screen(item), screen(changes=changed), screen(item))
    assert ending(replies[-1]) != ("success", True)


@pytest.mark.parametrize("place", ["full screen", "the second workspace", "List View"])
def test_a_place_that_nothing_can_be_opened_in_is_said_before_anything_is_opened(place):
    replies = follow(f"open mousepad in {place}", screen(windows=()))
    assert [reply.arguments["action"] for reply in replies] == ["terminate"]
    assert ending(replies[-1])[0] == "fail"


def test_an_entry_is_opened_from_the_menu_that_is_a_button():
    button = element("push button", "Main Menu", x=600, y=110)
    replies = follow("open mousepad, open Preferences from the main menu", screen(windows=()), screen(button))
    assert (650, 120) in points(replies)


def test_a_window_whose_title_changed_is_known_by_its_application_and_box():
    before = replace(WINDOW, title="New Document (Draft)")
    with pytest.raises(StopIteration) as end:
        next(raise_window(Now(Scene(outline())), before))
    assert end.value.value == WINDOW


def test_a_window_that_is_gone_is_not_taken_for_another_of_its_application():
    front, behind = replace(WINDOW, title="b.txt"), replace(WINDOW, title="a.txt", active=False)
    now = Now(Scene(outline(windows=(front, behind))))
    steps = raise_window(now, behind)
    next(steps)
    now.scene = Scene(outline(windows=(front,)))
    with pytest.raises(StuckError):
        steps.send(None)
