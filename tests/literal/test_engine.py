"""The engine on made-up screens: what it decides, and when it calls something done."""

from dataclasses import replace

import pytest

from agent.core.changes import Change
from agent.core.geometry import Region
from agent.core.notes import Note
from agent.literal.do.amounts import _check, _percent
from agent.literal.do.now import Now, StuckError, WhichError
from agent.literal.engine import Engine
from agent.literal.find.effects import effects
from agent.literal.find.scene import Scene
from agent.literal.goals import Click, Reading, SetValue, Target
from agent.screen.outline import ShownWindow
from tests.literal import made_up
from tests.literal.made_up import (
    WINDOW,
    call_of,
    element,
    ending,
    outline,
    past,
    screen,
    setting,
    taken,
    talk,
    words,
)


@pytest.fixture
def engine():
    return Engine()


def follow(engine, instruction, *screens, notes=None, stays=False):
    """The replies to an instruction, or to a goal, one a screen."""
    if not isinstance(instruction, str):
        goal, instruction = instruction, "do it"
        engine = Engine(lambda _: Reading([goal]))
    return made_up.follow(instruction, *screens, notes=notes, engine=engine, stays=stays)


def box(*, on, name="Reverse scroll direction", **values):
    return element("check box", name, states={"checked"} if on else (), **values)


# Switches


def test_a_check_box_is_clicked_at_its_mark_and_done_when_it_is_checked(engine):
    first, last = follow(engine, "enable Reverse scroll direction", screen(box(on=False, w=200)), screen(box(on=True)))
    assert call_of(first) == {"action": "click", "coordinate": [210, 210]}
    assert ending(last) == ("success", True)
    assert "checked" in last.arguments["evidence"][0]
    assert "already" not in last.arguments


def test_what_is_on_already_is_not_touched(engine):
    reply = engine.reply(talk("enable Reverse scroll direction", screen(box(on=True))))
    assert ending(reply) == ("success", True)
    assert reply.arguments["already"] == ["enable “Reverse scroll direction”"]


def test_what_stays_off_is_not_called_done(engine):
    off = screen(box(on=False))
    replies = follow(engine, "enable Reverse scroll direction", *[off] * 8)
    assert [reply.arguments["action"] for reply in replies] == ["click", "wait", "wait", "terminate"]
    assert ending(replies[-1])[0] == "fail"


def test_a_switch_without_a_name_is_the_one_on_the_row_of_its_label(engine):
    def page(*states):
        return screen(
            element("label", "Set matching theme", 200, 300, 150, 20),
            element("toggle button", "", 500, 297, 50, 26, states=states),
            element("toggle button", "", 500, 397, 50, 26),
            element("label", "Other", 200, 400, 150, 20),
        )

    first, last = follow(engine, "turn on 'Set matching theme'", page(), page("checked"))
    assert call_of(first)["coordinate"] == [525, 310]
    assert ending(last) == ("success", True)


def test_more_of_what_is_a_switch_on_this_desktop_switches_it_on(engine):
    page = screen(element("switch", "Large Text", 500, 297, 50, 26))
    gnome = replace(page, environ={"XDG_CURRENT_DESKTOP": "GNOME"})
    assert call_of(engine.reply(talk("make the text bigger", gnome)))["coordinate"] == [525, 310]


def test_what_is_greyed_out_is_not_clicked(engine):
    reply = engine.reply(talk("enable Wrap", screen(element("check box", "Wrap", states={"disabled"}))))
    assert ending(reply)[0] == "fail"
    assert "greyed out" in reply.arguments["text"]


def test_a_row_of_a_list_is_ticked_in_the_column_of_its_boxes(engine):
    def rows(*states):
        return screen(
            element("table cell", "Home", 200, 200, 300, 20, id=1),
            element("table cell", "", 200, 200, 20, 20, parent=1, states={"checked"}),
            element("table cell", "Trash", 200, 220, 300, 20, id=3),
            element("table cell", "", 200, 220, 20, 20, parent=3, states=states),
            element("table cell", "", 226, 220, 16, 20, parent=3),
        )

    first, last = follow(engine, "uncheck Trash", rows("checked"), rows())
    assert call_of(first)["coordinate"] == [210, 230]
    assert ending(last) == ("success", True)


def test_a_menu_that_shuts_is_no_evidence(engine):
    bar = element("menu bar", id=1)
    view = element("menu", "View", id=2, parent=1)
    opened = screen(bar, view, element("menu item", "Reload", y=260, parent=2))
    replies = follow(engine, "click Reload", opened, *[screen(bar, view)] * 4)
    assert ending(replies[-1]) == ("success", False)


def test_a_window_that_vanishes_while_it_is_typed_into_is_told(engine):
    replies = follow(engine, "type 'hello'", screen(field("")), screen(windows=()))
    assert ending(replies[-1])[0] == "fail"
    assert "vanished" in replies[-1].arguments["text"]


# Clicks


def test_a_visible_thing_is_clicked_in_its_middle(engine):
    reply = engine.reply(talk("click Apply", screen(element("push button", "Apply"))))
    assert call_of(reply) == {"action": "click", "coordinate": [250, 210]}


def test_a_changed_picture_alone_is_no_evidence(engine):
    page = screen(element("push button", "Apply"))
    replies = follow(engine, "click Apply", *[page] * 5)
    assert ending(replies[-1]) == ("success", False)


def test_a_tool_tip_is_no_evidence(engine):
    page = screen(element("push button", "Apply"))
    hovered = screen(element("push button", "Apply"), element("tool tip", "Apply the changes"))
    assert ending(follow(engine, "click Apply", page, *[hovered] * 4)[-1]) == ("success", False)


def test_a_window_that_closed_is_evidence(engine):
    page, gone = screen(element("push button", "Close")), screen(windows=())
    assert ending(follow(engine, "click Close", page, gone)[-1]) == ("success", True)


def test_a_page_that_appeared_is_evidence(engine):
    page = screen(element("push button", "Display"))
    now = screen(element("push button", "Display"), element("combo box", "Resolution"))
    last = follow(engine, "click Display", page, now)[-1]
    assert ending(last) == ("success", True)
    assert "Resolution" in last.arguments["evidence"][0]


def test_a_setting_that_changed_is_evidence(engine):
    page = screen(element("push button", "Dark"))
    now = replace(page, changes=(setting("xfconf xsettings /Net/ThemeName", "Adwaita", "Adwaita-dark"),))
    last = follow(engine, "click Dark", page, now)[-1]
    assert ending(last) == ("success", True)
    assert "Adwaita-dark" in last.arguments["evidence"][0]


@pytest.mark.parametrize(("first", "verified"), [("click General", True), ("scroll down", True), ("click Save", False)])
def test_what_only_leads_on_is_proved_by_what_comes_next(engine, first, verified):
    there = (element("list item", "General"), element("push button", "Save", y=300))
    shut, done = screen(*there, box(on=False, y=400)), screen(*there, box(on=True, y=400))
    replies = follow(engine, f"{first}, then enable Reverse scroll direction", *[shut] * 3, *[done] * 6)
    assert ending(replies[-1]) == ("success", verified)


def test_a_place_that_is_not_there_may_be_a_part_of_the_name(engine):
    first, last = follow(
        engine, "enable Show menus in new windows", screen(box(on=False, name="Show menus in new windows")),
        screen(box(on=True, name="Show menus in new windows")),
    )  # fmt: skip
    assert call_of(first)["action"] == "click"
    assert ending(last) == ("success", True)


def test_a_page_is_not_the_row_that_has_its_name(engine):
    """GNOME's page "Date & Time" has a row "Date & Time", beside the row of the control."""
    row = element("list item", "Date & Time", id=7)
    format_ = element("combo box", "24-hour", label="Time Format", y=300)
    now = replace(screen(row, element("label", "today", parent=7), format_), environ={"XDG_CURRENT_DESKTOP": "GNOME"})
    first, *_ = follow(engine, "set Time Format to AM / PM in Date & Time", now, now)
    assert call_of(first)["coordinate"] == [250, 310]


def test_the_main_menu_is_the_only_menu_button_of_the_window(engine):
    menu, opened = element("push button", "Menu"), element("menu item", "Preferences", y=300)
    first, *_ = follow(engine, "click the main menu", screen(menu), screen(menu, opened))
    assert call_of(first)["coordinate"] == [250, 210]


def test_it_never_clicks_something_merely_similar(engine):
    page = screen(
        element("push button", "Delete everything", y=150),
        element("push button", "Save As", y=200),
        element("push button", "Redo", y=250),
    )
    for name in ("Delete", "Save", "Undo"):
        replies = follow(engine, f"click {name}", *[page] * 20)
        assert ending(replies[-1])[0] == "fail"
        assert not {"click", "double_click"} & {reply.arguments["action"] for reply in replies}


def test_what_lies_under_another_window_or_is_named_misleadingly_is_not_clicked_by_its_name(engine):
    page = screen(element("push button", "Delete", trusted=False, source="tree"))
    assert engine.reply(talk("click Delete", page)).arguments["action"] != "click"


def test_the_words_on_a_button_count_more_than_its_name(engine):
    page = screen(
        element("push button", "Cancel", 200, 200, trusted=False, source="tree"),
        words("Cancel", 400, 300),
    )
    assert call_of(engine.reply(talk("click Cancel", page)))["coordinate"] == [424, 307]


def test_the_third_icon_is_the_third_in_reading_order(engine):
    page = screen(*[element("icon", f"Icon {x}", x, 200, 20, 20) for x in (300, 200, 400)])
    [reply] = follow(engine, Click(Target(role="icon", ordinal=3)), page)
    assert call_of(reply)["coordinate"] == [410, 210]


def twins(*groups):
    """A button "Add" in each of these groups."""
    parts = []
    for number, name in enumerate(groups):
        at = 200 + 100 * number
        parts += [
            element("panel", name, 150, at, 300, 80, id=10 + number),
            element("push button", "Add", 200, at + 20, parent=10 + number),
        ]
    return screen(*parts)


def test_of_two_buttons_of_one_name_none_is_clicked_before_the_person_says_which(engine):
    now = twins("Fonts", "Colours")
    asked = engine.reply(talk("click Add", now))
    assert call_of(asked)["action"] == "ask_user"
    assert "1) the push button at 250,230 in “Fonts”, 2) the push button at 250,330" in call_of(asked)["question"]
    question = taken(asked, now)
    second = engine.reply(talk("click Add", now, replace(question, user_reply="the second one")))
    assert call_of(second) == {"action": "click", "coordinate": [250, 330]}
    named = engine.reply(talk("click Add", now, replace(question, user_reply="Fonts")))
    assert call_of(named) == {"action": "click", "coordinate": [250, 230]}
    for answer in (taken(asked, now, Note("nobody")), replace(question, user_reply="whatever")):
        refused = engine.reply(talk("click Add", now, answer))
        assert ending(refused)[0] == "fail"
        assert "2 things are called “Add”" in refused.arguments["text"]


@pytest.mark.parametrize(
    ("reply", "at"),
    [("2", 1), ("the second one", 1), ("the last", 2), ("the second to last", 1), ("beta", 1), ("number 3 please", 2),
     ("first or second", None), ("the fourth", None), ("0", None), ("either", None), ("", None)],
)  # fmt: skip
def test_a_reply_names_one_of_several_things_or_the_question_is_open(reply, at):
    now = Now(Scene(outline()), answer=reply)
    with pytest.raises(WhichError if at is None else StopIteration) as ended:
        next(now.pick("Add", ["alpha", "beta", "gamma"]))
    assert at is None or ended.value.value == at


def test_what_the_person_said_by_place_or_number_is_not_asked_about(engine):
    now = twins("Fonts", "Colours")
    assert call_of(engine.reply(talk("click the second Add button", now)))["coordinate"] == [250, 330]
    assert call_of(engine.reply(talk("click Add under Colours", now)))["coordinate"] == [250, 330]


def test_the_same_name_is_told_apart_by_what_it_stands_under(engine):
    page = screen(
        element("label", "Titles", y=150), element("push button", "Reset", y=180),
        element("label", "Icons", y=300), element("push button", "Reset", y=330),
    )  # fmt: skip
    [reply] = follow(engine, Click(Target("Reset", under="Icons")), page)
    assert call_of(reply)["coordinate"] == [250, 340]


def test_a_button_next_to_a_name_is_the_one_in_its_row_though_the_next_row_is_nearer(engine):
    rows = [
        one
        for y, name in ((150, "Carol"), (172, "Dave"))
        for one in (element("table cell", name, x=150, y=y), element("push button", "Delete", x=600, y=y))
    ]
    [reply] = follow(engine, Click(Target("Delete", under="Carol", beside=True)), screen(*rows))
    assert call_of(reply)["coordinate"] == [650, 160]
    [reply] = follow(engine, Click(Target("Delete", under="Erin", beside=True)), screen(*rows))[:1]
    assert reply.arguments["action"] != "left_click"


def test_a_switch_of_the_page_in_front_comes_before_the_desktops_own(engine):
    page = ShownWindow("My account - Chromium", "Chromium", Region(0, 0, 900, 700), active=True)
    switch = element("toggle button", "Dark theme", window=page.title, app=page.app)
    xfce = {"XDG_CURRENT_DESKTOP": "XFCE"}
    [reply] = follow(engine, "turn on the dark theme", screen(switch, windows=(page,), environ=xfce))
    assert call_of(reply)["coordinate"] == [250, 210]
    other = screen(replace(switch, name="Sync"), windows=(page,), environ=xfce)
    [reply] = follow(engine, "turn on the dark theme", other)
    assert reply.arguments["action"] == "open"


def test_what_a_browser_adds_to_the_name_of_a_tab_is_no_effect():
    before, after = (
        Scene(outline(element("page tab", name))) for name in ("Members", "Members - Memory usage - 35 MB")
    )
    assert not effects(before, after, [], [])
    assert effects(before, Scene(outline(element("page tab", "Invoices - Memory usage - 35 MB"))), [], [])


def test_an_application_that_stops_answering_shows_no_effect():
    shown = [element("push button", name, y=200 + 40 * at) for at, name in enumerate(("Compute", "Amount", "Euro"))]
    read = [words(name, y=200 + 40 * at) for at, name in enumerate(("Compute", "Amount", "Euro", "Result"))]
    before = Scene(outline(*shown))
    assert not effects(before, Scene(outline(*read)), [], [])
    assert effects(before, Scene(outline(shown[0])), [], []).gone == ("Amount", "Euro")


# Numbers


def amount(value, role="spin button", **values):
    return element(role, "Columns", value=str(value), limits=(0.0, 100.0), w=200, **values)


def test_a_spin_button_is_typed_into_and_left(engine):
    replies = follow(engine, SetValue(Target("Columns"), 6), *[screen(amount(4))] * 5, screen(amount(6)))
    assert [reply.arguments["action"] for reply in replies] == ["click", "key", "key", "type", "key", "terminate"]
    assert ending(replies[-1]) == ("success", True)


def test_what_is_typed_into_a_field_for_a_number_replaces_the_number(engine):
    replies = made_up.follow("type 6 into Columns", *[screen(amount(4))] * 5, screen(amount(6)), engine=engine)
    assert "ctrl+a" in [call_of(reply).get("keys") for reply in replies]
    assert ending(replies[-1]) == ("success", True)
    [*_, refused] = made_up.follow("type 'many' into Columns", screen(amount(4)), engine=engine)
    assert "takes a number" in refused.arguments["text"]


def test_a_large_number_is_typed_in_full(engine):
    field = element("spin button", "Columns", value="4", limits=(0.0, 1e9), w=200)
    replies = follow(engine, SetValue(Target("Columns"), 12345678), *[screen(field)] * 4)
    assert replies[-1].arguments["text"] == "12345678"


def test_a_sign_that_no_keyboard_has_is_the_button_of_that_name(engine):
    [press] = made_up.follow("press ×", screen(element("push button", "×")), engine=engine)
    assert call_of(press)["action"] == "click"


def test_a_panels_button_of_a_windows_name_is_not_pressed_to_find_something_in_the_window(engine):
    panel = element("toggle button", "Settings", y=10, window="xfce4-panel", app="xfce4-panel")
    replies = follow(engine, Click(Target("Dark", inside="Settings")), *[screen(element("label", "x"), panel)] * 9)
    assert not [reply for reply in replies if reply.arguments.get("coordinate") == [250, 20]]
    assert ending(replies[-1])[0] == "fail"


def test_a_page_is_switched_to_where_no_window_has_its_name(engine):
    [click] = made_up.follow("switch to Icons", screen(element("page tab", "Icons")), engine=engine)
    assert call_of(click)["action"] == "click"


def test_a_number_that_is_not_taken_is_not_called_done(engine):
    replies = follow(engine, SetValue(Target("Columns"), 6), *[screen(amount(4))] * 9)
    assert ending(replies[-1])[0] == "fail"


def test_a_slider_is_pointed_at_and_brought_there_by_keys(engine):
    values = [20, 49, 50]
    replies = follow(engine, SetValue(Target("Columns"), 50), *[screen(amount(value, "slider")) for value in values])
    assert [reply.arguments["action"] for reply in replies] == ["click", "key", "terminate"]
    assert replies[1].arguments["keys"] == "right"
    assert ending(replies[-1]) == ("success", True)


def test_a_number_outside_the_limits_is_refused_before_anything_is_done(engine):
    [reply] = follow(engine, SetValue(Target("Columns"), 600), screen(amount(4)))
    assert ending(reply)[0] == "fail"
    assert "0 to 100" in reply.arguments["text"]


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("40 px", "40"), ("40 pixels", "40"), ("two thousand", "2000"), ("2 dozen", "24"), ("minus 5", "-5"),
        ("5 k", None), ("40 mm", None), ("4 times", None), ("40 bananas", None), ("30 percent", None), ("half", None),
        ("maximum", "3000"),
    ],
)  # fmt: skip
def test_a_number_with_a_unit_is_only_set_where_the_control_counts_in_it(engine, said, typed):
    row = element("spin button", "Row size (pixels)", value="26", limits=(-10.0, 3000.0), w=200)
    replies = made_up.follow(f"set Row size to {said}", screen(row), engine=engine, stays=True)
    typing = [call_of(reply)["text"] for reply in replies if call_of(reply).get("action") == "type"]
    assert typing == ([] if typed is None else [typed]), replies[-1].arguments
    assert typed or ending(replies[-1])[0] == "fail"


def test_a_unit_behind_the_field_is_its_unit_and_a_percentage_of_a_slider_from_one_is_its_number(engine):
    field = element("spin button", "Size", value="26", limits=(1.0, 300.0), w=100)
    replies = made_up.follow("set Size to 40 pixels", screen(field, element("label", "pixels", x=310)), engine=engine,
                             stays=True)  # fmt: skip
    assert "40" in [call_of(reply).get("text") for reply in replies]
    bright = element("slider", "Brightness", value="50", limits=(1.0, 100.0), w=200)
    [reply] = made_up.follow("set Brightness to 50 percent", screen(bright), engine=engine)
    assert "holds 50 already" in reply.arguments["text"]


def test_a_number_field_of_the_tables_takes_no_percentage():
    field = element("spin button", "Workspaces", value="4", limits=(1.0, 100.0))
    goal = SetValue(Target("workspaces"), 5.0, "%")
    with pytest.raises(StuckError, match="takes 1 to 100, and no percentage"):
        _percent(goal, field, 5.0, (1.0, 100.0), known=True)
    assert _percent(goal, field, 5.0, (1.0, 100.0), known=False) == 5.0


def test_smaller_by_a_step_that_is_no_whole_number_is_done():
    goal = SetValue(Target("Threshold"), direction="down")
    _check(goal, 8.0, 7.1, Change("setting", "dconf /t", "8", "7"))


@pytest.mark.parametrize(("said", "typed"), [("0.5 seconds", "500"), ("300 ms", "300"), ("2 minutes", None)])
def test_a_time_is_set_in_the_unit_of_its_control(engine, said, typed):
    delay = element("spin button", "Delay (ms)", value="400", limits=(100.0, 2000.0), w=200)
    replies = made_up.follow(f"set the delay to {said}", screen(delay), engine=engine, stays=True)
    assert next((call_of(reply)["text"] for reply in replies if call_of(reply)["action"] == "type"), None) == typed


def test_a_setting_that_took_another_number_than_its_control_shows_is_not_done():
    with pytest.raises(StuckError, match=r"“Columns” takes whole numbers, not 3\.7\."):
        _check(SetValue(Target("Columns"), 3.7), 4.0, 3.7, Change("setting", "dconf /columns", "4", "3"))


# Choices


def combo(value):
    return element("combo box", value, label="Style", w=150)


def test_a_choice_is_picked_from_what_the_combo_box_opens(engine):
    shut, opened = screen(combo("Adwaita")), screen(combo("Adwaita"), element("menu item", "Daloa", y=260))
    chosen = screen(combo("Daloa"))
    replies = follow(engine, "set Style to Daloa", shut, opened, chosen)
    assert [call_of(reply).get("coordinate") for reply in replies[:2]] == [[275, 210], [250, 270]]
    assert ending(replies[-1]) == ("success", True)


def test_a_choice_that_there_is_not_leaves_the_combo_box_as_it_was(engine):
    shut, opened = screen(combo("Adwaita")), screen(combo("Adwaita"), element("menu item", "Raleigh", y=260))
    replies = follow(engine, "set Style to Daloa", shut, *[opened] * 3, *[shut] * 3)
    assert replies[-2].arguments["keys"] == "escape"
    assert ending(replies[-1])[0] == "fail"


def test_what_is_chosen_already_is_left_alone(engine):
    reply = engine.reply(talk("set Style to Adwaita", screen(combo("Adwaita"))))
    assert ending(reply) == ("success", True)
    assert reply.arguments["already"] == ["choose “Adwaita” in “Style”"]


def test_a_choice_in_an_application_opens_it_and_is_clicked_there(engine):
    shut, before = screen(windows=()), element("radio button", "Radians", app="Galculator", window="galculator")
    windows = (ShownWindow("galculator", "Galculator", WINDOW.box, active=True),)
    after = replace(before, states=frozenset({"checked"}))
    replies = follow(
        engine, "choose Radians in galculator", shut, screen(before, windows=windows), screen(after, windows=windows)
    )
    assert [call_of(reply).get("action") for reply in replies[:2]] == ["open", "click"]
    assert call_of(replies[0])["text"] == "galculator"
    assert ending(replies[-1]) == ("success", True)


# Text


def field(value, **values):
    return element("text", "", value=value, states={"editable", "focused"}, w=300, h=300, **values)


def test_typed_text_is_read_back(engine):
    before, after = screen(field("")), screen(field("hello world"))
    last = follow(engine, "type 'hello world'", before, after)[-1]
    assert ending(last) == ("success", True)


def test_text_that_went_nowhere_is_not_called_done(engine):
    page = screen(field(""))
    replies = follow(engine, "type 'a sentence that is longer than any calculator takes'", *[page] * 5)
    assert ending(replies[-1])[0] == "fail"


def test_no_text_is_typed_while_a_dialogs_button_keeps_the_focus(engine):
    field = element("text", "Name", states={"editable"}, w=300)
    ok = element("push button", "OK", y=400, states={"focused"})
    replies = follow(engine, "type 'a b' into Name", screen(field, ok), stays=True)
    assert "type" not in [reply.arguments["action"] for reply in replies]
    assert "the push button “OK” keeps the focus" in replies[-1].arguments["text"]


def test_a_text_that_could_not_be_typed_is_not_called_done(engine):
    failed = {0: Note("failed", "the keyboard focus went to “Files”")}
    replies = follow(engine, "type 'hello'", screen(field("")), screen(field("h")), notes=failed, stays=True)
    assert ending(replies[-1])[0] == "fail"
    assert "the keyboard focus went to “Files”" in replies[-1].arguments["text"]


def calculator(shown):
    return screen(element("text", "", value=shown), element("toggle button", "="))


def test_a_display_is_typed_into_key_by_key_and_read_before_the_next_key(engine):
    replies = follow(engine, "type 1+2", *map(calculator, ["0", "0", "0", "1", "1", "2"]))
    assert [reply.arguments.get("keys") for reply in replies[1:-1]] == ["1", None, "+", "2"]
    assert ending(replies[-1]) == ("success", True)


def test_a_display_that_drops_a_key_ends_the_typing(engine):
    replies = follow(engine, "type 144/12 and press ctrl+c", *map(calculator, ["0", "0", "1", *["1"] * 9]))
    assert ending(replies[-1])[0] == "fail"
    assert "holds “1” after “14”" in replies[-1].arguments["text"]


# Windows and applications


def test_the_first_step_opens_the_application_and_its_window_is_the_evidence(engine):
    first, last = follow(engine, "open mousepad", screen(windows=()), screen())
    assert call_of(first) == {"action": "open", "text": "mousepad"}
    assert ending(last) == ("success", True)


def test_an_application_whose_window_never_comes_is_not_open(engine):
    replies = follow(engine, "open mousepad", *[screen(windows=())] * 6)
    assert ending(replies[-1])[0] == "fail"


OTHER = ShownWindow("Notes - Mousepad", "mousepad", Region(50, 50, 300, 300))


def test_a_window_is_brought_to_the_front_before_it_is_closed(engine):
    both = screen(windows=(WINDOW, OTHER))
    front = screen(windows=(replace(OTHER, active=True), replace(WINDOW, active=False)))
    gone = screen(windows=(WINDOW,))
    replies = follow(engine, "close mousepad", both, front, gone)
    assert replies[0].arguments["action"] == "click"
    assert replies[1].arguments["keys"] == "alt+f4"
    assert ending(replies[-1]) == ("success", True)


def test_a_named_window_that_is_not_there_is_not_closed(engine):
    reply = engine.reply(talk("close firefox", screen()))
    assert ending(reply)[0] == "fail"
    assert "firefox" in reply.arguments["text"]


def test_on_a_bare_desktop_nothing_is_closed(engine):
    assert ending(engine.reply(talk("close the window", screen(windows=()))))[0] == "fail"


def test_only_a_dialog_is_closed_as_a_dialog(engine):
    reply = engine.reply(talk("close the dialog", screen()))
    assert ending(reply)[0] == "fail" and "is no dialog" in reply.arguments["text"]
    asks = screen(windows=(replace(WINDOW, dialog=True),))
    replies = follow(engine, "close the dialog", asks, screen(windows=()))
    assert replies[0].arguments["action"] == "key" and ending(replies[-1]) == ("success", True)


def test_a_window_that_asks_before_it_closes_is_not_closed(engine):
    asks = screen(windows=(ShownWindow("Save Changes", "settings", Region(200, 200, 200, 100), active=True), WINDOW))
    replies = follow(engine, "close the window", screen(), asks)
    assert ending(replies[-1])[0] == "fail"
    assert "Save Changes" in replies[-1].arguments["text"]


def test_a_window_is_found_by_the_file_that_its_longer_title_names(engine):
    notes = ShownWindow("*~/Texts/notes.txt - Mousepad", "Mousepad", Region(150, 150, 300, 300))
    other = replace(notes, title="~/Texts/more.txt - Mousepad")
    above = replace(WINDOW, box=Region(0, 0, 1000, 800))
    page = screen(windows=(above, other, notes))
    front = screen(windows=(replace(notes, active=True), replace(above, active=False), other))
    first, last = follow(engine, "switch to the notes.txt window", page, front)
    assert first.arguments["keys"] == "alt+shift+tab"  # wholly covered: through all windows
    assert ending(last) == ("success", True)


# Menus


def menus(*items, role="menu item"):
    bar = element("menu bar", id=1)
    view = element("menu", "View", id=2, parent=1)
    return screen(bar, view, *(element(role, name, y=260 + 20 * at, parent=2) for at, name in enumerate(items)))


@pytest.mark.parametrize("said", ["open Zoom", "open the Zoom submenu", "choose Zoom"])
def test_what_is_opened_after_a_menu_is_its_entry_before_any_application(engine, said):
    shut, opened = menus(), menus("Zoom", "Reload", role="menu")
    further = screen(*opened.outline.elements, element("menu item", "Larger", 400, 260, parent=3))
    _, reply, last = follow(engine, f"open the View menu and {said}", shut, opened, further)
    assert call_of(reply) == {"action": "click", "coordinate": [250, 270]}
    assert ending(last) == ("success", True)


def test_what_is_opened_in_a_menu_is_no_application(engine):
    first, second = follow(engine, "in the View menu, open Zoom", menus(), menus("Zoom"))
    assert [call_of(first)["coordinate"], call_of(second)["coordinate"]] == [[250, 210], [250, 270]]


def test_a_longer_name_of_a_button_is_no_settings_of_its_first_word(engine):
    page = screen(
        element("push button", "Close", y=110),
        element("push button", "View", y=150),
        element("toggle button", "View Options", y=200),
    )
    chat = talk("wait 1 second and open View Options", page, past({"action": "wait", "seconds": 1.0}, page))
    assert call_of(engine.reply(chat))["coordinate"] == [250, 210]


# Keypads, and the desktop itself


def keypad(*names):
    digits = [element("push button", str(digit), 150 + 30 * digit, 300, 20, 20) for digit in range(10)]
    return screen(*digits, *(element("push button", name, 150, 400 + 30 * at) for at, name in enumerate(names)))


@pytest.mark.parametrize(
    ("said", "key"), [("×", "Multiply"), ("÷", "Divide"), ("−", "Subtract"), ("*", "×"), ("times", "×"), ("-", "−")]
)
def test_the_sign_on_a_key_and_its_name_are_the_same_key(engine, said, key):
    reply = engine.reply(talk(f"click {said}", keypad("Clear", key)))
    assert call_of(reply) == {"action": "click", "coordinate": [200, 440]}


def test_signs_are_names_on_keypads_only(engine):
    page = screen(element("push button", "Add", y=150), element("push button", "Multiply"))
    assert not [r for r in follow(engine, "click +", *[page] * 3) if r.arguments["action"] == "click"]


@pytest.mark.parametrize("said", ["the desktop", "the desktop background", "on an empty area of the desktop"])
def test_the_desktop_is_clicked_where_nothing_covers_it(engine, said):
    icon = element("icon", "Home", 20, 20, 60, 60, window="Desktop", app="Xfdesktop")
    items = [element("menu item", "Create Folder", 800, 700, window="Desktop", app="Xfdesktop")]
    first, last = follow(engine, f"right-click {said}", screen(icon), screen(icon, *items))
    x, y = first.arguments["coordinate"]
    assert first.arguments["action"] == "right_click"
    assert not (100 <= x < 700 and 100 <= y < 600)
    assert ending(last) == ("success", True)


@pytest.mark.parametrize("said", ["Desktop", "Wallpaper", "Desktop Background"])
def test_a_plain_click_on_what_is_called_desktop_waits_for_it(engine, said):
    reply = engine.reply(talk(f"open settings and click {said}", screen(), past({"action": "open"}, screen())))
    assert "click" not in reply.arguments["action"]


def test_on_the_desktop_means_no_window_and_no_application_of_that_name(engine):
    icon, button = words("Home", 20, 40, window="", app=""), element("toggle button", "Desktop", 20, 5, app="panel")
    told = engine.reply(talk("double-click Home on the desktop", screen(element("label", "Home"), icon, button)))
    assert (call_of(told)["action"], call_of(told)["coordinate"]) == ("double_click", [36, 47])
    opened = follow(engine, "double-click Bin on the desktop", *[screen(element("label", "Bin"), icon, button)] * 12)
    assert ending(opened[-1]) == ("fail", False)
    assert {call_of(reply)["action"] for reply in opened[:-1]} <= {"wait"}


def test_a_desktop_that_is_covered_is_not_clicked(engine):
    page = screen(windows=(replace(WINDOW, box=Region(0, 0, 1000, 800)),))
    assert ending(engine.reply(talk("right-click the desktop", page)))[0] == "fail"


# Several parts, and what the person says


def test_what_was_reached_before_is_remembered_with_its_evidence(engine):
    off, on, end = screen(box(on=False)), screen(box(on=True), field("")), screen(box(on=True), field("hello"))
    _, second, last = follow(engine, "enable Reverse scroll direction and type 'hello'", off, on, end)
    assert call_of(second) == {"action": "type", "text": "hello"}
    assert ["checked" in words_ for words_ in last.arguments["evidence"]] == [True, False]


def test_keys_on_the_way_to_something_that_is_seen_need_no_evidence_of_their_own(engine):
    page = screen(field("a"))
    replies = follow(engine, "press ctrl+a and type 'hello'", page, page, screen(field("hello")))
    assert ending(replies[-1]) == ("success", True)


def test_keys_whose_effect_is_not_seen_are_not_called_done(engine):
    replies = follow(engine, "press ctrl+s", *[screen(field("a"))] * 4)
    assert ending(replies[-1]) == ("success", False)


def test_a_dry_run_goes_on_as_far_as_it_can_know(engine):
    told = (Note("dry_run"),)
    replies = follow(engine, "open mousepad and type 'hello' and click Save", *[screen(windows=())] * 5, notes=told)
    assert [call_of(reply)["action"] for reply in replies] == ["open", "type", "answer"]
    assert "cannot be known" in replies[-1].arguments["text"]


def test_an_instruction_it_does_not_understand_is_answered_with_what_it_does(engine):
    reply = engine.reply(talk("order a pizza", screen()))
    assert ending(reply)[0] == "fail"
    assert "literal engine" in reply.arguments["text"]


def denied_with(said):
    return (Note("refused"), Note("said", said))


def test_what_the_person_adds_comes_after_the_rest(engine):
    page, after = screen(element("push button", "Apply")), screen(element("push button", "Close"))
    said = Note("said", "open mousepad")
    _, reply = follow(engine, "click Apply", page, after, notes={0: said})
    assert call_of(reply) == {"action": "open", "text": "mousepad"}


def test_what_it_cannot_follow_it_says_and_goes_on(engine):
    page = screen(element("push button", "Apply"))
    _, reply = follow(engine, "click Apply", page, page, notes={0: Note("said", "hurry up a bit")})
    assert "I cannot follow what you say" in reply.thought
    assert reply.arguments["action"] == "wait"


def test_what_it_could_not_follow_keeps_the_run_from_being_called_done(engine):
    box_now = [screen(box(on=on, w=200)) for on in (False, True)]
    replies = follow(engine, "enable Reverse scroll direction", *box_now, notes={0: Note("said", "hurry up a bit")})
    assert ending(replies[-1]) == ("success", False)
    assert "You also said “hurry up a bit”, which I could not follow." in replies[-1].arguments["text"]


def test_a_changed_wish_may_begin_with_no(engine):
    page, after = screen(element("push button", "Apply")), screen(element("push button", "Close"))
    _, reply = follow(engine, "click Apply", page, after, notes={0: Note("said", "No, open mousepad instead")})
    assert call_of(reply) == {"action": "open", "text": "mousepad"}


@pytest.mark.parametrize("said", ["Skip it and go on with the next part.", "open mousepad"])
def test_a_part_that_the_person_does_not_want_is_left_out(engine, said):
    page = screen(element("push button", "Appearance"))
    denied = past({"action": "open", "text": "terminal"}, page, *denied_with(said))
    reply = engine.reply(talk("open terminal and click Appearance", page, denied))
    assert call_of(reply)["action"] == "click"
    assert "You did not want this" in reply.thought


def test_what_is_done_instead_is_done_at_the_end(engine):
    denied = past({"action": "open", "text": "terminal"}, screen(), *denied_with("open settings instead"))
    assert call_of(engine.reply(talk("open terminal", screen(), denied))) == {"action": "open", "text": "settings"}


def test_a_part_that_was_skipped_is_not_called_done(engine):
    denied = past({"action": "open", "text": "terminal"}, screen(), *denied_with("Skip it."))
    reply = engine.reply(talk("open terminal", screen(), denied))
    assert ending(reply)[0] == "fail"
    assert reply.arguments["text"] == "You did not want this: open “terminal”. Nothing else was to be done."


def test_a_plain_no_ends_the_run_and_says_so(engine):
    denied = past({"action": "open", "text": "terminal"}, screen(), Note("refused"))
    reply = engine.reply(talk("open terminal and type 'ls'", screen(), denied))
    assert ending(reply)[0] == "fail"
    assert "You did not allow this: open “terminal”." in reply.arguments["text"]


def test_what_it_cannot_do_instead_ends_the_run(engine):
    denied = past({"action": "open", "text": "terminal"}, screen(), *denied_with("something nicer"))
    reply = engine.reply(talk("open terminal and type 'ls'", screen(), denied))
    assert ending(reply)[0] == "fail"
    assert "I cannot follow what you say" in reply.arguments["text"]


def test_an_answer_that_was_not_carried_out_is_decided_anew_on_the_screen_of_then(engine):
    there, elsewhere = screen(element("push button", "Apply")), screen(element("push button", "Apply", y=400))
    assert call_of(engine.reply(talk("press f5 and click Apply", there))) == {"action": "key", "keys": "f5"}
    pressed = past({"action": "key", "keys": "f5"}, there)
    after = screen(element("push button", "Apply"), element("check box", "New", y=500, states={"checked"}))
    assert call_of(engine.reply(talk("press f5 and click Apply", after, pressed)))["coordinate"] == [250, 210]
    late = replace(elsewhere, outline=outline(*elsewhere.outline.elements, element("check box", "New", y=500)))
    assert call_of(engine.reply(talk("press f5 and click Apply", late, pressed)))["coordinate"] == [250, 410]
    assert call_of(engine.reply(talk("press f5 and click Apply", there))) == {"action": "key", "keys": "f5"}


# Looking further


def test_the_wheel_turns_over_no_slider(engine):
    sliders = [element("slider", f"Level {y}", 150, y, 500, 24, limits=(0, 1), value="0") for y in range(120, 580, 60)]
    page = screen(
        element("scroll pane", "", 100, 100, 600, 500), element("scroll bar", "", 690, 100, 10, 500), *sliders
    )
    replies = follow(engine, "click Nothing", *[page] * 3)
    turned = [reply.arguments["coordinate"] for reply in replies if reply.arguments["action"] == "scroll"]
    assert turned
    assert not any(
        one.box.left <= x <= one.box.left + one.box.width and one.box.top <= y <= one.box.top + one.box.height
        for x, y in turned
        for one in sliders
    )


# Windows of one name, and windows that are open already


def test_an_open_application_is_brought_to_the_front_and_not_started_again(engine):
    both = screen(windows=(WINDOW, OTHER))
    front = screen(windows=(replace(OTHER, active=True), replace(WINDOW, active=False)))
    replies = follow(engine, "open mousepad", both, front)
    assert "open" not in [reply.arguments["action"] for reply in replies]
    assert ending(replies[-1]) == ("success", True)
    assert follow(engine, "open a new mousepad", both, front)[0].arguments["action"] == "open"


def test_a_settings_dialog_is_not_taken_for_the_settings(engine):
    mouse = screen(windows=(ShownWindow("Mouse and Touchpad", "xfce4-mouse-settings", Region(50, 50, 300, 300)),))
    assert follow(engine, "open settings", mouse)[0].arguments == {"action": "open", "text": "settings"}


def test_of_two_windows_of_one_name_it_asks_which(engine):
    two = screen(windows=(WINDOW, OTHER, replace(OTHER, title="Bills - Mousepad")))
    replies = follow(engine, "close mousepad", two)
    assert replies[0].arguments["action"] == "ask_user"
    assert "Bills - Mousepad" in replies[0].arguments["question"]


def test_all_windows_but_one_are_closed(engine):
    other = replace(OTHER, active=True)
    shown = [screen(windows=(WINDOW, replace(OTHER))), screen(windows=(OTHER,))]
    replies = follow(engine, "close all windows except mousepad", *shown)
    assert [reply.arguments.get("keys") for reply in replies] == ["alt+f4", None]
    assert ending(replies[-1]) == ("success", True)
    assert ending(follow(engine, "close everything but firefox", screen(windows=(other,)))[-1])[0] == "fail"


def test_a_dialog_listed_in_the_settings_is_opened_by_itself(engine):
    manager = ShownWindow("Settings", "xfce4-settings-manager", Region(50, 50, 600, 500), active=True)
    listed = screen(
        words("Keyboard", window="Settings", app="xfce4-settings-manager"),
        windows=(manager,), environ={"XDG_CURRENT_DESKTOP": "XFCE"},
    )  # fmt: skip
    assert follow(engine, "click Keyboard", listed)[0].arguments == {"action": "open", "text": "Keyboard"}


def test_what_is_not_installed_is_said_so(engine):
    missing = Note("failed", "no installed application, file or folder is called 'GIMP'; similar names: Vim, Display")
    replies = follow(engine, "open GIMP", screen(), screen(), notes=missing)
    assert replies[-1].arguments["text"] == "“GIMP” is not installed, and you have no file or folder of that name."


def test_a_switch_that_is_only_called_enabled_stands_for_its_page(engine):
    def page(*states):
        row = element("list item", "Bell", x=110, y=150, states={"selected"})
        return screen(row, element("check box", "Enabled", x=400, y=150, states=states))

    replies = follow(engine, "turn on Bell", page(), page("checked"))
    assert [reply.arguments["action"] for reply in replies] == ["click", "terminate"]
    assert ending(replies[-1]) == ("success", True)


def test_bigger_is_a_tenth_more_of_what_a_number_is(engine):
    def size(value):
        field = element("spin button", "Icon size", value=value, limits=(16.0, 960.0))
        return screen(field)

    replies = follow(engine, "make Icon size bigger", *[size("48")] * 5, size("53"))
    assert [reply.arguments.get("text") for reply in replies[3:4]] == ["53"]
    assert ending(replies[-1]) == ("success", True)


def test_the_third_icon_is_no_word_and_no_button(engine):
    here = screen(words("Open"), words("Edit", y=300), words("View", y=400), element("push button", "Go", y=500))
    assert ending(follow(engine, "click the third icon", *[here] * 9)[-1])[0] == "fail"


# Texts in an editor


def test_a_text_is_replaced_everywhere_or_where_it_stands_once(engine):
    editor = ShownWindow("a.txt - Mousepad", "mousepad", Region(50, 50, 600, 500), active=True)

    def text(value):
        field = element("text", "", value=value, states={"editable"}, w=300, h=300, window=editor.title, app=editor.app)
        return screen(field, windows=(editor,))

    replies = follow(engine, "replace all 'cat' with 'dog'", *[text("a cat, a cat")] * 3, text("a dog, a dog"))
    assert replies[2].arguments["text"] == "a dog, a dog"
    assert ending(replies[-1]) == ("success", True)
    assert "2 times" in follow(engine, "replace 'cat' with 'dog'", text("a cat, a cat"))[-1].arguments["text"]


def test_a_mark_in_a_title_opens_and_closes_no_window():
    before, marked, other = (
        Scene(outline(windows=(replace(WINDOW, title=title),))) for title in ("note.txt", "*note.txt", "list.txt")
    )
    assert effects(before, marked, [], []).windows == ("the window “note.txt” is called “*note.txt” now",)
    assert effects(before, other, [], []).windows == (
        "the window “list.txt” opened", "the window “note.txt” is not shown any more",
    )  # fmt: skip
