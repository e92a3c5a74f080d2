"""Typing on a real display where the focus is nowhere, or goes elsewhere, or the person holds a key."""

import re
import subprocess
import threading
import time

import pytest
from stubs.sandbox_hand import sandbox_hand
from stubs.typing_fields import BEGIN, Fields, wait_for

import agent.desktop.x11.text
from agent.core.actions import Click, OpenApp, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.x11.connection import open_display
from agent.desktop.x11.text import find_receiver, has_focus
from agent.desktop.x11.windows import X11Windows

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(120)]


@pytest.fixture
def hand(sandbox):
    used = sandbox_hand(sandbox.environ)
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


def test_when_another_window_takes_the_focus_no_more_is_typed_and_how_much_was_is_said(
    hand, sandbox, tmp_path, monkeypatch
):
    text = "abcdefghijklmnopqrstuvwxyz 0123456789 abcdefghijklmnopqrst"
    looks = []

    def other_window_comes_at_the_twelfth_look(display, receiver):
        looks.append(receiver)
        if len(looks) == 12:
            xdotool(sandbox, "windowactivate", str(other.window.id))
        return has_focus(display, receiver)

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
        monkeypatch.setattr(agent.desktop.x11.text, "has_focus", other_window_comes_at_the_twelfth_look)
        with pytest.raises(ActionFailedError, match=r"went to “GTK 3”.*in “Tk”, and the rest was not typed") as told:
            hand.perform(TypeText(text))
        time.sleep(0.3)
        arrived = fields.values()["entry"]
        assert 0 < len(arrived) < len(text)
        assert text.startswith(arrived)
        most = re.search(rf"at most the first (\d+) of {len(text)} characters", str(told.value))
        assert most and int(most[1]) in (len(arrived), len(arrived) + 1)  # the last key may have gone with the focus
        assert other.values()["entry"] == BEGIN["entry"]


def test_an_application_that_hangs_gets_the_text_once_when_it_goes_on(hand, sandbox, tmp_path):
    with Fields("GTK 3", sandbox.environ, tmp_path) as fields:
        hand.perform(Click(fields.point("entry")))
        time.sleep(0.3)
        hand.perform(PressKeys(("ctrl", "a")))
        fields.stop_for(4.0)
        hand.perform(TypeText("größer"))
        assert fields.ends_as("entry", "größer") == "größer"


def test_when_the_focus_goes_elsewhere_before_enter_it_is_not_pressed(hand, sandbox, tmp_path):
    with Fields("GTK 3", sandbox.environ, tmp_path) as other, Fields("Tk", sandbox.environ, tmp_path) as fields:
        hand.perform(Click(other.point("entry")))
        hand.perform(Click(fields.point("entry")))
        entry = hand._text
        hand._text = Interrupted(entry, lambda: xdotool(sandbox, "windowactivate", "--sync", str(other.window.id)))
        with pytest.raises(ActionFailedError, match="after this was typed, so Enter was not pressed"):
            hand.perform(TypeText("größer\n"))
        time.sleep(0.3)
        assert "größer" in fields.values()["entry"]
        assert (fields.values()["entered"], other.values()["entered"]) == ("", "")


class Interrupted:
    """A text entry during which something happens once the text was pasted."""

    def __init__(self, entry, happen):
        self._entry, self._happen = entry, happen

    def enter(self, text, press, check_stop):
        def pressed(keys):
            press(keys)
            if keys == ("ctrl", "v"):
                threading.Timer(0.05, self._happen).start()
                time.sleep(0.4)

        self._entry.enter(text, pressed, check_stop)


@pytest.mark.parametrize("text", ["Zeit: a^b~c`d @{x} \\|", "yz YZ -_#'"])
def test_text_arrives_as_it_is_on_a_layout_with_other_and_dead_keys(hand, sandbox, tmp_path, text):
    subprocess.run(["setxkbmap", "de"], env=sandbox.environ, check=True)
    try:
        with Fields("GTK 3", sandbox.environ, tmp_path) as fields:
            hand.perform(Click(fields.point("entry"), count=3))
            hand.perform(TypeText(text))
            assert fields.ends_as("entry", text) == text
    finally:
        subprocess.run(["setxkbmap", "us"], env=sandbox.environ, check=True)


def test_text_arrives_as_it_is_while_caps_lock_is_on(hand, sandbox, tmp_path):
    xdotool(sandbox, "key", "Caps_Lock")
    try:
        with Fields("GTK 3", sandbox.environ, tmp_path) as fields:
            hand.perform(Click(fields.point("entry"), count=3))
            hand.perform(TypeText("Mixed Case"))
            assert fields.ends_as("entry", "Mixed Case") == "Mixed Case"
    finally:
        xdotool(sandbox, "key", "Caps_Lock")


def test_what_an_isolated_program_is_made_with_is_known(hand, sandbox):
    hand.perform(OpenApp("mousepad"))
    display = open_display()
    found = []
    try:
        wait_for(lambda: found.append(find_receiver(display)) or (found[-1] and found[-1].window.app == "Mousepad"))
    finally:
        display.close()
    receiver = found[-1]
    assert "libgtk-3.so" in hand._text._program(receiver).libraries
