"""What the engine does in GNOME Settings 43, on outlines as they were told there."""

from dataclasses import replace

from agent.literal.engine import Engine
from tests.literal.made_up import WINDOW, Screen, element, outline, taken, talk, words

SEARCH_BUTTON = element("push button", "Search", x=116, y=116, w=24, h=24, source="tree")
SIDE_ROW = element("list item", "Search", x=119, y=247, w=271, h=42)


def reply(instruction, *elements):
    return Engine().reply(talk(instruction, Screen(outline(*elements)))).arguments


def test_a_page_is_gone_to_by_its_row_and_not_by_a_button_of_the_same_name():
    for sentence in ("go to Search", "click Search"):
        assert reply(sentence, SEARCH_BUTTON, SIDE_ROW)["coordinate"] == [254, 268]


def test_a_row_without_a_name_is_not_called_like_one_of_the_texts_in_it():
    row = element("list item", "", x=371, y=118, w=538, h=193)
    button = element("push button", "Dark", x=655, y=139, w=169, h=127, source="tree")
    dark, default = words("Dark", 730, 281), words("Default", 520, 281)
    assert reply("click Dark", row, button, default, dark)["coordinate"] == [740, 202]


def test_the_switch_in_a_title_bar_belongs_to_the_title():
    row = element("list item", "Camera", x=119, y=146, w=271, h=42, states=("selected",))
    title = element("label", "Camera", x=610, y=119, w=60, h=18)
    switch = element("check box", "Enable", x=880, y=116, w=44, h=22, source="tree", states=("checked",))
    answer = reply("turn off Camera", row, title, switch)
    assert (answer["action"], answer["coordinate"]) == ("click", [891, 127])


ON_GNOME = {"XDG_CURRENT_DESKTOP": "GNOME"}
TIME_FORMAT = {"role": "combo box", "name": "Time Format", "x": 371, "y": 344, "w": 200, "h": 50}


def test_a_thing_that_is_a_combo_box_is_opened_and_chosen_from():
    now = Screen(outline(element(**TIME_FORMAT, value="24-hour")), environ=ON_GNOME)
    answer = Engine().reply(talk("set Time Format to AM/PM", now)).arguments
    assert (answer["action"], answer["coordinate"]) == ("click", [471, 369])
    now = Screen(outline(element(**TIME_FORMAT, value="AM / PM")), environ=ON_GNOME)
    assert Engine().reply(talk("set Time Format to AM/PM", now)).arguments["verified"]


def test_the_control_is_clicked_where_its_text_was_clicked_in_vain_before_the_control_was_told():
    page = [
        element("label", "Appearance", x=500, y=119),
        element("label", "Style", x=371, y=110),
        words("Dark", 730, 281),
    ]
    bare = Screen(outline(*page), environ=ON_GNOME)
    whole = Screen(outline(*page, element("toggle button", "Dark", x=655, y=139, w=169, h=127)), environ=ON_GNOME)
    moves, said = [], []
    for now in (bare, bare, whole, whole, whole):
        answer = Engine().reply(talk("turn on dark mode", now, *moves))
        said.append((answer.arguments["action"], answer.arguments.get("coordinate")))
        moves.append(taken(answer, now))
    assert said == [("wait", None), ("click", [746, 288]), ("wait", None), ("wait", None), ("click", [740, 202])]


def test_of_two_buttons_that_exclude_each_other_the_one_that_was_asked_for_counts():
    def page(chosen):
        return [
            element("label", "Appearance", x=700, y=110),
            element("label", "Style", x=483, y=174, w=558, h=18),
            *(
                element("toggle button", name, x=x, y=224, w=176, h=133, states=("pressed",) if name == chosen else ())
                for name, x in (("Default", 572), ("Dark", 772))
            ),
        ]

    def answer(sentence, chosen):
        now = Screen(outline(*page(chosen)), environ=ON_GNOME)
        return Engine().reply(talk(sentence, now)).arguments

    assert answer("turn on dark mode", "Default")["coordinate"] == [860, 290]
    assert answer("turn off dark mode", "Dark")["coordinate"] == [660, 290]
    assert answer("turn on dark mode", "Dark")["verified"]
    assert answer("turn off dark mode", "Default")["verified"]


def test_the_picture_above_a_text_is_clicked_where_the_text_does_nothing_and_no_control_is_told():
    page = [
        element("label", "Appearance", x=500, y=119),
        element("label", "Style", x=371, y=110),
        words("Dark", 730, 281),
    ]
    now = Screen(outline(*page), environ=ON_GNOME)
    moves, clicked = [], []
    while (answer := Engine().reply(talk("turn on dark mode", now, *moves))).arguments["action"] != "terminate":
        clicked += [answer.arguments["coordinate"]] if answer.arguments["action"] == "click" else []
        moves.append(taken(answer, now))
    assert clicked == [[746, 288], [746, 221]]
    assert not answer.arguments["verified"]


def test_nothing_is_clicked_above_a_text_in_a_list_where_another_choice_stands_there():
    page = [element("label", "Appearance", x=500, y=119), element("label", "Style", x=200, y=150)]
    now = Screen(outline(*page, words("Adwaita-dark", 220, 281)), environ={"XDG_CURRENT_DESKTOP": "XFCE"})
    moves, clicked = [], []
    while (answer := Engine().reply(talk("turn on dark mode", now, *moves))).arguments["action"] != "terminate":
        clicked += [answer.arguments["coordinate"]] if answer.arguments["action"] == "click" else []
        moves.append(taken(answer, now))
    assert clicked and all(y > 270 for _, y in clicked)


def test_a_combo_box_that_stands_for_a_switch_is_known_by_the_label_beside_it():
    panel = replace(WINDOW, title="Panel Preferences", app="xfce4-panel")
    of_panel = {"window": panel.title, "app": panel.app}
    label = element("label", "Automatically hide the panel:", x=120, y=200, w=192, h=34, **of_panel)
    combo = element("combo box", "Never", x=330, y=200, w=118, h=34, value="Never", **of_panel)
    now = Screen(outline(label, combo, windows=(panel,)), environ={"XDG_CURRENT_DESKTOP": "XFCE"})
    answer = Engine().reply(talk("turn on auto-hide", now)).arguments
    assert (answer["action"], answer["coordinate"]) == ("click", [389, 217])


def test_the_title_of_a_page_is_not_clicked_for_its_row_further_down():
    title = element("label", "About", x=500, y=119, w=60, h=18)
    row = element("list item", "About", x=119, y=1122, w=271, h=42, states=("offscreen", "selected"))
    answer = reply("click About", title, row)
    assert (answer["action"], answer["verified"]) == ("terminate", True)
    row = element("list item", "About", x=119, y=1122, w=271, h=42, states=("offscreen",))
    side = element("list", "Settings categories", x=105, y=158, w=280, h=440)
    assert reply("click About", title, side, row)["action"] == "scroll"


def test_what_is_further_down_than_the_window_is_scrolled_down_to():
    row = element("list item", "Typing Assist", x=371, y=700, w=271, h=42, states=("offscreen",))
    answer = reply("click Typing Assist", element("list", "Seeing", x=105, y=158, w=280, h=440), row)
    assert (answer["action"], answer["direction"]) == ("scroll", "down")


def test_a_list_that_scrolls_late_is_waited_for_and_scrolled_again_but_not_for_ever():
    row = element("list item", "Typing Assist", x=371, y=700, w=271, h=42, states=("offscreen",))
    now = Screen(outline(element("list", "Seeing", x=105, y=158, w=280, h=440), row))
    moves, said = [], []
    while (answer := Engine().reply(talk("click Typing Assist", now, *moves))).arguments["action"] != "terminate":
        said.append(answer.arguments["action"])
        moves.append(taken(answer, now))
    assert said == ["scroll", "wait"] * 3 + ["scroll"]


def test_a_page_of_settings_is_gone_to_in_its_window():
    empty = Screen(outline(windows=()), environ=ON_GNOME)
    for sentence in ("open the mouse settings", "go to the notification settings", "open the privacy settings"):
        assert Engine().reply(talk(sentence, empty)).arguments["action"] == "open"
    row = element("list item", "Notifications", x=119, y=247, w=271, h=42)
    shown = Screen(outline(row), environ=ON_GNOME)
    answer = Engine().reply(talk("go to the notification settings", shown)).arguments
    assert (answer["action"], answer["coordinate"]) == ("click", [254, 268])
    row = element("list item", "Notifications", x=119, y=247, w=271, h=42, states=("selected",))
    shown = Screen(outline(row), environ=ON_GNOME)
    assert Engine().reply(talk("go to the notification settings", shown)).arguments["verified"]


def test_a_thing_in_the_settings_of_a_page_is_looked_for_on_that_page():
    switch = element("check box", "Do Not Disturb", x=851, y=192, w=44, h=22)
    shown = Screen(outline(switch), environ=ON_GNOME)
    answer = Engine().reply(talk("turn on Do Not Disturb in the notification settings", shown)).arguments
    assert (answer["action"], answer["coordinate"]) == ("click", [862, 203])


def test_the_switch_in_a_title_bar_may_stand_left_of_the_title():
    switch = element("check box", "Enable", x=180, y=116, w=44, h=22, source="tree", states=("checked",))
    title = element("label", "Repeat Keys", x=350, y=119, w=80, h=18)
    answer = reply("turn off Repeat Keys", switch, title, element("push button", "Close", x=600, y=116, w=24, h=24))
    assert (answer["action"], answer["coordinate"]) == ("click", [191, 127])


def test_no_slider_further_down_is_taken_for_the_number_of_a_switch():
    page = [
        element("label", "Accessibility", x=588, y=19),
        element("label", "Large Text", x=371, y=150),
        element("switch", "Large Text", x=840, y=150, w=44, h=22),
        element("label", "Double-Click Delay", x=371, y=580),
        element("slider", "Double-Click Delay", x=679, y=571, w=206, h=38, value="400", limits=(100.0, 1000.0)),
    ]
    now, moves = Screen(outline(*page), environ=ON_GNOME), []
    for _ in range(20):
        answer = Engine().reply(talk("set the text size to 60 percent", now, *moves))
        if answer.arguments["action"] == "terminate":
            break
        assert "Delay" not in str(answer.arguments)
        assert answer.arguments["action"] in ("open", "wait", "scroll", "click")
        assert answer.arguments.get("coordinate") != [782, 590]
        moves.append(taken(answer, now))
    assert "takes no number here: it is the switch “Large Text”" in answer.arguments["text"]


def on_a_page(name, *elements):
    """Settings with a page in front."""
    row = element("list item", name, x=119, y=147, w=271, h=42, states=("selected",))
    return Screen(outline(row, element("label", name, x=700, y=110), *elements), environ=ON_GNOME)


def box(name, *states, y=240):
    return element("check box", name, x=500, y=y, w=300, h=40, states=states)


def test_a_control_of_a_page_that_no_table_has_is_brought_to_the_state_that_was_said():
    off, on = (on_a_page("Notifications", box("Do Not Disturb", *states)) for states in ((), ("checked",)))
    for sentence in (
        "turn off {} in the notification settings",
        "turn off {} in Notifications",
        "turn {} off on the Notifications page",
    ):
        said = sentence.format("Do Not Disturb")
        assert Engine().reply(talk(said, off)).arguments["verified"]
        assert Engine().reply(talk(said, on)).arguments["coordinate"] == [520, 260]
    unknown = on_a_page("Multitasking", box("Spin the Wheel"))
    answer = Engine().reply(talk("turn off Spin the Wheel in the multitasking settings", unknown)).arguments
    assert answer["verified"]  # it is off


def test_another_radio_button_under_the_heading_is_not_the_one_that_was_named():
    heading = element("label", "Workspaces", x=500, y=150)
    dynamic, fixed = box("Dynamic workspaces", "checked", y=200), box("Fixed number of workspaces", y=260)
    now = on_a_page("Multitasking", heading, dynamic, replace(fixed, states=frozenset({"offscreen"})))
    answer = Engine().reply(talk("turn on fixed number of workspaces", now)).arguments
    assert answer["action"] in ("scroll", "wait")
    now = on_a_page("Multitasking", heading, dynamic, fixed)
    answer = Engine().reply(talk("turn on fixed number of workspaces", now)).arguments
    assert answer["coordinate"] == [520, 280]


def test_the_items_of_a_popover_are_those_of_the_button_that_opened_it():
    view = element("push button", "View", x=600, y=110, w=34, h=34, states=("expanded",))
    popover = element("popup menu", x=450, y=150, w=260, h=200, id=90)
    item = element("check menu item", "Line Numbers", x=500, y=200, w=180, h=32, parent=90)
    now = Screen(outline(view, popover, item), environ=ON_GNOME)
    for sentence in ("tick Line Numbers in the View menu", "click Line Numbers in the View menu"):
        assert Engine().reply(talk(sentence, now)).arguments["coordinate"] == [590, 216]
