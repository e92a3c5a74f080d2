"""The engine on screens that mislead: controls that do not react, others that change instead, windows that vanish."""

from dataclasses import replace
from functools import partial

import pytest

from agent.core.changes import Change
from agent.core.geometry import Region
from agent.core.notes import Note
from agent.literal.do.now import choice_in
from agent.literal.engine import Engine
from agent.screen.outline import ShownWindow
from tests.literal import made_up
from tests.literal.made_up import WINDOW, Screen, element, ending, outline, screen, setting, taken, talk, words

OTHER = ShownWindow("Notes", "notes", Region(50, 50, 300, 300), active=True)
BACK = replace(WINDOW, active=False)


follow = partial(made_up.follow, stays=True)


def end_of(instruction, *screens):
    """How it ends."""
    return ending(follow(instruction, *screens)[-1])


def button(name, y=200, **values):
    return element("push button", name, y=y, **values)


def field(value="", name="", **values):
    return element("entry", name, value=value, **{"states": {"editable", "focused"}, "w": 300} | values)


# Opening


def test_what_appeared_in_a_window_that_was_there_opens_nothing():
    before, after = screen(button("Apply")), screen(button("Apply"), button("Reset", y=260))
    assert end_of("open mousepad", before, after) != ("success", True)


def test_a_window_that_closed_opens_nothing():
    both, one = screen(windows=(WINDOW, replace(OTHER, active=False))), screen(windows=(WINDOW,))
    assert end_of("open mousepad", both, one) != ("success", True)


def test_a_message_without_a_title_is_not_what_was_to_be_opened():
    box = ShownWindow("", "Xfce4-mime-helper", Region(50, 50, 400, 200), active=True)
    parts = [
        element("label", "Failed to execute default Web Browser.", window="", app=box.app, x=60, y=60),
        element("label", "Input/output error.", window="", app=box.app, x=60, y=90),
        element("check box", "Do not show this message again", window="", app=box.app, x=60, y=130),
        element("push button", "Close", window="", app=box.app, x=60, y=170),
    ]
    late, told = screen(windows=(box, BACK)), screen(*parts, windows=(box, BACK))
    for shown in ([told], [late, told]):
        replies = follow("open the web browser", screen(), *shown)
        assert ending(replies[-1])[0] == "fail"
        assert "Failed to execute default Web Browser. Input/output error." in replies[-1].arguments["text"]


def test_an_error_that_came_instead_is_told():
    error = ShownWindow("Error", "mousepad", Region(50, 50, 300, 300), active=True)
    replies = follow("open mousepad", screen(), screen(windows=(error, BACK)))
    assert ending(replies[-1])[0] == "fail"


def test_an_icon_that_was_only_selected_is_not_open():
    files = replace(WINDOW, title="joe", app="thunar")

    def folder(*states):
        icon = element("icon", "Papers", window="joe", app="thunar", states=states)
        return screen(icon, windows=(files,))

    replies = follow("press f5 and open Papers", *[folder()] * 3, *[folder("selected")] * 9)
    assert "double_click" in [reply.arguments["action"] for reply in replies]
    assert ending(replies[-1]) != ("success", True)


def test_the_name_of_a_file_is_no_name_of_the_row_beside_it_in_another_pane():
    places = element("table", x=110, y=150, w=150, h=400, id=1)
    desktop = element("table cell", "Desktop", x=110, y=200, w=150, h=24, id=2, parent=1)
    picture = element("table cell", x=115, y=200, w=24, h=24, id=3, parent=2)
    file = words("recipe.txt", x=280, y=202)
    replies = follow("click recipe.txt", *[screen(places, desktop, picture, file)] * 2)
    left, _ = replies[0].arguments["coordinate"]
    assert file.box.left <= left < file.box.left + file.box.width


def test_a_page_with_its_heading_is_open():
    row = element("label", "Power")
    before, after = screen(row), screen(row, element("label", "Power", x=500, y=110), button("Power Mode", y=300))
    assert end_of("press f5 and open Power", *[before] * 3, after) != ("fail", False)


# What is on the way


def test_keys_without_an_effect_are_not_shown_by_what_comes_later():
    page = screen(field())
    assert end_of("press ctrl+s and type 'hello'", *[page] * 3, screen(field("hello"))) == ("success", False)


def test_a_click_without_an_effect_is_not_shown_by_what_comes_later():
    page = screen(button("Apply"), field(y=300))
    replies = follow("click Apply and type 'hello'", *[page] * 4, screen(button("Apply"), field("hello", y=300)))
    assert ending(replies[-1]) == ("success", False)


def test_a_click_is_shown_by_what_the_next_part_needs_and_was_not_there_before():
    page = screen(button("More"))
    opened = screen(button("More"), element("check box", "Wrap", y=300))
    wrapped = screen(button("More"), element("check box", "Wrap", y=300, states={"checked"}))
    assert end_of("click More and enable Wrap", page, opened, wrapped) == ("success", True)


def test_a_click_into_a_field_is_shown_by_the_focus_it_has():
    def form(value, *states):
        return screen(field(value, "Name", states={"editable", *states}))

    shown = form(""), form("", "focused"), form("", "focused"), form("", "focused"), form("Ann", "focused")
    assert end_of("click Name and type 'Ann'", *shown) == ("success", True)


# What vanishes


def test_a_window_that_vanishes_when_something_is_clicked_is_a_failure():
    replies = follow("click Refresh", screen(button("Refresh")), screen(windows=()))
    assert ending(replies[-1])[0] == "fail"
    assert "vanished" in replies[-1].arguments["text"]


def test_a_window_that_vanishes_at_a_key_is_a_failure():
    assert end_of("press ctrl+b", screen(field()), screen(windows=()))[0] == "fail"


@pytest.mark.parametrize("name", ["OK", "Cancel", "Close", "Abbrechen"])
def test_a_dialog_closes_by_its_buttons(name):
    assert end_of(f"click {name}", screen(button(name)), screen(windows=())) == ("success", True)


def test_a_dialog_of_an_application_that_stays_may_close_by_anything():
    dialog = replace(WINDOW, title="Options")
    options = screen(button("Reset", window="Options"), windows=(dialog, BACK))
    assert end_of("click Reset", options, screen()) == ("success", True)


# Settings that are about something else


def menu(*settings):
    """A menu whose items do not tell how they stand."""
    bar = element("menu bar", id=1)
    view = element("menu", "View", id=2, parent=1)
    item = element("menu item", "Line Numbers", y=260, parent=2)
    return replace(screen(bar, view, item), changes=settings)


@pytest.mark.parametrize(
    ("what", "end"),
    [
        ("dconf /org/xfce/mousepad/preferences/view/show-line-numbers", ("success", True)),
        ("dconf /org/xfce/mousepad/preferences/window/statusbar-visible", ("success", False)),
        ("xfconf thunar /misc-single-click", ("success", False)),
    ],
)
def test_a_mute_item_is_told_by_a_setting_of_its_name_only(what, end):
    assert end_of("turn on Line Numbers", menu(), menu(setting(what, "false", "true"))) == end


def test_a_switch_whose_setting_says_otherwise_is_not_called_done():
    def page(*states, changes=()):
        return replace(screen(element("check box", "Sticky Keys", states=states)), changes=changes)

    changes = (setting("xfconf accessibility /StickyKeys", "true", "false"),)
    assert end_of("turn on Sticky Keys", page(), page("checked", changes=changes)) == ("success", False)


def test_a_switch_that_snaps_back_is_not_called_done():
    def page(*states):
        return screen(element("check box", "Wrap", states=states), element("check box", "Other", y=300, states=states))

    assert end_of("turn on Wrap", page(), page())[0] == "fail"


def test_another_switch_that_changed_instead_is_no_evidence():
    def page(*states):
        return screen(element("check box", "Wrap"), element("check box", "Wrap lines", y=300, states=states))

    assert end_of("turn on Wrap", page(), page("checked"))[0] == "fail"


# Numbers


class Amount:
    """A slider or spin button that takes numbers as a test says."""

    def __init__(self, value, role="spin button", limits=(0.0, 1000.0)):
        self.value, self.role, self.limits = value, role, limits
        self.typed = ""

    @property
    def screen(self):
        return screen(element(self.role, "Time", value=f"{self.value:g}", limits=self.limits, w=200))


def run(instruction, amount, react):
    """The replies to an instruction where each action does to the amount what `react` says."""
    engine, moves, replies, now = Engine(), [], [], amount.screen
    while len(replies) < 60:
        reply = engine.reply(talk(instruction, now, *moves))
        replies.append(reply)
        if reply.arguments["action"] in ("terminate", "answer"):
            break
        moves.append(taken(reply, now))
        react(amount, reply.arguments)
        now = amount.screen
    return replies


def takes(factor):
    """A field that takes what is typed, times a factor."""

    def react(amount, call):
        if call["action"] == "type":
            amount.typed = call["text"]
        if call.get("keys") == "tab":
            amount.value = float(amount.typed) * (factor if float(amount.typed) != 4 else 1)

    return react


def by_keys(step, pointed):
    """A slider on which one points at a number, and that keys move in steps."""

    def react(amount, call):
        if call["action"] in ("click", "drag"):
            amount.value = pointed
        amount.value += {"right": step, "left": -step}.get(call.get("keys"), 0)

    return react


def backwards(amount, call):
    """A slider whose numbers grow to the left."""
    place = call.get("end_coordinate", call.get("coordinate"))
    if place is not None:
        amount.value = round(min(1.0, max(0.0, 1 - (place[0] - 200) / 200)) * 1000)  # it is 200 wide, from 200
    amount.value += {"right": -1, "left": 1}.get(call.get("keys"), 0)


def test_a_slider_that_counts_backwards_gets_its_number_and_has_no_maximum():
    amount = Amount(300, "slider")
    assert ending(run("set Time to 400", amount, backwards)[-1]) == ("success", True)
    assert amount.value == 400
    last = run("set Time to maximum", amount, backwards)[-1]
    assert ending(last)[0] == "fail"
    assert "backwards" in last.arguments["text"]
    assert amount.value == 400


def test_a_maximum_is_the_very_end():
    amount = Amount(400, "slider")

    def ends(amount, call):
        by_keys(1, 995)(amount, call)
        amount.value = 1000 if call.get("keys") == "end" else amount.value

    assert ending(run("set Time to maximum", amount, ends)[-1]) == ("success", True)
    assert amount.value == 1000


def test_a_slider_is_brought_to_the_very_number():
    last = run("set Time to 500", Amount(400, "slider"), by_keys(1, 497))[-1]
    assert ending(last) == ("success", True)
    assert "500" in last.arguments["text"]


@pytest.mark.parametrize("reads", [24, 25])
def test_a_slider_between_two_numbers_is_where_its_setting_is(reads):
    engine, moves, held, changes = Engine(), [], 10.0, ()
    for _ in range(20):
        now = screen(element("slider", "Edge", value=f"{held:g}", limits=(1.0, 100.0), w=200), changes=changes)
        reply = engine.reply(talk(f"set Edge to {reads}", now, *moves))
        call = reply.arguments
        if call["action"] == "terminate":
            break
        moves.append(taken(reply, now))
        held = 24.76 if call["action"] == "click" else held + {"right": 1, "left": -1}.get(call.get("keys"), 0)
        changes = [setting("xfwm4 /wrap_resistance", "10", str(int(held)))]
    assert (ending(reply), int(held)) == (("success", True), reads)


def test_a_choice_about_which_a_question_is_open_is_not_made():
    asks = ShownWindow("", WINDOW.app, Region(100, 300, 400, 120), active=True, dialog=True)
    question = [
        element("label", "Would you like to arrange all icons?", window="", app=WINDOW.app, x=110, y=310),
        *(element("push button", name, window="", app=WINDOW.app, x=110, y=380) for name in ("Cancel", "Arrange")),
    ]
    box, chosen = (element("combo box", name, value=name, w=200) for name in ("Left", "Right"))
    label = element("label", "Order", x=100)
    shut, opened = screen(label, box), screen(label, box, element("menu item", "Right", y=240))
    done, open_question = screen(label, chosen), screen(label, chosen, *question, windows=(asks, BACK))
    assert end_of("choose Right in Order", shut, opened, done) == ("success", True)
    last = follow("choose Right in Order", shut, opened, open_question)[-1]
    assert ending(last) == ("success", False)
    assert "Would you like to arrange all icons?” waits for an answer" in last.arguments["text"]


def test_a_slider_whose_steps_pass_the_number_is_not_done_and_goes_back():
    amount = Amount(489, "slider")
    last = run("set Time to 500", amount, by_keys(10, 499))[-1]
    assert ending(last)[0] == "fail"
    assert amount.value == 489
    assert "put back" in last.arguments["text"]


def test_a_spin_button_that_takes_another_number_is_not_done_and_gets_its_own_back():
    amount = Amount(4)
    last = run("set Time to 6", amount, takes(10))[-1]
    assert ending(last)[0] == "fail"
    assert amount.value == 4
    assert "put back" in last.arguments["text"]


@pytest.mark.parametrize(
    ("sentence", "is_more"),
    [
        ("make the double click slower", True),
        ("make the double click faster", False),
        ("set the double click speed to maximum", False),
    ],
)
def test_a_speed_is_raised_by_less_of_its_time(sentence, is_more):
    panel = replace(WINDOW, title="Mouse and Touchpad", app="xfce4-mouse-settings")
    of_panel = {"window": panel.title, "app": panel.app, "y": 300}
    label = element("label", "Time:", x=100, **of_panel)
    time = element("slider", "", value="400", limits=(100.0, 1000.0), x=300, w=300, **of_panel)
    now = Screen(outline(label, time, windows=(panel,)), environ={"XDG_CURRENT_DESKTOP": "XFCE"})
    x, _ = Engine().reply(talk(sentence, now)).arguments["coordinate"]
    assert (x > 300 + 300 * (400 - 100) / 900) is is_more


def test_more_of_what_is_at_its_limit_is_told():
    last = run("make Time longer", Amount(1000, "slider"), takes(1))[-1]
    assert ending(last)[0] == "fail"
    assert "limit" in last.arguments["text"]


# Texts and names


SAVE = replace(OTHER, title="Save As")


def dialog(value, changes=()):
    """A dialog that asks for a name, which stands there selected."""
    name = field(value, "Name", window="Save As", app="notes", h=30)
    return replace(screen(name, windows=(SAVE, BACK)), changes=changes)


SAYS = "press ctrl+s, type 'diary.txt' and press enter"


def test_the_name_in_a_dialog_that_opened_is_replaced():
    made = (Change("file", "/home/joe/diary.txt", None, "file"),)
    shown = screen(), dialog("Unsaved 1"), dialog("Unsaved 1"), dialog("diary.txt"), replace(screen(), changes=made)
    replies = follow(SAYS, *shown)
    assert [reply.arguments.get("keys") for reply in replies[:4]] == ["ctrl+s", "ctrl+a", None, "enter"]
    assert ending(replies[-1]) == ("success", True)


def test_a_name_that_was_added_to_another_is_told():
    shown = screen(), dialog("Unsaved 1"), dialog("Unsaved 1"), dialog("Unsaved 1diary.txt")
    assert end_of(SAYS, *shown)[0] == "fail"


def test_a_file_of_another_name_is_no_evidence():
    made = (Change("file", "/home/joe/Unsaved 1diary.txt", None, "file"),)
    shown = screen(), dialog(""), dialog("diary.txt"), replace(screen(), changes=made)
    assert end_of(SAYS, *shown)[0] == "fail"


def test_a_dialog_that_asks_is_not_a_window_that_closed():
    asks = screen(button("Discard", window="Save As", app="notes"), windows=(SAVE, BACK))
    assert end_of("close the window", screen(), asks)[0] == "fail"


@pytest.mark.parametrize(("result", "verified"), [("12", True), ("75", False), ("7", False)])
def test_a_sum_shows_that_all_its_keys_were_taken_and_only_the_right_one(result, verified):
    def calculator(shown):
        keys = [element("push button", sign, 100 + 60 * at, 300, 40, 40) for at, sign in enumerate("75+=")]
        return screen(element("text", "", value=shown, w=300), *keys)

    shown = ["0", "7", "7", "7", "5", result]
    assert end_of("click 7, click +, click 5 and click =", *map(calculator, shown)) == ("success", verified)


def test_a_sum_is_shown_by_what_was_copied_of_it():
    keys = [element("push button", sign, 100 + 60 * at, 300, 40, 40) for at, sign in enumerate("78+=")]
    copied = replace(screen(*keys), changes=(Change("clipboard", "clipboard", None, "2 characters: 15"),))
    instruction = "click 7, click +, click 8, click =, press ctrl+c"
    assert end_of(instruction, *[screen(*keys)] * 9, copied) == ("success", True)


def test_a_file_whose_name_got_a_second_ending_is_not_the_one_that_was_typed():
    empty, named = screen(field()), screen(field("a.txt"))
    made = Change("file", "/home/joe/a.txt.txt", None, "3 bytes")
    saved = replace(screen(), changes=(made,))
    assert end_of("type 'a.txt' and press enter", empty, named, saved) != ("success", True)


def test_what_stands_in_a_dialog_that_tells_nothing_yet_is_selected_before_it_is_typed_into():
    page = screen(element("text", "", value="red", states={"focused", "editable"}))
    dialog = ShownWindow("Save As", "settings", Region(100, 100, 300, 200), active=True)
    silent = screen(words("Name", x=150, y=150), windows=(dialog, BACK), lacks="“Save As” tells nothing.")
    calls = [reply.arguments for reply in follow("press ctrl+s and type 'a.txt'", page, *[silent] * 24)]
    keys = [call.get("keys") or call.get("text") for call in calls if call["action"] in ("key", "type")]
    assert keys[:3] == ["ctrl+s", "ctrl+a", "a.txt"]


def test_a_switch_that_is_not_told_just_now_is_not_clicked_by_its_text():
    switch = element("switch", "Large Text", x=600, states={"checked"})
    gone = screen(words("Large Text"), lacks="“Settings” did not answer in time.")
    calls = [reply.arguments["action"] for reply in follow("untick Large Text", screen(switch), gone)]
    assert calls.count("click") == 1


def test_a_slider_that_is_not_told_just_now_is_waited_for():
    def held(value):
        return element("slider", "Delay", value=str(value), limits=(100.0, 1000.0), w=300)

    label = element("label", "Other")
    shown = screen(held(400)), screen(label), screen(label), screen(held(700))
    assert end_of("set Delay to 700", *shown) == ("success", True)


def test_a_menu_that_was_opened_by_name_is_open():
    bar, menu = element("menu bar", w=600, id=90), element("menu", "Edit", parent=90, id=91)
    shut, shown = screen(bar, menu), screen(bar, menu, element("menu item", "Preferences", y=240, parent=91))
    engine, moves, now = Engine(), [], shut
    for _ in range(9):
        reply = engine.reply(talk("press escape and open Edit", now, *moves))
        if reply.arguments["action"] == "terminate":
            break
        moves.append(taken(reply, now))
        now = shown if reply.arguments["action"] == "click" else now
    assert [step.calls[0].arguments["action"] for step in moves].count("wait") <= 2
    assert ending(reply)[0] == "success"


def test_what_is_opened_by_sight_is_no_switch_of_that_name():
    row, switch = element("list item", "Alerts"), element("switch", "Alerts", x=500)
    page = screen(row, switch)
    calls = [reply.arguments for reply in follow("open Alerts", page)]
    assert [550, 210] not in [call.get("coordinate") for call in calls]


def test_a_slider_that_keys_go_past_is_counted_up_from_its_end():
    engine, moves, held = Engine(), [], 400.0
    for _ in range(24):
        slider = element("slider", "Delay", value=f"{held:g}", limits=(100.0, 1000.0), w=300)
        now = screen(slider)
        reply = engine.reply(talk("set Delay to 700", now, *moves))
        call = reply.arguments
        if call["action"] == "terminate":
            break
        moves.append(taken(reply, now))
        match call.get("keys"):
            case "right" | "left":
                held += 100 if call["keys"] == "right" else -100
            case "home":
                held = 100.0
            case _ if call["action"] == "click":
                held = 685.4
    assert (ending(reply), held) == (("success", True), 700.0)


# What is so already


XFCE = {"XDG_CURRENT_DESKTOP": "XFCE"}


def test_a_control_of_another_window_is_not_held_against_the_setting_of_the_same_name():
    panel = replace(WINDOW, title="Panel Preferences", app="xfce4-panel")
    at = {"window": panel.title, "app": panel.app}
    dark = screen(element("label", "Dark mode", **at), element("switch", x=400, **at), windows=(panel,), environ=XFCE)
    theme = setting("xfconf xsettings /Net/ThemeName", "Adwaita", "Adwaita-dark")
    replies = follow("turn on dark mode", dark, replace(dark, changes=(theme,)))
    assert replies[0].arguments["action"] == "click"
    assert ending(replies[-1])[0] == "fail"


def test_a_choice_on_another_page_than_the_named_is_not_so_already():
    tabs = [element("page tab", "Style", y=110, states={"selected"}), element("page tab", "Icons", x=320, y=110)]
    replies = follow("choose Adwaita in Icons", screen(*tabs, element("table cell", "Adwaita", states={"selected"})))
    assert replies[0].arguments["coordinate"] == [370, 120]


def test_a_control_that_something_covered_meanwhile_is_clicked_once_it_is_back():
    editor = replace(WINDOW, title="a.txt - Mousepad", app="Mousepad", active=True)
    tab, covered = element("page tab", "Fonts", y=110), replace(WINDOW, active=False)
    late = Note("failed", "“a.txt - Mousepad” covers “Settings” at that point now: look again")
    there = screen(tab)
    back = screen(element("page tab", "Fonts", y=110, states={"selected"}))
    replies = follow("click Fonts", there, screen(tab, windows=(editor, covered)), there, back, notes={0: late})
    clicked = [reply.arguments.get("coordinate") for reply in replies[:3]]
    assert clicked[0] == clicked[2] == [250, 120]
    assert ending(replies[-1]) == ("success", True)
    last = follow("click Fonts", there, there, notes={0: late, 1: late})[-1]
    assert "covers “Settings” at that point now" in last.arguments["text"]


def test_two_rows_of_one_name_are_asked_about():
    rows = [row for y in (200, 300) for row in (element("label", "Chimes", y=y), element("switch", x=400, y=y))]
    replies = follow("turn on Chimes", screen(*rows))
    assert replies[0].arguments["action"] == "ask_user"


@pytest.mark.parametrize(
    ("reply", "choice"),
    [("2", 1), ("the first", 0), ("the one in downloads", 1), ("downloads, please", 1),
     ("not the one in downloads", None), ("the one", None), ("report.txt", None),
     ("the one in pictures", None), ("documents or downloads", None)],
)  # fmt: skip
def test_a_reply_names_one_of_several_things_by_number_or_by_its_own_words(reply, choice):
    assert choice_in(reply, ("~/Documents/report.txt", "~/Downloads/report.txt")) == choice


def test_two_fields_of_one_name_are_asked_about():
    fields = [element("spin button", "Time", y=y, value="5") for y in (200, 300)]
    assert follow("set Time to 6", screen(*fields))[0].arguments["action"] == "ask_user"


def test_what_was_typed_is_undone_whole_though_the_editor_undoes_it_word_by_word():
    empty, whole, part = (screen(field(value)) for value in ("", "Dear Anna", "Dear"))
    replies = follow("type 'Dear Anna' and undo it", empty, whole, part, empty)
    assert [reply.arguments.get("keys") for reply in replies].count("ctrl+z") == 2
    assert ending(replies[-1])[0] == "success"
    kept = follow("type 'Dear Anna' and undo it", empty, whole, part)
    assert ending(kept[-1])[0] == "fail"
    assert "the text holds “Dear”" in kept[-1].arguments["text"]


def test_undoing_what_was_typed_ends_before_what_the_person_wrote():
    old, whole, less = (screen(field(value)) for value in ("My letter", "My letterDear", "My"))
    replies = follow("type 'Dear' and undo it", old, whole, less, screen(field("")))
    assert [reply.arguments.get("keys") for reply in replies].count("ctrl+z") == 1
    assert ending(replies[-1])[0] == "fail"


def test_an_item_of_a_menu_that_lay_over_a_text_did_not_click_the_text():
    text = element("text", "", value="some words", x=150, y=200, w=400, h=200, id=90, states={"editable", "focused"})
    bar, menu = element("menu bar", x=200, y=100, w=600, id=80), element("menu", "Search", y=100, parent=80, id=81)
    item = element("menu item", "Find Next", y=240, parent=81)
    shut, shown = screen(bar, menu, text), screen(bar, menu, item, text)
    replies = follow("click Search > Find Next", shut, shown, shut, shut, shut, shut)
    assert [reply.arguments["action"] for reply in replies[:2]] == ["click", "click"]
    assert ending(replies[-1])[1] is not True, replies[-1]


def test_what_a_step_shows_that_the_person_changed_proves_nothing():
    pressed = screen(button("Apply", states={"focused"}), button("Reset", y=260))
    changed = {0: [Note("changed", "click at 30,40")]}
    replies = made_up.follow("click Apply", screen(button("Apply")), pressed, notes=changed, stays=True)
    assert ending(replies[-1]) == ("success", False)
    assert "you changed a step" in replies[-1].arguments["text"].casefold()


def test_a_text_that_the_person_changed_is_what_must_be_there():
    empty, typed = screen(field()), screen(field("hello world"))
    changed = {0: [Note("changed", "type “hello world”")]}
    replies = made_up.follow("type 'hello'", empty, typed, notes=changed, stays=True)
    assert ending(replies[-1]) == ("success", True)
    assert ending(made_up.follow("type 'hello'", empty, empty, notes=changed, stays=True)[-1]) != ("success", True)


def test_a_dialog_that_did_not_answer_in_time_is_waited_for():
    late = screen(lacks="“Settings” did not answer in time: the contents are unknown.")
    replies = follow("click Delete it", late, screen(button("Delete it")))
    assert [reply.arguments["action"] for reply in replies[:2]] == ["wait", "click"]
