"""Typing on a real display where the focus is nowhere, or goes elsewhere, or the person holds a key."""

import subprocess
import threading
import time

import pytest
from stubs.typing_fields import BEGIN, Fields, wait_for

from agent.actions import Click, PressKeys, TypeText
from agent.desktop.apps.launcher import Launcher
from agent.desktop.hand import ActionFailedError
from agent.desktop.input_hand import InputHand
from agent.desktop.x11.input import X11Input
from agent.desktop.x11.text import X11TextEntry
from agent.desktop.x11.windows import X11Windows, open_windows
from agent.geometry import DesktopPoint
from agent.safety.stop import StopSwitch

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


@pytest.fixture
def hand(sandbox):
    stop = StopSwitch()
    used = InputHand(
        stop, X11Input(stop), X11TextEntry(), Launcher(sandbox.environ, open_windows), DesktopPoint(960, 540)
    )
    yield used
    used.close()


def xdotool(sandbox, *arguments):
    subprocess.run(["xdotool", *arguments], env=sandbox.environ, check=True)


@pytest.mark.parametrize("text", ["hello", "héllo", "hello " * 50])
def test_where_nothing_has_the_focus_nothing_is_typed_and_it_is_said(hand, text):
    with pytest.raises(ActionFailedError, match=r"keyboard focus.*: click where to type first"):
        hand.perform(TypeText(text))


@pytest.mark.parametrize(("key", "name"), [("ctrl", "ctrl"), ("shift", "shift"), ("alt", "alt")])
def test_a_key_that_the_person_holds_makes_no_other_action_of_ours(hand, sandbox, key, name):
    xdotool(sandbox, "keydown", key)
    try:
        for action in (TypeText("w"), PressKeys(("q",)), Click(DesktopPoint(960, 540))):
            with pytest.raises(ActionFailedError, match=f"holds down {name}: wait, and look again"):
                hand.perform(action)
    finally:
        xdotool(sandbox, "keyup", key)
    assert hand.perform(Click(DesktopPoint(960, 540)))


def test_a_key_that_the_person_lets_go_of_is_waited_for(hand, sandbox):
    xdotool(sandbox, "keydown", "ctrl")
    threading.Timer(0.3, xdotool, [sandbox, "keyup", "ctrl"]).start()
    assert hand.perform(Click(DesktopPoint(960, 540)))


def test_when_another_window_takes_the_focus_no_more_is_typed_and_how_much_was_is_said(hand, sandbox, tmp_path):
    text = "abcdefghijklmnopqrstuvwxyz 0123456789 abcdefghijklmnopqrst"
    with Fields("GTK 3", sandbox.environ, tmp_path) as other, Fields("Tk", sandbox.environ, tmp_path) as fields:
        windows = X11Windows()
        windows.activate(other.window.id)
        wait_for(lambda: (now := windows.active()) is not None and now.id == other.window.id)
        hand.perform(Click(other.point("entry")))
        windows.activate(fields.window.id)
        wait_for(lambda: (now := windows.active()) is not None and now.id == fields.window.id)
        windows.close()
        hand.perform(Click(fields.point("entry")))
        hand.perform(PressKeys(("ctrl", "/")))
        threading.Timer(0.2, xdotool, [sandbox, "windowactivate", str(other.window.id)]).start()
        with pytest.raises(ActionFailedError, match=r"went to “GTK 3”.*in “Tk”, and the rest was not typed") as told:
            hand.perform(TypeText(text))
        time.sleep(0.3)
        arrived = fields.values()["entry"]
        assert 0 < len(arrived) < len(text)
        assert text.startswith(arrived)
        assert f"only the first {len(arrived)} of {len(text)} characters" in str(told.value)
        assert other.values()["entry"] == BEGIN["entry"]
