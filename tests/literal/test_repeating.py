"""A recipe's steps on made-up screens: only exactly what was recorded is touched, and a step that fails says which."""

from dataclasses import replace

import pytest
from PIL import Image, ImageDraw

from agent.core.changes import Change
from agent.core.geometry import DesktopPoint, Region, Size
from agent.core.notes import Note
from agent.literal.engine import Engine
from agent.literal.goals import Click, Expected, Open, Part, Press, Reading, Repeat, Target, Toggle, Type
from agent.literal.vocabulary.translations import Names
from agent.screen.encode import encode
from agent.screen.outline import ShownWindow
from agent.screen.picture_search import cut_out
from tests.literal import made_up
from tests.literal.made_up import WINDOW, call_of, element, ending, screen, setting, words

THEME = Expected("setting", "xfconf xsettings /Net/ThemeName", "Dark")
SAVE = Part(Click(Target("Save", "push button", inside="Settings")))
OTHER = ShownWindow("Notes", "notes", Region(0, 0, 300, 300), active=True)
BEHIND = ShownWindow("Settings", "settings", Region(100, 100, 600, 500))


def follow(*screens, parts=(SAVE,), expected=(), **more):
    goal = Repeat(tuple(parts), tuple(expected))
    engine = Engine(lambda _: Reading([goal]))
    return made_up.follow("do it again", *screens, engine=engine, **more)


def said(replies):
    return replies[-1].arguments["text"]


def actions(replies):
    return [reply.arguments["action"] for reply in replies]


def save(**values):
    return element("push button", "Save", **values)


def test_the_same_button_is_clicked_wherever_it_is():
    first, last = follow(screen(save(x=500, y=300)), screen(element("push button", "Saved")))
    assert call_of(first) == {"action": "click", "coordinate": [550, 310]}
    assert ending(last) == ("success", True)


@pytest.mark.parametrize(
    ("there", "why"),
    [
        ([element("push button", "Save As")], "there is no push button “Save” in “Settings”; in front is “Settings”"),
        ([element("push button", "Safe")], "there is no push button “Save”"),
        ([element("menu item", "Save")], "push button “Save” in “Settings”; what has this name is a menu item"),
        ([save(states={"disabled"})], "“Save” in “Settings” is greyed out"),
        ([save(), save(y=400)], "2 things are “Save” in “Settings”, and nothing tells which is meant"),
        ([save(trusted=False, source="tree")], "“Save” in “Settings” is there, but cannot be reached"),
        ([], "there is no push button “Save”"),
    ],
)  # fmt: skip
def test_what_is_not_the_same_is_never_clicked(there, why):
    replies = follow(screen(*there, element("label", "Title")), stays=True)
    assert set(actions(replies)) <= {"wait", "terminate"}
    assert ending(replies[-1])[0] == "fail"
    assert said(replies).startswith("Step 1 of 1, click “Save” in “Settings”: ")
    assert why in said(replies)


def awaited(first, *later, parts):
    """What the engine says of later screens while its first step takes effect; None if it awaits nothing."""
    engine = Engine(lambda _: Reading([Repeat(tuple(parts), ())]))
    engine.reply(made_up.talk("do it again", first))
    return [engine.shows_awaited(one.outline) for one in later] if engine.awaits else None


FIELD = element("text", "Name", states={"focused"}, source="tree")


@pytest.mark.parametrize(
    ("following", "came"),
    [
        (Part(Click(Target("OK", "push button", inside="Settings"))), element("push button", "OK", source="tree")),
        (Part(Type("me", Target("Name", "text", inside="Settings"))), FIELD),
    ],
)
def test_what_the_next_step_needs_is_awaited_if_it_was_not_there_before(following, came):
    clicked, before = SAVE, screen(save())
    assert awaited(before, before, screen(save(), came), parts=[clicked, following]) == [False, True]
    assert awaited(screen(save(), came), before, parts=[clicked, following]) is None  # it shows no effect
    assert awaited(before, before, parts=[clicked]) is None


def test_keys_await_nothing_because_no_screen_shows_where_they_go():
    behind = screen(save(), windows=[WINDOW, replace(OTHER, active=False)])
    for following in (Part(Press(("enter",)), window="Notes"), Part(Type("me"), window="Notes")):
        assert awaited(behind, parts=[SAVE, following]) is None


def test_a_field_awaits_the_focus_and_its_text_what_comes_next():
    def field(value="old", states=(), *more):
        return screen(element("text", "Name", value=value, states=states), *more)

    text = "more than is pressed key by key"
    focused, typed, valid = field(states={"focused"}), field(text, {"focused"}), field(text, {"focused"}, save(y=400))
    part = Part(Type(text, Target("Name", "text", inside="Settings"), replace=True))
    engine = Engine(lambda _: Reading([Repeat((part, SAVE), ())]))
    steps = []
    for before, no, yes in ((field(), field(), focused), (focused, None, focused), (focused, typed, valid)):
        reply = engine.reply(made_up.talk("do it again", before, *steps))
        assert engine.shows_awaited(yes.outline)
        assert no is None or not engine.shows_awaited(no.outline)
        steps.append(made_up.taken(reply, before))
    assert [call_of(reply)["action"] for reply in follow(field(), focused, focused, typed, parts=[part])][:3] == [
        "click", "key", "type",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "part",
    [
        Part(Type("more than is pressed key by key", Target("Name", "text", inside="Settings"))),
        Part(Toggle(Target("Blink", "switch", inside="Settings"), on=True)),
    ],
)
def test_what_the_last_step_does_is_not_believed_before_the_screen_is_still(part):
    """An application may take it back, and what is there already may move."""
    there = screen(element("text", "Name", states={"focused"}), element("switch", "Blink", x=500), save(y=400))
    assert awaited(there, parts=[part]) is None
    assert awaited(there, parts=[part, SAVE]) is None


def test_a_text_that_another_field_took_stops_the_recipe():
    def fields(first="", second="", states=()):
        other = element("text", "Second", value=second, y=400, states=states)
        return screen(element("text", "First", value=first, states=() if states else {"focused"}), other)

    part = Part(Type("hello there, more than one word", Target("First", "text", inside="Settings")))
    text = part.goal.text
    assert ending(follow(fields(), fields(first=text), parts=[part])[-1]) == ("success", True)
    replies = follow(fields(), fields(second=text, states={"focused"}), parts=[part])
    assert said(replies).endswith("the focus moved, and the text went into text “Second”")


def test_a_target_that_changed_before_the_click_is_looked_for_again_once():
    there, moved = screen(save(y=200)), screen(save(y=300))
    failed = Note("failed", "“Discard” came where “Save” was meanwhile: look again")
    replies = follow(there, moved, screen(element("push button", "Saved")), notes={0: failed})
    assert [call_of(reply).get("coordinate") for reply in replies[:2]] == [[250, 210], [250, 310]]
    assert ending(replies[-1]) == ("success", True)
    replies = follow(there, moved, moved, notes={0: failed, 1: failed})
    assert ending(replies[-1])[0] == "fail"


def test_words_that_were_not_read_before_are_no_effect():
    read = [words(name, y=300 + 20 * at) for at, name in enumerate(("one line", "two lines", "three lines"))]
    replies = follow(screen(save(source="tree")), screen(save(source="tree"), *read), stays=True)
    assert ending(replies[-1])[1] is False
    replies = follow(screen(save(source="tree"), words("Title")), screen(save(source="tree"), words("Title"), *read))
    assert ending(replies[-1])[1] is True


def test_a_button_of_another_window_is_not_it():
    other = element("push button", "Save", window="Notes", app="notes", x=20, y=20)
    replies = follow(screen(other, windows=[OTHER]), stays=True)
    assert set(actions(replies)) <= {"wait", "terminate"}
    assert "there is no window “Settings”; in front is “Notes”" in said(replies)


def test_a_window_that_reports_no_elements_ends_a_recipe_and_is_waited_for_where_a_click_comes_next():
    silent = screen(save(), windows=[OTHER, BEHIND])  # the elements are those of the window behind
    opens = Part(Press(("ctrl", "n")), window="Settings")
    replies = follow(screen(save()), silent, parts=[opens], stays=True)
    assert actions(replies).count("wait") <= 2
    assert "The window “Notes” opened" in said(replies)
    click = Part(Click(Target("Add", "push button", inside="Notes")))
    replies = follow(screen(save()), silent, parts=[opens, click], stays=True)
    assert actions(replies).count("wait") > 5, "it may be late"


def shown_at(*places):
    """A screenshot with a ring at each place, and the ring as a recipe keeps it."""
    image = Image.new("RGB", (1000, 800), "gray")
    for x, y in places:
        ImageDraw.Draw(image).ellipse((x - 9, y - 9, x + 9, y + 9), "white", "black", 3)
    return image


RING = cut_out(shown_at((500, 400)), Size(1000, 800), DesktopPoint(500, 400), None)


def ring(role=""):
    return Part(Click(Target("", role, inside="Settings", picture=RING)))


def test_what_has_no_name_is_found_by_its_picture_in_its_window():
    title = element("label", "Title", y=120)
    seen = screen(title, picture=encode(shown_at((300, 450), (900, 700)), "png"))
    first, last = follow(seen, screen(title, element("push button", "Saved")), parts=[ring()])
    assert call_of(first) == {"action": "click", "coordinate": [300, 450]}
    assert ending(last)[0] == "success"


def test_what_has_a_role_and_no_name_needs_both_its_role_and_its_picture():
    button, other = element("push button", x=280, y=430, h=40), element("push button", x=280, y=530, h=40)
    picture = encode(shown_at((330, 450)), "png")
    first = follow(screen(button, other, picture=picture), screen(), parts=[ring("push button")])[0]
    assert call_of(first) == {"action": "click", "coordinate": [330, 450]}
    replies = follow(screen(other, picture=picture), parts=[ring("push button")], stays=True)
    assert set(actions(replies)) <= {"wait", "terminate"}
    assert "the push button that looks as recorded in “Settings” is not visible" in said(replies)


@pytest.mark.parametrize(
    ("label", "rings", "clicked"),
    [
        ((300, 480), [(300, 450)], [300, 450]),
        ((300, 480), [(300, 450), (600, 450)], [300, 450]),  # the other one has another name
        ((300, 480), [], None),  # the words alone may belong to something else
        (None, [(300, 450)], [300, 450]),
        ((700, 200), [(300, 450)], None),  # they contradict each other
    ],
)
def test_of_what_looks_alike_the_one_at_the_name_is_meant(label, rings, clicked):
    told = [words("alpha", *label)] if label else [words("Title")]
    seen = screen(*told, picture=encode(shown_at(*rings), "png"))
    part = Part(Click(Target("alpha", inside="Settings", picture=RING)))
    replies = follow(seen, screen(element("push button", "Saved")), parts=[part])
    assert call_of(replies[0]).get("coordinate") == clicked, replies[-1].arguments


@pytest.mark.parametrize(
    ("places", "why"),
    [
        ((), "looks as recorded in “Settings” is not visible"),
        (((300, 450), (500, 300)), "2 things are the thing that looks as recorded"),
    ],
)  # fmt: skip
def test_a_picture_that_is_not_there_or_twice_is_not_clicked(places, why):
    replies = follow(screen(words("Title"), picture=encode(shown_at(*places), "png")), parts=[ring()], stays=True)
    assert set(actions(replies)) <= {"wait", "scroll", "terminate"}
    assert why in said(replies)


def test_a_text_that_no_field_shows_is_left_to_what_is_expected():
    made = setting("xfconf xsettings /Net/ThemeName", "Light", "Dark")
    parts = [Part(Type("Dark"), "Settings"), Part(Press(("enter",)), "Settings")]
    seen = screen(element("push button", "Other"))
    done = screen(element("push button", "Other"), changes=[made])
    replies = follow(seen, seen, seen, done, parts=parts, expected=[THEME])
    assert actions(replies) == ["type", "wait", "key", "terminate"]
    assert ending(replies[-1]) == ("success", True)
    for other in (
        parts,
        [Part(Type("Dark", Target("", "text")), "Settings"), parts[1]],
    ):  # nothing would decide; a field
        field = screen(element("text", value="", states={"focused", "editable"}))
        replies = follow(field, parts=other, expected=[] if other is parts else [THEME], stays=True)
        assert "key" not in actions(replies)
        assert "nothing that I can see took it" in said(replies)


def test_what_another_window_covers_is_brought_to_the_front():
    covered = screen(save(trusted=False, source="tree"), windows=[OTHER, BEHIND])
    replies = follow(covered, covered, screen(save()), screen(element("push button", "Saved")))
    assert actions(replies) == ["wait", "click", "click", "terminate"]
    assert "to the front" in replies[1].thought
    assert call_of(replies[2])["coordinate"] == [250, 210]


def test_of_two_windows_of_that_name_the_one_in_front_is_meant():
    one = ShownWindow("a.txt - Mousepad", "Mousepad", Region(0, 0, 500, 500), active=True)
    two = ShownWindow("b.txt - Mousepad", "Mousepad", Region(500, 0, 500, 500))
    both = [
        element("push button", "Save", x=x, window=window.title, app="Mousepad")
        for x, window in ((20, one), (520, two))
    ]
    part = Part(Click(Target("Save", "push button", inside="* - Mousepad")))
    first = follow(screen(*both, windows=[one, two]), stays=True, parts=[part])[0]
    assert call_of(first)["coordinate"] == [70, 210]


def test_what_is_off_screen_is_scrolled_into_view():
    pane = element("scroll pane", x=100, y=100, w=600, h=500, id=9)
    hidden = screen(pane, save(y=900, states={"offscreen"}, parent=9))
    shown = screen(pane, save(y=400, parent=9))
    replies = follow(hidden, shown, screen(pane, element("push button", "Saved")))
    assert actions(replies) == ["scroll", "click", "terminate"]


def test_a_late_target_is_waited_for():
    empty = screen(element("label", "Loading"))
    replies = follow(empty, empty, screen(save()), screen(element("push button", "Saved")))
    assert actions(replies) == ["wait", "wait", "click", "terminate"]


def test_expected_changes_show_that_it_is_done():
    done = screen(save(), changes=[setting(THEME.what, "Light", "Dark")])
    replies = follow(screen(save()), screen(save()), done, expected=[THEME])
    assert actions(replies) == ["click", "wait", "terminate"]
    assert ending(replies[-1]) == ("success", True)
    assert replies[-1].arguments["evidence"] == [f"setting {THEME.what}: Light -> Dark"]


@pytest.mark.parametrize("became", [[], [setting(THEME.what, "Light", "Blue")], [setting("dconf /a", "1", "Dark")]])
def test_without_the_expected_changes_it_is_not_called_done(became):
    replies = follow(screen(save()), screen(save(), changes=became), expected=[THEME], stays=True)
    assert actions(replies).count("click") == 1
    assert ending(replies[-1]) == ("success", False)


@pytest.mark.parametrize(
    ("expected", "came"),
    [
        (Expected("file", "~/Documents/Ablage", "written"), Change("file", "~/Dokumente/Ablage", None, "a folder")),
        (
            Expected("setting", "xfconf a /names", "[Workspace 1, Workspace 2]"),
            Change("setting", "xfconf a /names", "[Arbeitsfläche 1]", "[Arbeitsfläche 1, Arbeitsfläche 2]"),
        ),
    ],
)
def test_a_change_is_the_expected_one_in_the_desktops_language_too(monkeypatch, expected, came):
    german = Names("xfce", ("de",), {
        "Documents": ("Documents", "Dokumente"), "Ablage": ("Ablage",), "~": ("~",), "": ("",),
        "Workspace 1": ("Workspace 1", "Arbeitsfläche 1"), "Workspace 2": ("Workspace 2", "Arbeitsfläche 2"),
    })  # fmt: skip
    monkeypatch.setattr(Names, "for_environment", lambda _: german)
    replies = follow(screen(save()), screen(save(), changes=[came]), expected=[expected])
    assert ending(replies[-1]) == ("success", True)


@pytest.mark.parametrize(("on", "clicks"), [(True, 0), (False, 1)])
def test_a_switch_is_clicked_only_if_it_does_not_stand_so(on, clicks):
    def box(*, on):
        return screen(element("check box", "Dark", states={"checked"} if on else ()))

    part = Part(Toggle(Target("Dark", "check box", inside="Settings"), on=True))
    replies = follow(box(on=on), box(on=True), parts=[part])
    assert actions(replies).count("click") == clicks
    assert ending(replies[-1]) == ("success", True)


def test_a_failing_step_is_named_by_its_number():
    parts = [Part(Open("settings")), SAVE, Part(Press(("enter",)), "Settings")]
    replies = follow(screen(element("label", "x")), stays=True, parts=parts)
    assert call_of(replies[0]) == {"action": "open", "text": "settings"}
    assert said(replies).startswith("Step 2 of 3, click “Save” in “Settings”: there is no")


def test_keys_go_only_to_their_window():
    replies = follow(screen(windows=[OTHER]), stays=True, parts=[Part(Press(("enter",)), "Settings")])
    assert "key" not in actions(replies)
    assert "Step 1 of 1, press enter: there is no window “Settings”" in said(replies)


def test_a_text_goes_into_its_field():
    def form(value, *states):
        title = element("text", "Title", y=200, value=value, states={"editable", *states})
        return screen(element("text", "Search", y=100, value="", states={"editable"}), title)

    part = Part(Type("Bread", Target("Title", "text", inside="Settings")))
    replies = follow(form(""), form("", "focused"), form("Bread", "focused"), parts=[part])
    assert [call_of(reply) for reply in replies[:2]] == [
        {"action": "click", "coordinate": [250, 210]},
        {"action": "type", "text": "Bread"},
    ]
    assert ending(replies[-1]) == ("success", True)
    assert actions(follow(form("", "focused"), form("Bread", "focused"), parts=[part]))[0] == "type"


def test_a_text_that_was_typed_into_an_empty_page_goes_into_no_other_text():
    def page(value):
        return screen(element("text", "", y=100, value=value, states={"editable", "multi line"}))

    part = Part(Type("good day", Target("", "text", inside="Settings"), empty=True))
    replies = follow(page("my important letter"), stays=True, parts=[part])
    assert "type" not in actions(replies)
    assert "it was empty when this was recorded, and “Settings” holds a text" in said(replies)
    assert "type" in actions(follow(page(""), page("good day"), parts=[part]))


@pytest.mark.parametrize(("text", "why"), [("abc", "“abc” is no number"), ("500", "it takes 1 to 100, not 500")])
def test_what_a_number_field_does_not_take_is_not_typed(text, why):
    count = element("spin button", "Count", y=200, w=120, value="4", limits=(1, 100), states={"editable", "focused"})
    part = Part(Type(text, Target("Count", "spin button", inside="Settings"), replace=True))
    replies = follow(screen(count), stays=True, parts=[part])
    assert "type" not in actions(replies)
    assert why in said(replies)


def test_a_setting_that_became_something_else_is_told():
    other = [setting(THEME.what, "Dark", "Light")]
    replies = follow(screen(save()), screen(save(), changes=other), expected=[THEME], stays=True)
    assert "this changed differently: setting xfconf xsettings /Net/ThemeName: Dark -> Light" in said(replies)
    assert "unless it was so before" not in said(replies)


def test_of_two_windows_with_one_title_the_one_in_front_is_meant():
    front = ShownWindow("Settings", "settings", Region(0, 0, 300, 300), active=True)
    behind = ShownWindow("Settings", "settings", Region(400, 0, 300, 300))
    one, other = save(x=100, y=100), save(x=500, y=100)
    first, *_ = follow(screen(one, other, windows=[front, behind]), stays=True)
    assert call_of(first) == {"action": "click", "coordinate": [150, 110]}


def test_a_number_is_typed_beside_its_buttons_and_is_told_only_when_the_field_is_left():
    def form(value, *states):
        return screen(element("spin button", "Count", y=200, w=120, value=value, states={"editable", *states}))

    parts = [
        Part(Click(Target("Count", "spin button", inside="Settings"))),
        Part(Type("6", Target("Count", "spin button", inside="Settings"), replace=True)),
        Part(Press(("tab",)), "Settings"),
    ]
    replies = follow(form("4"), *[form("4", "focused")] * 3, form("6"), parts=parts)
    assert [call_of(reply) for reply in replies[:4]] == [
        {"action": "click", "coordinate": [224, 210]},  # at 260, in the middle, is a button that takes one off
        {"action": "key", "keys": "ctrl+a"},
        {"action": "type", "text": "6"},
        {"action": "key", "keys": "tab"},
    ]
    assert ending(replies[-1])[0] == "success"


def test_a_field_without_a_name_is_the_one_with_the_focus():
    def form(*states):
        return screen(*(element("text", y=y, states={"editable", *more}) for y, more in ((100, ()), (200, states))))

    part = Part(Type("Bread", Target(role="text", inside="Settings")))
    assert actions(follow(form("focused"), parts=[part]))[0] == "type"
    assert "2 things are the text in “Settings”" in said(follow(form(), parts=[part], stays=True))


def test_words_alone_are_found_by_their_exact_letters():
    part = Part(Click(Target("Adwaita-dark", inside="Settings")))
    there = screen(words("Adwaita-dark-legacy", y=300), words("Adwaita-dark", y=350), words("Adwaita", y=400))
    assert call_of(follow(there, stays=True, parts=[part])[0])["coordinate"][1] == 357
    near = screen(words("Adwaita-darк", y=350))
    assert "click" not in actions(follow(near, stays=True, parts=[part]))


def test_a_dry_run_tells_the_steps_and_ends_where_nothing_more_can_be_known():
    from agent.core.notes import Note

    replies = follow(screen(save()), stays=True, notes=[Note("dry_run")])
    assert replies[-1].arguments["action"] == "answer"
    assert WINDOW.title in replies[0].thought


@pytest.mark.parametrize(("row", "at"), [("Bread", 0), ("Milk", 1), ("Eggs", None)])
def test_of_several_of_one_name_the_text_beside_tells_which(row, at):
    rows = [
        one
        for y, name in ((200, "Bread"), (300, "Milk"))
        for one in (element("label", name, x=200, y=y), save(x=400, y=y))
    ]
    replies = follow(screen(*rows), stays=True, parts=[Part(SAVE.goal, near=(row,))])
    clicks = [call_of(one)["coordinate"] for one in replies if one.arguments["action"] == "click"]
    assert clicks == ([[450, 210 + 100 * at]] if at is not None else [])
    alone = follow(screen(*rows[2:]), stays=True, parts=[Part(SAVE.goal, near=("Bread",))])
    assert "click" not in actions(alone)


def test_the_items_of_a_list_that_popped_up_are_found_by_its_own_name():
    item = element("menu item", "None", window="settings-popup")
    part = Part(Click(Target("None", "menu item", inside="settings-popup")))
    assert actions(follow(screen(item), stays=True, parts=[part]))[0] == "click"
    app = ShownWindow("Desktop", "Popup", WINDOW.box, active=True)
    item = element("menu item", "None", window="popup", app="Popup")
    part = Part(Click(Target("None", "menu item", inside="popup")))
    assert actions(follow(screen(item, windows=[app]), stays=True, parts=[part]))[0] == "click"


def test_what_was_chosen_already_is_done_by_its_state():
    row = element("table cell", "Adwaita", states={"selected", "selectable"})
    part = Part(Click(Target("Adwaita", "table cell", inside="Settings")))
    replies = follow(screen(row), stays=True, parts=[part])
    assert ending(replies[-1]) == ("success", True)


@pytest.mark.parametrize(("states", "verified"), [({"selected"}, True), ((), False)])
def test_what_stood_so_before_need_not_change(states, verified):
    row = element("table cell", "Dark", states=states)
    after = screen(element("table cell", "Dark", states={"selected"}))
    part = Part(Click(Target("Dark", "table cell", inside="Settings")))
    replies = follow(screen(row), after, parts=[part], expected=[THEME], stays=True)
    assert ending(replies[-1]) == ("success", verified)


def test_an_icon_on_the_desktop_is_no_word_in_a_window():
    icon = words("Home", x=800, y=700, window="", app="")
    part = Part(Click(Target("Home", inside="desktop"), count=2))
    assert call_of(follow(screen(icon, words("Home")), stays=True, parts=[part])[0])["action"] == "double_click"
    for there in (words("Home"), words("Home", window="", app="")):  # in a window, or over it
        assert not {"click", "double_click"} & set(actions(follow(screen(there), stays=True, parts=[part])))


def test_a_field_that_has_the_focus_is_typed_into_wherever_it_may_be():
    def renaming(value):
        return screen(element("text", value=value, states={"focused", "editable"}, trusted=False, source="tree"))

    part = Part(Type("Letters", Target("", "text", inside="Settings")))
    replies = follow(renaming("untitled folder"), renaming("Letters"), parts=[part])
    assert actions(replies) == ["type", "terminate"]
