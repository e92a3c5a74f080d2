"""What a person does becomes steps with what they went to."""

import subprocess
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from PIL import Image
from stubs.display import PlainDisplay

from agent.core.actions import Click, Drag, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint, Region, Size, Viewport
from agent.desktop.protocol.elements import FieldText
from agent.desktop.protocol.input_log import ButtonPressed, ButtonReleased, KeyPressed, WheelTurned
from agent.desktop.protocol.windows import Window
from agent.events.run_events import Acted
from agent.recipes.demonstration import Notes
from agent.screen.capture import Frame
from agent.screen.outline import Element, Outline, ShownWindow

HERE = DesktopPoint(20, 20)
FIELD = Element(1, "text", "Title", Region(0, 0, 100, 30), window="Notes")


class Desk:
    """Windows and elements of a desktop with one field in one window."""

    def __init__(self, shown="", ours=False):
        self.shown, self.ours, self.acted = shown, ours, []

    def notes(self):
        return Notes(lambda: None, lambda _: self.ours, self, self, self.emit)

    def emit(self, event):
        if isinstance(event, Acted):
            self.acted.append(event)

    def active(self):
        return Window(1, "Notes", "Notes.py", None)

    def at(self, *place):
        return self.active() if len(place) == 2 else FIELD

    def focused(self):
        return FIELD

    def field_text(self):
        return FieldText(self.shown, 0, 0)


def actions(*inputs, **options):
    desk = Desk(**options)
    notes = desk.notes()
    for one in inputs:
        notes.handle(one)
    notes.flush()
    return [one.target for one in desk.acted]


def keys(text):
    return [KeyPressed(letter, letter) for letter in text]


PRESS, LET_GO = ButtonPressed(HERE, "left"), ButtonReleased(HERE)
FAR = DesktopPoint(200, 20)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ([PRESS, LET_GO], [Click(HERE)]),
        ([PRESS, LET_GO, PRESS, LET_GO], [Click(HERE, count=2)]),
        ([PRESS, LET_GO, ButtonPressed(HERE, "right")], [Click(HERE), Click(HERE, "right")]),
        ([PRESS, LET_GO, ButtonPressed(FAR, "left")], [Click(HERE), Click(FAR)]),
        ([PRESS, ButtonReleased(FAR)], [Drag(HERE, FAR)]),
        ([WheelTurned(HERE, 0, 1)] * 3, [Scroll(HERE, 0, 3)]),
        ([WheelTurned(HERE, 0, 1), WheelTurned(HERE, 0, -1)], [Scroll(HERE, 0, 1), Scroll(HERE, 0, -1)]),
        ([*keys("hello"), KeyPressed("backspace"), KeyPressed("enter")], [TypeText("hell"), PressKeys(("enter",))]),
        ([KeyPressed("s", held=("ctrl",))], [PressKeys(("ctrl", "s"))]),
        ([*keys("h"), KeyPressed("backspace")], []),
    ],
)
def test_inputs_become_the_actions_that_a_person_would_name(inputs, expected):
    assert actions(*inputs, shown="hello") == expected


def test_a_text_that_its_field_does_not_show_is_masked():
    assert actions(*keys("hunter2"), shown="•••••••") == [TypeText("[redacted 7 chars]")]


def test_a_dead_key_hides_what_is_typed_because_its_accent_is_not_known():
    assert actions(*keys("caf"), KeyPressed(""), *keys("e"), shown="café") == [TypeText("[redacted 5 chars]")]


def test_what_is_done_in_our_own_window_is_no_step():
    assert actions(PRESS, *keys("x"), ours=True) == []


@pytest.mark.parametrize(("app", "told"), [("Notes.py", ["Title"]), ("", ["Title"]), ("Thunar", [])])
def test_a_click_did_not_go_to_what_it_brought_up_in_its_place(app, told):
    desk = Desk()
    answer = replace(FIELD, app=app)
    desk.at = lambda *place: desk.active() if len(place) == 2 else answer
    notes = desk.notes()
    for one in (PRESS, LET_GO):
        notes.handle(one)
    notes.flush()
    [acted] = desk.acted
    assert [element.name for element in acted.elements] == told


@pytest.mark.parametrize(("fresh", "window"), [(True, "Notes"), (False, "Save As")])
def test_a_key_was_pressed_in_the_window_that_was_in_front_before_it(fresh, window):
    """The key opens a dialog at once, and the window manager and the focus tell that one."""
    desk = Desk()
    dialog = Window(2, "Save As", "Notes.py", None)
    desk.active, desk.focused = lambda: dialog, lambda: replace(FIELD, window="Save As")
    shown = ShownWindow("Notes", "Notes.py", Region(0, 0, 300, 300), active=True)
    look = SimpleNamespace(
        outline=Outline(Size(400, 300), (), (shown,)), began=time.monotonic() if fresh else -1.0, frame=None
    )
    notes = Notes(lambda: look, lambda _: False, desk, desk, desk.emit)
    notes.handle(KeyPressed("s", held=("ctrl",)))
    notes._deed.seen = None
    notes.flush()
    [acted] = desk.acted
    assert acted.aim.window == window
    assert [element.window for element in acted.elements] == ([] if fresh else [window])


@pytest.mark.parametrize(
    ("role", "seen", "expected"),
    [
        ("check box", False, Click(DesktopPoint(50, 15))),
        ("push button", True, Click(DesktopPoint(50, 15))),
        ("push button", False, TypeText(" ")),  # it may be the button that came after the dialog
        ("text", True, TypeText(" ")),
    ],
)
def test_space_on_a_control_is_recorded_as_a_click_on_it(role, seen, expected):
    desk = Desk()
    control = replace(FIELD, role=role, states=frozenset({"focused"}))
    desk.focused = lambda: control
    desk.at = lambda *place: desk.active() if len(place) == 2 else control
    look = SimpleNamespace(outline=Outline(Size(400, 300), (control,) if seen else ()), began=-1.0, frame=None)
    notes = Notes(lambda: look, lambda _: False, desk, desk, desk.emit)
    notes.handle(KeyPressed("space", " "))
    notes._deed.seen = None
    notes.flush()
    [acted] = desk.acted
    assert acted.target == expected


@pytest.mark.parametrize(("name", "words"), [("", "“Increase”"), ("Title", "“Title”")])
def test_the_text_that_stands_there_names_what_the_desktop_does_not(name, words):
    desk = Desk()
    there = replace(FIELD, role="panel", name=name)
    desk.at = lambda *place: desk.active() if len(place) == 2 else there
    frame = Frame(Image.new("RGB", (400, 300)), Viewport(Region(0, 0, 400, 300), Size(400, 300)), 1)
    look = SimpleNamespace(outline=Outline(Size(400, 300), ()), began=time.monotonic() + 9, frame=frame)
    notes = Notes(lambda: look, lambda _: False, desk, desk, desk.emit, lambda *_: "Increase")
    for one in (PRESS, LET_GO):
        notes.handle(one)
    notes.flush()
    [acted] = desk.acted
    assert acted.aim.names == (words,)


def test_enter_after_a_text_went_to_the_window_that_got_the_text():
    desk = Desk(shown="Bread")
    notes = desk.notes()
    for one in keys("Bread"):
        notes.handle(one)
    desk.active = lambda: Window(1, "Documents", "Notes.py", None)  # the dialog has closed
    notes.handle(KeyPressed("enter"))
    notes.flush()
    assert [acted.aim.window for acted in desk.acted] == ["Notes", "Notes"]


def test_x11_reports_clicks_wheel_keys_and_chords_by_their_names():
    from agent.desktop.x11.watches import X11InputLog

    with PlainDisplay() as display:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DISPLAY", display.environ["DISPLAY"])
            if "XAUTHORITY" in display.environ:
                patch.setenv("XAUTHORITY", display.environ["XAUTHORITY"])
            log = X11InputLog()
        doing = [
            "mousemove",
            "30",
            "40",
            "click",
            "1",
            "click",
            "5",
            "key",
            "A",
            "key",
            "ctrl+shift+t",
            "key",
            "Page_Down",
        ]
        subprocess.run(["xdotool", *doing, "key", "shift+Tab"], env=display.environ, check=True, timeout=30)
        found = [log.next(10) for _ in range(7)]
        log.close()
    at = DesktopPoint(30, 40)
    assert found == [
        ButtonPressed(at, "left"), ButtonReleased(at), WheelTurned(at, 0, 1), KeyPressed("a", "A"),
        KeyPressed("t", held=("ctrl", "shift")), KeyPressed("page_down"), KeyPressed("tab", held=("shift",)),
    ]  # fmt: skip
