"""What the policy is told of the elements that an action hits."""

from dataclasses import replace

import pytest
from PIL import Image

from agent.core.actions import Click, Drag, Move, OpenApp, PressKeys, TypeText, Wait
from agent.core.geometry import DesktopPoint, Region, Size, Viewport
from agent.desktop.guard.reach import MaskedElements, Reach
from agent.desktop.guard.surroundings import DesktopSurroundings
from agent.desktop.protocol.elements import FieldText, NoAnswerError
from agent.desktop.protocol.windows import Window
from agent.safety.naming import aim_of, named
from agent.safety.policy import Grants, Policy
from agent.safety.situation import UNKNOWN
from agent.screen.captions import Caption
from agent.screen.capture import Frame
from agent.screen.outline import Element
from foundation.errors import EnvironmentLacksError

FIELD, BUTTON, ICON = DesktopPoint(50, 50), DesktopPoint(150, 50), DesktopPoint(250, 50)
SHOWN = {
    FIELD: Element(1, "password text", "Password", Region(40, 40, 20, 20)),
    BUTTON: Element(2, "push button", "Delete", Region(140, 40, 20, 20)),
    ICON: Element(3, "icon", "Trash", Region(240, 40, 20, 20)),
}


class Elements:
    def __init__(self, error=None):
        self.error = error
        self.asked = []
        self.focus = None
        self.text = None
        self.filled = None
        self.address = None
        self.inside = None
        self.default = None

    def focused(self):
        return self.focus

    def field_text(self):
        return self.text

    def fields(self):
        return self.filled

    def dialogs(self):
        if self.error is not None:
            raise self.error
        return self.inside

    def default_button(self):
        return self.default

    def page(self):
        return self.address

    def at(self, point):
        self.asked.append(point)
        if self.error is not None:
            raise self.error
        return SHOWN.get(point)

    def close(self):
        pass


class Windows:
    """One window everywhere; `focus` is the one that gets what is typed."""

    def __init__(self):
        self.focus = 1

    def active(self):
        return Window(self.focus, "A page", "Firefox", None)

    def at(self, x, y):
        return Window(1, "A page", "Firefox", None)

    def region(self, identifier):
        return Region(0, 0, 400, 400)

    def windows(self):
        return [self.active()]

    def kind(self, identifier):
        return ""

    def pointer(self):
        return 250, 50

    def close(self):
        pass


class Applications:
    def starting(self, names, folder, *, opened):
        return frozenset()


class NoScreen:
    def grab(self):
        raise EnvironmentLacksError("there is no screen")

    def close(self):
        pass


def around(elements=None, windows=None, reach=None):
    elements, windows = elements or Elements(), windows or Windows()
    return DesktopSurroundings(NoScreen(), Applications(), reach or Reach(lambda: windows), lambda: elements)


def names(elements):
    return [element.name for element in elements]


def test_what_enter_sends_is_read_in_the_field_with_what_is_typed_in_its_place():
    elements = Elements()
    elements.focus = Element(9, "entry", "Address", Region(0, 0, 20, 20), states=frozenset({"editable"}))
    desk = around(elements)
    elements.text = FieldText("evil.exa/?d=1", 8, 8)
    assert desk.of(TypeText("mple\n")).sent == "evil.example/?d=1"
    assert desk.of(PressKeys(("enter",))).sent == "evil.exa/?d=1"
    assert desk.of(TypeText("mple")).sent is None, "nothing is sent yet"
    elements.text = FieldText("https://old.example/", 0, 20)
    assert desk.of(TypeText("cats\nmore")).sent == "cats"
    elements.text = None
    assert "unread field" in desk.of(PressKeys(("enter",))).facts
    elements.focus = None
    assert "unread field" in desk.of(PressKeys(("enter",))).facts
    for role in ("push button", "password text"):
        elements.focus = Element(9, role, "Go", Region(0, 0, 20, 20))
        assert "unread field" not in desk.of(PressKeys(("enter",))).facts


def test_a_button_that_may_submit_is_judged_by_what_stands_in_the_fields_beside_it():
    elements = Elements()
    elements.filled = ["Ann", "my password: hunter2"]
    desk = around(elements)
    assert desk.of(Click(BUTTON)).unjudged == ("Ann", "my password: hunter2")
    assert "looks like a secret" in Policy.load("risky").question(Click(BUTTON), desk.of(Click(BUTTON))).reason
    SHOWN[ICON] = replace(SHOWN[ICON], role="push button", name="Cancel")
    assert desk.of(Click(ICON)).fields == (), "this submits nothing"
    SHOWN[ICON] = Element(3, "icon", "Trash", Region(240, 40, 20, 20))
    elements.focus = Element(9, "entry", "Note", Region(0, 0, 20, 20), states=frozenset({"editable"}))
    elements.text = FieldText("my password: ", 13, 13)
    desk.of(TypeText("hunter2"))
    desk.did(TypeText("hunter2"))
    assert desk.of(Click(BUTTON)).unjudged == ("Ann",), "the other was judged when it was typed"


def test_a_yes_is_judged_by_the_question_that_is_drawn_inside_the_window():
    elements, policy = Elements(), Policy.load("risky")
    desk = around(elements)
    elements.focus = Element(9, "push button", "OK", Region(0, 0, 20, 20))
    assert policy.question(PressKeys(("enter",)), desk.of(PressKeys(("enter",)))) is None
    elements.inside = ["Delete 30 contacts?", "They cannot be restored."]
    assert "agrees to a question" in policy.question(PressKeys(("enter",)), desk.of(PressKeys(("enter",)))).reason
    elements.focus = replace(elements.focus, name="Cancel")
    assert policy.question(PressKeys(("enter",)), desk.of(PressKeys(("enter",)))) is None


class Dialogs(Windows):
    def active(self):
        return Window(self.focus, "Print", "Mousepad", None)


@pytest.mark.parametrize(("default", "asked"), [("Print", True), ("Cancel", False), (None, False)])
def test_enter_in_a_field_is_judged_as_a_click_on_the_button_that_it_presses(default, asked):
    elements, policy, enter = Elements(), Policy.load("risky"), PressKeys(("enter",))
    desk = around(elements, Dialogs())
    elements.focus = Element(9, "entry", "Copies", Region(0, 0, 20, 20), states=frozenset({"editable"}))
    elements.default = default and Element(10, "push button", default, Region(0, 40, 60, 20))
    question = policy.question(enter, desk.of(enter))
    assert (question is not None and "Enter presses “Print” here" in question.reason) is asked
    assert policy.question(PressKeys(("2",)), desk.of(PressKeys(("2",)))) is None
    elements.focus = replace(elements.focus, states=frozenset({"editable", "multi line"}))
    assert policy.question(enter, desk.of(enter)) is None, "a line begins there"
    if asked:
        grants = Grants()
        grants.add(question)
        assert grants.allow(question)


def test_what_is_allowed_for_good_on_a_page_is_allowed_on_its_site():
    elements, policy, grants = Elements(), Policy.load("risky"), Grants()
    desk = around(elements)
    elements.address = "https://shop.example/a?b=1"
    question = policy.question(Click(BUTTON), desk.of(Click(BUTTON)))
    assert "on “shop.example” in Firefox" in question.scope
    assert not grants.allow(question)
    grants.add(question)
    assert grants.allow(question)
    for address in ("https://shop.example.evil.example/", "file:///a.html"):
        elements.address = address
        assert not grants.allow(policy.question(Click(BUTTON), desk.of(Click(BUTTON)))), address


def test_a_click_is_known_by_the_element_that_it_hits():
    assert names(around().of(Click(BUTTON)).elements) == ["Delete"]
    assert around().of(Click(DesktopPoint(9, 9))).elements == ()


def test_a_drag_is_known_by_both_ends_also_where_it_starts_at_the_pointer():
    assert names(around().of(Drag(BUTTON, ICON)).elements) == ["Delete", "Trash"]
    assert names(around().of(Drag(None, BUTTON)).elements) == ["Trash", "Delete"]


def test_what_is_typed_goes_into_the_field_that_was_clicked():
    desk = around()
    desk.of(Click(FIELD))
    for action in (TypeText("sec"), PressKeys(("ctrl", "a")), PressKeys(("backspace",)), TypeText("ret")):
        assert names(desk.of(action).elements) == ["Password"]


def test_a_click_on_a_button_does_not_make_the_field_forgotten():
    desk = around()
    desk.of(Click(FIELD))
    desk.of(Click(BUTTON))
    assert names(desk.of(TypeText("secret")).elements) == ["Password"]


def test_where_a_key_or_another_window_leads_is_not_known():
    for leads in (PressKeys(("tab",)), TypeText("secret\t"), PressKeys(("escape",))):
        desk = around()
        desk.of(Click(FIELD))
        desk.of(leads)
        assert desk.of(TypeText("x")).elements == ()
    windows = Windows()
    desk = around(windows=windows)
    desk.of(Click(FIELD))
    windows.focus = 2
    assert desk.of(TypeText("x")).elements == ()


def test_what_is_typed_goes_where_the_focus_is():
    elements, windows = Elements(), Windows()
    desk = around(elements, windows)
    elements.focus = Element(4, "password text", "PIN", Region(0, 0, 9, 9), states=frozenset({"focused"}))
    for action in (TypeText("secret"), PressKeys(("tab",)), TypeText("secret")):
        situation = desk.of(action)
        assert names(situation.elements) == names(desk.glance(action).elements) == ["PIN"]
        assert "a field for a password" in Policy.load("risky").question(action, situation).reason
    elements.focus = Element(5, "entry", "Name", Region(0, 0, 9, 9))
    assert names(desk.of(TypeText("Ada")).elements) == ["Name"]


def test_a_field_for_a_password_that_was_just_clicked_may_get_the_focus_yet():
    elements = Elements()
    desk = around(elements)
    elements.focus = Element(5, "entry", "Name", Region(0, 0, 9, 9))
    desk.of(Click(FIELD))
    assert names(desk.of(TypeText("secret")).elements) == ["Password", "Name"]
    elements.focus = SHOWN[FIELD]
    assert names(desk.of(TypeText("secret")).elements) == ["Password"]


class SecondReceives(Reach):
    def receiver(self, windows):
        return Window(2, "Notes", "Editor", None)


def test_the_focus_of_another_window_than_the_one_typed_into_says_nothing():
    elements = Elements()
    elements.focus = SHOWN[FIELD]
    desk = around(elements, reach=SecondReceives(Windows))
    assert desk.of(TypeText("x")).elements == ()


def test_our_own_window_tells_no_focus():
    elements = Elements()
    elements.focus = SHOWN[FIELD]
    assert MaskedElements(elements, Reach(Windows, frozenset({1}))).focused() is None
    assert MaskedElements(elements, Reach(Windows, frozenset({2}))).focused() == SHOWN[FIELD]


def test_a_tree_that_fails_leaves_the_elements_unknown():
    for error in (EnvironmentLacksError("the bus is gone"), ValueError("no such node")):
        situation = around(Elements(error)).of(Click(BUTTON))
        assert situation.elements == ()
        assert situation.under.app == "Firefox"


def test_what_an_action_hits_is_told_without_all_else():
    desk = around()
    assert names(desk.glance(Click(BUTTON)).elements) == ["Delete"]
    under = desk.glance(Click(BUTTON)).under
    assert under is not None and under.region is not None
    assert desk.glance(Wait(1.0)) == UNKNOWN
    assert desk.glance(OpenApp("files")) == UNKNOWN
    assert names(desk.glance(Move(ICON)).elements) == ["Trash"]


def test_what_nothing_else_names_is_named_by_what_is_written_there(monkeypatch):
    desk, nowhere = around(), DesktopPoint(350, 50)
    monkeypatch.setattr(desk._sources, "captions", lambda points: ("Adwaita-dark", points[0], False))
    assert named(Click(nowhere), aim_of(Click(nowhere), desk.glance(Click(nowhere)))) == "click “Adwaita-dark” · A page"
    assert desk.glance(Click(BUTTON)).words == ""
    monkeypatch.setitem(SHOWN, nowhere, Element(4, "page tab list", "", Region(300, 0, 100, 100)))
    assert named(Click(nowhere), aim_of(Click(nowhere), desk.glance(Click(nowhere)))) == "click “Adwaita-dark” · A page"


# What is not told any more


class Failing:
    """Windows that can be made to fail, as when the connection to the display is cut."""

    def __init__(self):
        self.cut = False

    def open(self):
        return None if self.cut else CutWindows(self)


class CutWindows(Windows):
    def __init__(self, line):
        super().__init__()
        self.line = line

    def active(self):
        if self.line.cut:
            raise EnvironmentLacksError("the display went away")
        return super().active()


def cut_off(elements=None):
    line = Failing()
    return around(elements, reach=Reach(line.open)), line


def asked(desk, action):
    return SHIPPED.question(action, desk.of(action))


SHIPPED = Policy.load("risky")


def test_windows_that_are_not_told_any_more_are_said_once_and_asked_about_from_then_on():
    desk, line = cut_off()
    assert asked(desk, TypeText("hello")) is None
    assert desk.news() == []
    line.cut = True
    for _ in range(2):
        question = asked(desk, TypeText("hello"))
        assert "not known now which window" in question.reason
        assert question.scope == ""
    assert asked(desk, PressKeys(("ctrl", "c"))) is not None
    [said] = desk.news()
    assert "window that gets an action" in said
    line.cut = False
    assert asked(desk, TypeText("hello")) is None
    assert desk.news() == ["It is known again which window gets an action."]


def test_elements_that_are_not_told_any_more_are_said_and_clicks_asked_about():
    elements = Elements()
    desk, _ = cut_off(elements)
    assert asked(desk, Click(DesktopPoint(9, 9))) is None
    elements.error = EnvironmentLacksError("the bus is gone")
    assert "not known now what it hits" in asked(desk, Click(DesktopPoint(9, 9))).reason
    assert len(desk.news()) == 1


def test_a_click_is_asked_about_while_the_application_does_not_answer_in_time():
    elements = Elements(NoAnswerError())
    desk, _ = cut_off(elements)
    for _ in range(2):
        assert "not known now what it hits" in asked(desk, Click(DesktopPoint(9, 9))).reason
    elements.error = None
    assert asked(desk, Click(DesktopPoint(9, 9))) is None
    assert desk.news() == []
    assert len(elements.asked) == 3


def test_words_that_cannot_be_read_any_more_are_said_and_clicks_asked_about(monkeypatch):
    desk, _ = cut_off()
    monkeypatch.setattr("agent.desktop.guard.sources.caption_at", lambda *_: Caption("Bold"))
    shots = [Frame(Image.new("RGB", (300, 300)), Viewport.of_image(Size(300, 300)), 0.0)]
    monkeypatch.setattr(NoScreen, "grab", lambda _: shots.pop())
    assert asked(desk, Click(DesktopPoint(9, 9))) is None
    assert "not known now what is written there" in asked(desk, Click(DesktopPoint(9, 9))).reason
    assert ["cannot be read any more" in said for said in desk.news()] == [True]


def test_what_was_never_told_is_not_said_to_be_lost():
    desk = DesktopSurroundings(NoScreen(), Applications(), Reach(lambda: None))
    for action in (TypeText("hello"), Click(DesktopPoint(9, 9)), PressKeys(("a",))):
        assert asked(desk, action) is None
    assert desk.news() == []
