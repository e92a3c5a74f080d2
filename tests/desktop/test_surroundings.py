"""What the policy is told of a real desktop: the windows that get an action, and what is written at its target."""

import subprocess
import sys
import time
from contextlib import suppress

import pytest
from stubs.typing_fields import wait_for

from agent.core.actions import Click, Drag, HoldKeys, LongPress, OpenApp, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.apps.launcher import Launcher
from agent.desktop.guard.reach import Reach
from agent.desktop.guard.surroundings import DesktopSurroundings
from agent.desktop.portable import MssScreen
from agent.desktop.x11.windows import X11Windows, open_windows
from agent.safety.policy import Policy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

#: A window of a web page's kind: captions on grounds of every colour, at known places.
PAGE = """
import tkinter as tk
root = tk.Tk(className="Page")
root.title("terminal of your dreams")
root.geometry("640x360+300+200")
root.configure(bg="white")
def put(text, x, y, bg, fg):
    tk.Label(root, text=text, bg=bg, fg=fg, font=("DejaVu Sans", 11)).place(x=x, y=y, width=140, height=40)
put("Cancel", 20, 40, "#dddddd", "black")
put("Delete all", 200, 40, "#c81e1e", "white")
put("Pay now", 380, 40, "#1e5ac8", "white")
put("Read more", 20, 160, "white", "#0000ee")
put("Sign in", 200, 160, "#202020", "#f0f0f0")
put("", 380, 160, "#1e5ac8", "white")
root.mainloop()
"""
CENTERS = {"Cancel": (90, 60), "Delete all": (270, 60), "Pay now": (450, 60), "Read more": (90, 180),
           "Sign in": (270, 180)}  # fmt: skip


class Desk:
    """The sandbox with a page on it, and the surroundings as a run has them."""

    def __init__(self, sandbox):
        self.windows = X11Windows()
        subprocess.Popen([sys.executable, "-c", PAGE], env=sandbox.environ, start_new_session=True)
        wait_for(lambda: (now := self.windows.active()) is not None and now.app == "Page")
        time.sleep(0.3)
        self.page = self.windows.active()
        self.corner = self.windows.region(self.page.id)
        self.screen = MssScreen()
        self.around = DesktopSurroundings(
            self.screen,
            Launcher(sandbox.environ, open_windows),
            Reach(open_windows),
        )

    def asks(self, policy, action):
        """Whether the policy asks about an action, which is done then, as far as the surroundings know."""
        question = policy.question(action, self.around.of(action))
        self.around.did(action)
        return question is not None

    def point(self, x, y):
        return DesktopPoint(self.corner.left + x, self.corner.top + y)

    def close(self):
        self.around.close()
        with suppress(Exception):  # a test may have ended the display
            self.screen.close()
        self.windows.close()


@pytest.fixture
def desk(sandbox):
    found = Desk(sandbox)
    yield found
    found.close()


def test_the_caption_under_a_click_is_read_whatever_its_colours(desk):
    for text, center in CENTERS.items():
        situation = desk.around.of(Click(desk.point(*center)))
        assert (situation.words, situation.under.app) == (text, "Page")


def test_a_click_on_the_edge_of_a_button_is_a_click_on_its_caption(desk):
    for x, y in ((203, 43), (337, 77)):
        assert desk.around.of(Click(desk.point(x, y))).words == "Delete all"


def test_the_shipped_policy_asks_about_what_is_written_there_and_names_it(desk):
    policy = Policy.load("risky")
    for text, center in CENTERS.items():
        action = Click(desk.point(*center))
        question = policy.question(action, desk.around.of(action))
        if text in ("Cancel", "Read more"):
            assert question is None
        else:
            assert question.situation.words == text
            assert ("in this window of Page" in question.scope) is (text != "Pay now"), "each payment is asked about"


def test_a_drag_is_known_by_where_it_starts_and_where_it_ends(desk):
    situation = desk.around.of(Drag(desk.point(90, 60), desk.point(270, 60)))
    assert situation.words == "Cancel\nDelete all"
    outside = desk.around.of(Drag(desk.point(90, 60), DesktopPoint(1700, 900)))
    assert (outside.origin.app, outside.under.app) == ("Page", "Xfdesktop")


def test_the_window_on_top_is_the_one_that_gets_a_click(desk, sandbox):
    place = desk.point(90, 60)
    subprocess.Popen(["xterm", "-geometry", "60x20+320+180"], env=sandbox.environ, start_new_session=True)
    wait_for(lambda: (now := desk.windows.active()) is not None and now.app == "XTerm")
    assert desk.around.of(LongPress(place)).under.app == "XTerm"
    assert desk.around.of(TypeText("x")).focused.app == "XTerm"
    assert "terminal" in Policy.load("risky").question(TypeText("x"), desk.around.of(TypeText("x"))).reason


def test_the_wheel_turns_at_the_pointer_where_no_point_is_named(desk, sandbox):
    at = (desk.corner.left + 90, desk.corner.top + 60)
    subprocess.run(["xdotool", "mousemove", *map(str, at)], env=sandbox.environ, check=True)
    assert desk.around.pointer() == DesktopPoint(*at)
    for action in (Scroll(None, 0, 3), Click(None)):
        assert desk.around.of(action).under.app == "Page"


def test_a_menu_counts_as_the_application_that_it_is_of(desk, sandbox):
    sandbox.start("mousepad")
    wait_for(lambda: (now := desk.windows.active()) is not None and now.app == "Mousepad")
    subprocess.run(["xdotool", "key", "alt+f"], env=sandbox.environ, check=True)
    time.sleep(0.7)
    editor = desk.windows.region(next(one.id for one in desk.windows.windows() if one.app == "Mousepad"))
    situation = desk.around.of(Click(DesktopPoint(editor.left + 60, editor.top + 60)))
    assert situation.under.app == "Mousepad"


def test_an_application_is_judged_by_what_would_be_started(desk):
    policy = Policy.load("risky")
    for name in (
        "terminal",
        "console",
        "XTerm",
        "the terminal app",
        "Xfce Terminal",
        "xfce4-terminal",
        "command line",
    ):
        question = policy.question(OpenApp(name), desk.around.of(OpenApp(name)))
        assert question is not None, name
    for name in ("settings", "calculator", "text editor", "Thunar", "appearance"):
        assert policy.question(OpenApp(name), desk.around.of(OpenApp(name))) is None, name


def test_a_text_in_pieces_is_judged_as_a_whole(desk):
    policy = Policy.load("risky")
    pieces = [
        TypeText("sud"),
        PressKeys(("q",)),
        PressKeys(("backspace",)),
        PressKeys(("x",)),
        PressKeys(("backspace",)),
        TypeText("o reboot"),
    ]
    asked = [desk.asks(policy, piece) for piece in pieces]
    assert asked == [False, False, False, False, False, True]


SHIFTED, CTRL = PressKeys(("shift", "backspace")), PressKeys(("ctrl", "backspace"))


@pytest.mark.parametrize(
    "pieces",
    [
        [TypeText("sudox"), PressKeys(("backspace",)), TypeText(" ls")],
        [TypeText("sudX"), SHIFTED, TypeText("o apt update")],
        [TypeText("sudXX"), HoldKeys(("backspace",), 0.5), TypeText("o apt update")],
        [TypeText("sud notes"), CTRL, TypeText("o apt update")],
        [TypeText("echo x "), PressKeys(("shift", "\\")), TypeText(" sh")],
    ],
    ids=lambda pieces: type(pieces[1]).__name__ + "-".join(pieces[1].keys),
)
def test_a_text_that_was_corrected_and_cannot_be_read_asks_when_enter_sends_it(desk, pieces):
    policy = Policy.load("risky")
    for piece in pieces:
        desk.asks(policy, piece)
    assert desk.asks(policy, PressKeys(("enter",)))


def test_a_display_that_is_gone_makes_everything_unknown(desk, sandbox):
    desk.around.of(Click(desk.point(90, 60)))
    sandbox.close()
    situation = desk.around.of(Click(desk.point(90, 60)))
    assert (situation.under, situation.words) == (None, "")
    assert desk.around.of(TypeText("x")).focused is None
