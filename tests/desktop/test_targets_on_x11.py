"""What happens to real windows between the look and the action, and is noticed."""

import subprocess
import time

import pytest
from stubs.typing_fields import wait_for

from agent.core.actions import Click, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.guard.hand import GuardedHand
from agent.desktop.guard.reach import Reach
from agent.desktop.guard.targets import Meant, sight
from agent.desktop.input.hand import DryRunHand
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.x11.connection import open_display
from agent.desktop.x11.windows import X11Windows, open_windows

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]


class Desk:
    """An editor that was looked at, and a hand that is to act on it."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        sandbox.start("mousepad")
        self.windows = X11Windows()
        wait_for(lambda: (now := self.windows.active()) is not None and now.app == "Mousepad", 20)
        time.sleep(0.7)
        self.editor = self.windows.active()
        region = self.windows.region(self.editor.id)
        self.middle = DesktopPoint(region.left + region.width / 2, region.top + region.height / 2)
        seen = sight(self.windows, Reach(open_windows))
        self.hand = GuardedHand(DryRunHand(), Reach(open_windows), lambda: Meant(seen=seen))

    def said(self, action):
        try:
            return self.hand.perform(action)
        except ActionFailedError as error:
            return str(error)

    def call(self, *command):
        subprocess.run(command, env=self.sandbox.environ, check=True)
        time.sleep(0.5)


@pytest.fixture
def desk(sandbox):
    found = Desk(sandbox)
    yield found
    found.windows.close()
    found.hand.close()


def test_a_window_that_was_minimised_takes_neither_click_nor_text(desk):
    desk.call("xdotool", "windowminimize", str(desk.editor.id))
    assert "is not there any more" in desk.said(Click(desk.middle))
    assert "Mousepad” is not there any more" in desk.said(TypeText("x"))


def test_a_window_that_came_in_front_is_told_by_its_name(desk):
    subprocess.Popen(["xterm", "-T", "intruder", "-geometry", "100x40+700+350"], env=desk.sandbox.environ)
    wait_for(lambda: (now := desk.windows.active()) is not None and now.title == "intruder", 20)
    time.sleep(0.3)
    assert "“intruder” covers “Untitled 1 - Mousepad” at that point now: look again" in desk.said(Click(desk.middle))
    assert "the keyboard focus is on “intruder”: look again" in desk.said(TypeText("rm -rf x"))


def test_behind_a_screen_that_was_locked_nothing_is_done(desk):
    from Xlib import X

    display = open_display()
    try:
        screen = display.screen()
        lock = screen.root.create_window(
            0, 0, screen.width_in_pixels, screen.height_in_pixels, 0, X.CopyFromParent,
            background_pixel=0, override_redirect=True,
        )  # fmt: skip
        lock.set_wm_class("locker", "Locker")
        lock.map()
        display.sync()
        time.sleep(0.3)
        assert "“Locker” covers" in desk.said(Click(desk.middle))
        for action in (TypeText("secret"), PressKeys(("enter",))):
            assert "“Locker” came up meanwhile and may take the keys: look again" in desk.said(action)
    finally:
        display.close()
