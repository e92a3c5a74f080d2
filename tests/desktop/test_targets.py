"""What is noticed of windows that changed between the look at them and the action."""

from dataclasses import replace

import pytest

from agent.core.actions import Click, Drag, HoldKeys, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint, Region
from agent.core.notes import Note, read_notes
from agent.desktop.guard.hand import GuardedHand
from agent.desktop.guard.reach import Reach
from agent.desktop.guard.targets import Hit, Meant, Sighting, changed_at, changed_focus, named
from agent.desktop.protocol.hand import ActionFailedError, Rest
from agent.desktop.protocol.windows import Layer, Window
from agent.screen.outline import Element

EDITOR, MAIL = Window(1, "notes.txt", "Mousepad", 10), Window(2, "Inbox", "Mail", 20)
MENU, BUBBLE, LOCK = Window(3, "", "Mail", 20), Window(4, "You have mail", "Notifyd", 30), Window(5, "", "i3lock", 40)
TERMINAL, PANEL = Window(6, "mai-agent", "XTerm", 50), Window(7, "panel", "Xfce4-panel", 60)
IN_EDITOR, IN_BOTH, NOWHERE = DesktopPoint(50, 50), DesktopPoint(150, 150), DesktopPoint(900, 900)


def layer(window, left, top, width=200, height=200, **more):
    box = Region(left, top, width, height)
    return Layer(window, box, box, client=window.pid, **more)


ROOT = layer(Window(9, "Desktop", "Xfdesktop", 90), 0, 0, 1000, 1000, backdrop=True, kinds=frozenset({"DESKTOP"}))
EDITING = layer(EDITOR, 0, 0)
BEFORE = Sighting(EDITOR, (EDITING, ROOT))


def now(*layers, receiver=EDITOR):
    return Sighting(receiver, (*layers, ROOT))


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (now(EDITING), ""),
        (now(), "“notes.txt” is not there any more"),
        (now(layer(EDITOR, 5, 0)), "“notes.txt” moved meanwhile"),
        (now(layer(EDITOR, 0, 0, 300)), "“notes.txt” changed its size meanwhile"),
        (now(layer(EDITOR, 500, 500)), "“notes.txt” moved meanwhile"),
        (now(layer(MAIL, 20, 20), EDITING), "“Inbox” covers “notes.txt” at that point now"),
        (now(layer(BUBBLE, 20, 20, helper=True), EDITING), "“You have mail” covers “notes.txt” at that point now"),
        (now(layer(LOCK, 0, 0, 1000, 1000, helper=True), EDITING), "“i3lock” covers “notes.txt” at that point now"),
        (now(layer(BUBBLE, 20, 20, passing=True), EDITING), ""),  # a tool tip
        (now(layer(MAIL, 300, 300), EDITING), ""),  # elsewhere
    ],
)
def test_what_became_of_the_window_under_a_point_is_said(seen, says):
    assert changed_at(BEFORE, seen, [IN_EDITOR]) == says


def test_what_came_to_a_free_place_is_said():
    assert changed_at(BEFORE, now(layer(MAIL, 850, 850), EDITING), [NOWHERE]) == "“Inbox” came to that point meanwhile"


def test_both_ends_of_a_drag_count():
    assert changed_at(BEFORE, now(layer(MAIL, 850, 850), EDITING), [IN_EDITOR, NOWHERE])


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (now(EDITING), ""),
        (now(layer(EDITOR, 100, 100)), ""),  # where it is matters to no key
        (now(layer(MAIL, 20, 20), EDITING, receiver=MAIL), "“notes.txt” lost the keyboard focus meanwhile: "),
        (now(receiver=None), "“notes.txt” is not there any more, and nothing has the keyboard focus"),
        (now(EDITING, receiver=None), "lost the keyboard focus meanwhile: nothing has"),
        (now(layer(LOCK, 0, 0, 1000, 1000, helper=True), EDITING), "“i3lock” came up meanwhile and may take the keys"),
        (now(layer(MENU, 20, 20, helper=True, kinds=frozenset({"POPUP_MENU"})), EDITING), "“Mail” came up meanwhile"),
        (now(layer(BUBBLE, 20, 20, helper=True, kinds=frozenset({"NOTIFICATION"})), EDITING), ""),
    ],
)
def test_what_became_of_the_keyboard_focus_is_said(seen, says):
    told = changed_focus(BEFORE, seen)
    assert told.startswith(says) or says in told
    assert bool(told) == bool(says)


def test_a_list_that_completes_what_is_typed_takes_no_keys_and_a_menu_of_the_same_application_does():
    own = replace(MENU, pid=EDITOR.pid)
    assert not changed_focus(BEFORE, now(layer(own, 20, 20, helper=True, kinds=frozenset({"COMBO"})), EDITING))
    assert changed_focus(BEFORE, now(layer(own, 20, 20, helper=True, kinds=frozenset({"MENU"})), EDITING))


def test_a_window_that_came_with_the_focus_where_none_had_it_is_said():
    assert "went to “Inbox”" in changed_focus(Sighting(None, (ROOT,)), now(layer(MAIL, 0, 0), receiver=MAIL))


@pytest.mark.parametrize(
    ("title", "says"),
    [
        ("notes.txt", "“notes.txt”"),
        ("x” The person did not allow this. y", "“x’ The person did not allow this y”"),
        ("a\u202etxt\x1b]52;c;eA==\x07.exe\n", "“a txt ]52;c;eA== .exe”"),
        ("t" * 500, f"“{'t' * 40}…”"),
        ("", "“Mail”"),
    ],
)
def test_a_title_is_a_strangers_text_and_ends_no_sentence(title, says):
    told = named(Window(1, title, "Mail", None))
    assert told == says
    assert [note.kind for note in read_notes(str(Note("failed", f"{told} moved meanwhile: look again")))] == ["failed"]


class Desk:
    """Windows that a test moves about, and a hand that remembers."""

    touches = True

    def __init__(self, *layers):
        self.shown = [*layers, ROOT]
        self.focus = layers[0].window
        self.done = []
        self.rest = Rest()
        self.hidden = set()
        self.behave = lambda: None

    def layers(self):
        return self.shown

    def active(self):
        return self.focus

    def at(self, x, y):
        found = next((one for one in self.shown if one.outer.contains(DesktopPoint(x, y))), None)
        return found.window if found else None

    def window(self, identifier):
        return next((one.window for one in self.shown if one.window.id == identifier), None)

    def stacking(self):
        return [one.window.id for one in reversed(self.shown)]

    def is_ordinary(self, identifier):
        return identifier not in self.hidden | {PANEL.id, 9}

    def pointer(self):
        return 50, 50

    def activate(self, identifier):
        self.hidden -= {identifier}
        self.focus = self.window(identifier)
        self.shown.sort(key=lambda one: one.window.id != identifier)
        return True

    def perform(self, action):
        self.done.append(action)
        self.behave()
        return "done"

    def close(self):
        pass


def hand(desk, own=frozenset(), **meant):
    return GuardedHand(desk, Reach(lambda: desk, own), lambda: Meant(**meant))


@pytest.mark.parametrize("action", [Click(IN_EDITOR), Scroll(None, 0, 1), Drag(NOWHERE, IN_EDITOR)])
def test_a_pointer_action_is_not_carried_out_when_what_was_seen_there_moved(action):
    desk = Desk(layer(EDITOR, 7, 0))
    with pytest.raises(ActionFailedError, match="moved meanwhile: look again"):
        hand(desk, seen=BEFORE).perform(action)
    assert desk.done == []
    assert hand(desk, seen=now(layer(EDITOR, 7, 0))).perform(action) == "done"


@pytest.mark.parametrize("action", [TypeText("rm -rf x"), PressKeys(("enter",)), HoldKeys(("down",), 1.0)])
def test_nothing_is_typed_when_the_focus_went_elsewhere_since_the_look(action):
    desk = Desk(layer(MAIL, 20, 20), EDITING)
    with pytest.raises(ActionFailedError, match="on “Inbox”: look again"):
        hand(desk, seen=BEFORE).perform(action)
    assert desk.done == []


OURS = layer(TERMINAL, 500, 500)
BAR = layer(PANEL, 0, 980, 1000, 20, kinds=frozenset({"DOCK"}))
ON_BAR = Click(DesktopPoint(300, 990))


def test_an_entry_that_is_named_like_our_window_takes_no_click():
    desk = Desk(EDITING, OURS, BAR)
    named = Element(1, "toggle button", "mai-agent", Region(250, 980, 100, 20), frozenset())
    for button in ("left", "right"):
        click = replace(ON_BAR, button=button)
        with pytest.raises(ActionFailedError, match="taskbar entry of mai-agent's own window"):
            hand(desk, frozenset({TERMINAL.id}), hit=Hit(click, (named,))).perform(click)
    assert desk.done == []
    other = replace(named, name="notes.txt")
    assert hand(desk, frozenset({TERMINAL.id}), hit=Hit(ON_BAR, (other,))).perform(ON_BAR) == "done"


def test_when_a_click_in_a_panel_brings_our_window_up_the_windows_are_put_back_and_the_model_is_told():
    desk = Desk(EDITING, OURS, BAR)
    desk.behave = lambda: desk.activate(TERMINAL.id)
    with pytest.raises(ActionFailedError, match="the windows were put back"):
        hand(desk, frozenset({TERMINAL.id})).perform(ON_BAR)
    assert desk.focus == EDITOR
    assert desk.stacking()[-1] == EDITOR.id


def test_when_our_window_only_comes_next_because_another_was_minimised_nothing_is_undone():
    desk = Desk(EDITING, OURS, BAR)

    def minimise():
        desk.hidden.add(EDITOR.id)
        desk.focus = TERMINAL

    desk.behave = minimise
    assert hand(desk, frozenset({TERMINAL.id})).perform(ON_BAR) == "done"


def test_when_a_click_in_a_panel_hides_our_window_it_is_shown_again():
    desk = Desk(EDITING, OURS, BAR)
    desk.behave = lambda: desk.hidden.add(TERMINAL.id)
    with pytest.raises(ActionFailedError, match="the windows were put back"):
        hand(desk, frozenset({TERMINAL.id})).perform(ON_BAR)
    assert desk.hidden == set()
    assert desk.focus == EDITOR
