"""The engine looks for what is named in closed menus, in a side bar, in a combo box, in windows of a kind."""

from dataclasses import replace

import pytest

from agent.core.geometry import Region
from agent.literal.find.finder import WHOLE, Finder, fit_of
from agent.literal.find.scene import Scene
from agent.literal.goals import Target
from agent.screen.outline import ShownWindow
from tests.literal.made_up import WINDOW, element, ending, outline, screen, setting
from tests.literal.test_false_dones import button, follow

BAR = element("menu bar", y=100, w=600, id=90)


def menu(name, x, *states):
    return element("menu", name, x=x, y=100, w=60, parent=90, states=states, id=90 + x // 60)


FILE, VIEW = menu("File", 120), menu("View", 180)
CLOSED = screen(BAR, FILE, VIEW)
FILE_OPEN = screen(BAR, FILE, VIEW, element("menu item", "Save", x=120, y=130, parent=FILE.id))


def view_open(*states):
    return screen(BAR, FILE, VIEW, element("check menu item", "List View", x=180, y=130, parent=VIEW.id, states=states))


def calls(replies):
    return [
        (reply.arguments["action"], reply.arguments.get("coordinate") or reply.arguments.get("keys"))
        for reply in replies
    ]


def test_a_button_that_only_a_closed_menu_has_is_found_there():
    changed = setting("xfconf files /last-view", "IconView", "ListView")
    replies = follow(
        "click the List View button", CLOSED, FILE_OPEN, CLOSED, view_open(), replace(CLOSED, changes=(changed,))
    )
    assert calls(replies)[:4] == [
        ("click", [150, 110]),
        ("key", "escape"),
        ("click", [210, 110]),
        ("click", [230, 140]),
    ]
    assert ending(replies[-1]) == ("success", True)


def test_without_a_menu_bar_the_button_of_the_applications_menu_is_opened():
    menu_button = element("toggle button", "Open Menu", x=600, y=100, w=40)
    item = element("menu item", "Preferences", x=600, y=130, parent=91)
    opened = screen(menu_button, element("menu", x=590, y=120, id=91), item)
    replies = follow("click Preferences", screen(menu_button), opened, opened)
    assert calls(replies)[:2] == [("click", [620, 110]), ("click", [650, 140])]


@pytest.mark.parametrize(
    ("there", "lacks", "why"),
    [
        (element("push button", "Add"), "", "“Add” there is a push button."),
        (element("push button", "Save"), "“Pantry” did not answer in time", "“Pantry” did not answer in time."),
    ],
)
def test_what_is_not_found_is_told_with_the_reason(there, lacks, why):
    last = follow("type 'Milk' into the Add field", screen(there, lacks=lacks), stays=True)[-1]
    assert why in last.arguments["text"]


def test_preferences_of_an_application_that_is_open_are_not_its_window():
    editor = ShownWindow("a.txt - Mousepad", "Mousepad", Region(100, 50, 900, 700), active=True)
    item = element("menu item", "Preferences...", x=120, y=130, parent=FILE.id, window=editor.title, app=editor.app)
    replies = follow("open the Mousepad preferences", *[screen(BAR, FILE, item, windows=(editor,))] * 2)
    assert calls(replies)[0] == ("click", [170, 140])


def test_what_no_menu_has_is_not_found_and_no_menu_stays_open():
    replies = follow("click Export", CLOSED, FILE_OPEN, CLOSED, view_open(), CLOSED)
    assert calls(replies)[1:4:2] == [("key", "escape"), ("key", "escape")]
    assert ending(replies[-1])[0] == "fail"


def test_a_menu_that_is_greyed_out_is_not_opened():
    grey = screen(BAR, menu("File", 120, "disabled"))
    assert ("click", [150, 110]) not in calls(follow("click Export", grey))


def test_a_tab_is_not_looked_for_in_menus():
    assert "click" not in [action for action, _ in calls(follow("click the Export tab", CLOSED))]


def test_what_is_said_to_be_in_the_side_bar_is_taken_from_the_left():
    left, right = element("table cell", "Trash", x=120, y=300), element("icon", "Trash", x=500, y=300)
    found = Finder(Scene(outline(right, left))).best(Target("Trash", inside="sidebar"))
    assert found is not None and found.box == left.box


def test_what_is_said_to_be_in_the_toolbar_is_taken_from_it():
    bar = element("tool bar", y=130, w=600, id=80)
    inside, beside = element("push button", "Home", y=130, parent=80), button("Home", y=400)
    found = Finder(Scene(outline(bar, beside, inside))).best(Target("Home", inside="toolbar"))
    assert found is not None and found.box == inside.box


def test_a_choice_under_the_label_of_a_combo_box_is_chosen_in_it():
    label = element("label", "Hinting:", x=120, y=200)
    combo = element("combo box", "None", x=300, y=200)
    replies = follow("pick Slight under Hinting", screen(label, combo))
    assert calls(replies)[0] == ("click", [350, 210])


def test_a_choice_in_an_open_combo_box_that_lies_over_its_label_is_chosen():
    shut = screen(element("label", "Hinting:", x=120, y=200), element("combo box", "None", x=300, y=200))
    shown = screen(*[element("menu item", name, x=300, y=180 + 20 * at) for at, name in enumerate(("None", "Slight"))])
    assert calls(follow("pick Slight under Hinting", shut, shown))[:2] == [("click", [350, 210]), ("click", [350, 210])]


def test_a_choice_is_made_also_in_a_combo_box_that_comes_into_sight_later():
    hidden = element("combo box", "None", x=300, y=900, label="Hinting", states=("offscreen",))
    shown = element("combo box", "None", x=300, y=200, label="Hinting")
    first, second = calls(follow("pick Slight under Hinting", screen(hidden), screen(shown)))[:2]
    assert first[0] == "scroll"
    assert second == ("click", [350, 210])


@pytest.mark.parametrize(
    ("said", "app"),
    [
        ("text editor", "Mousepad"),
        ("editor", "gnome-text-editor"),
        ("file manager", "org.gnome.Nautilus"),
        ("terminal", "Xfce4-terminal"),
    ],
)
def test_a_window_is_found_by_the_kind_of_its_application(said, app):
    window = ShownWindow("Untitled 1", app, Region(0, 0, 500, 400))
    scene = Scene(outline(windows=(WINDOW, window)))
    assert scene.named_window(said) is window


def test_a_window_of_the_kind_is_not_the_one_that_was_to_be_opened():
    scene = Scene(outline(windows=(ShownWindow("Untitled 1", "Mousepad", Region(0, 0, 500, 400)),)))
    assert scene.named_window("text editor", kinds=False) is None


@pytest.mark.parametrize("said", ["text editor", "calculator"])
def test_a_window_of_another_kind_is_not_found(said):
    scene = Scene(outline(windows=(ShownWindow("Mouse", "xfce4-mouse-settings", Region(0, 0, 500, 400)),)))
    assert scene.named_window(said) is None


def test_a_choice_whose_name_sounds_like_a_choice_for_something_is_clicked():
    one, other = (
        element("radio button", "Use the same source for all windows", y=200),
        element("radio button", "Use another for each", y=240, states={"checked"}),
    )
    replies = follow("select Use the same source for all windows", screen(one, other))
    assert calls(replies)[0] == ("click", [210, 210])


@pytest.mark.parametrize(
    ("told", "said", "fits"),
    [
        (f"{'Automatically tile windows when moving toward the screen edge'[:59]}…", None, True),
        (f"{'Automatically tile windows when moving toward the screen edge'[:59]}…", "Automatically tile", False),
        ("Save As…", "Save As something else entirely, with many more words than that", False),
    ],
)
def test_a_long_name_that_an_outline_cuts_is_known_by_its_beginning(told, said, fits):
    wanted = said or "Automatically tile windows when moving toward the screen edge"
    assert (fit_of(told, wanted) >= WHOLE) is fits


def test_preferences_that_are_open_already_are_brought_to_the_front_and_not_looked_for_in_a_menu():
    box = element("check box", "Text beside icons", window="File Manager Preferences", app="thunar")
    window = ShownWindow("File Manager Preferences", "thunar", Region(100, 100, 600, 500), active=True)
    replies = follow("tick Text beside icons in the file manager preferences", screen(box, windows=(window,)))
    assert replies[0].arguments["action"] == "click"


def test_a_page_is_scrolled_where_its_middle_lies_on_what_takes_no_wheel():
    table = element("table", "Schemes", x=120, y=260, w=540, h=180, id=2)
    fields = [
        element("text", f"Preview {at}", x=120 + 90 * at, y=260, w=90, h=180, parent=2, states=("editable",), id=3 + at)
        for at in range(6)
    ]
    box = element("check box", "Restore Session", y=700, states=("offscreen",), id=20)
    replies = follow("turn off Restore Session", screen(table, *fields, box))
    assert replies[0].arguments["action"] == "scroll"
    x, y = replies[0].arguments["coordinate"]
    assert not any(field.box.left <= x <= field.box.right and 260 <= y <= 440 for field in fields)


def test_a_window_that_is_covered_is_brought_to_the_front_for_what_the_tables_have_there():
    box = Region(0, 40, 1000, 760)
    tweaks = ShownWindow("Window Manager Tweaks", "xfwm4-tweaks-settings", Region(100, 100, 600, 500))
    front = ShownWindow("Untitled 1 - Mousepad", "mousepad", box, active=True)
    button = element("toggle button", "Window Manager Tweaks", x=300, y=4, window="", app="xfce4-panel")
    page = element("text", window="Untitled 1 - Mousepad", app="mousepad", w=600, h=400)
    covered = screen(button, page, windows=(front, tweaks), environ={"XDG_CURRENT_DESKTOP": "XFCE"})
    replies = follow("enable Raise windows while cycling", covered, covered)
    assert replies[0].arguments["coordinate"] == [350, 14]


@pytest.mark.parametrize(
    ("told", "fits"),
    [("New tab (Ctrl+T)", True), ("New tab (F9)", True), ("New tab [Escape]", True), ("New tab (2)", False),
     ("New tab (T)", False), ("New tab (in the background)", False)],
)  # fmt: skip
def test_the_keys_behind_a_name_are_no_part_of_it(told, fits):
    assert (fit_of(told, "New tab") >= WHOLE) is fits
