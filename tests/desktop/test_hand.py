"""The hand on a real display: every action, and that text goes to the window that had the focus when it began."""

import re
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from stubs.sandbox_hand import sandbox_hand
from stubs.typing_fields import BEGIN, Fields, wait_for

import agent.desktop.x11.text
from agent.core.actions import Click, Drag, HoldKeys, LongPress, OpenApp, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.apps.launcher import Launcher
from agent.desktop.programs import host_pid
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.x11.connection import open_display
from agent.desktop.x11.text import X11TextEntry, find_receiver, has_focus, libraries_of
from agent.desktop.x11.windows import X11Windows, open_windows
from agent.safety.stop import StopSwitch
from foundation.errors import StoppedError

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(120)]

#: A window that takes the focus and no text.
DEAF = """
import tkinter
window = tkinter.Tk(); window.geometry("600x400+100+100"); window.title("deaf"); window.mainloop()
"""


@pytest.fixture
def desk(sandbox):
    """A hand in a sandbox, and its stop switch."""
    from agent.desktop.input.hand import InputHand
    from agent.desktop.x11.desktop import X11Input

    stop = StopSwitch()
    hand = InputHand(stop, X11Input(stop), X11TextEntry(), Launcher(sandbox.environ, open_windows))
    yield hand, stop, sandbox
    hand.close()


def held_keys_and_buttons():
    display = open_display()
    try:
        keys = sum(display.query_keymap())
        return keys, display.screen().root.query_pointer().mask & 0x1F00
    finally:
        display.close()


def in_front(wanted):
    """Wait until a wanted window is in front, and return its region."""
    with closing(X11Windows()) as windows:
        window = wait_for(lambda: (now := windows.active()) is not None and wanted(now) and now)
        return windows.region(window.id)


def clipboard(sandbox, text=None):
    command = ["xclip", "-selection", "clipboard", "-i" if text is not None else "-o"]
    if text is not None:
        subprocess.run(command, input=text, text=True, env=sandbox.environ, stdout=subprocess.DEVNULL, check=True)
        return text
    return subprocess.run(command, capture_output=True, text=True, env=sandbox.environ, timeout=10).stdout


TEXT = 'Zażółć <gęślą> 日本語 🙂 العربية "quotes" \\ $HOME\n\tline two'


@pytest.mark.parametrize("text", [TEXT, "x" * 10_000 + "é"])
def test_text_arrives_whole_in_an_editor_and_the_clipboard_is_put_back(desk, text):
    hand, _, sandbox = desk
    clipboard(sandbox, "the person's own")
    hand.perform(OpenApp("mousepad"))
    time.sleep(0.7)
    hand.perform(TypeText(text))
    assert clipboard(sandbox) == "the person's own"
    hand.perform(PressKeys(("ctrl", "a")))
    hand.perform(PressKeys(("ctrl", "c")))
    wait_for(lambda: clipboard(sandbox) == text)


def test_text_replaces_what_is_selected_in_a_text_and_in_a_name(desk):
    hand, _, sandbox = desk
    home = Path(sandbox.environ["HOME"])
    (home / "old.txt").write_text("what stood there")
    sandbox.start("mousepad", str(home / "old.txt"))
    in_front(lambda window: "old.txt" in window.title)
    time.sleep(0.5)
    hand.perform(PressKeys(("ctrl", "a")))
    time.sleep(0.3)
    hand.perform(TypeText("short"))
    hand.perform(PressKeys(("ctrl", "shift", "s")))
    in_front(lambda window: "old.txt" not in window.title)
    time.sleep(0.5)
    hand.perform(PressKeys(("ctrl", "a")))
    time.sleep(0.3)
    hand.perform(TypeText("new.txt"))
    hand.perform(PressKeys(("enter",)))
    wait_for(lambda: (home / "new.txt").exists() and (home / "new.txt").read_text() == "short")
    assert not (home / "old.txtnew.txt").exists()


def test_text_arrives_in_a_terminal_in_which_something_else_is_selected(desk, tmp_path):
    hand, _, sandbox = desk
    target = tmp_path / "typed"
    subprocess.Popen(["xterm", "-geometry", "80x24+100+100"], env=sandbox.environ, start_new_session=True)
    region = in_front(lambda window: window.app.lower() == "xterm")
    time.sleep(0.8)
    hand.perform(Click(DesktopPoint(region.left + 20.0, region.top + 12.0), count=3))
    hand.perform(TypeText(f"printf done > {target}\n"))
    wait_for(lambda: target.exists() and target.read_text() == "done")


@pytest.mark.parametrize("terminal", ["xterm", "xfce4-terminal"])
def test_text_arrives_in_terminals(desk, tmp_path, terminal):
    hand, _, sandbox = desk
    target = tmp_path / "typed"
    subprocess.Popen([terminal], env=sandbox.environ, start_new_session=True)
    in_front(lambda window: window.app.lower() in ("xterm", "xfce4-terminal"))
    time.sleep(0.8)
    hand.perform(TypeText(f"printf %s 'ä<b> 日本' > {target}\n"))
    wait_for(lambda: target.exists() and target.read_text() == "ä<b> 日本")


@pytest.mark.parametrize(
    "action",
    [
        HoldKeys(("shift", "a"), 30),
        LongPress(DesktopPoint(300, 300), 30),
        Drag(DesktopPoint(200, 200), DesktopPoint(600, 400)),
    ],
)
def test_a_stop_in_the_middle_leaves_nothing_pressed(desk, action):
    hand, stop, _ = desk
    threading.Timer(0.2, stop.stop, ["the test"]).start()
    with pytest.raises(StoppedError):
        hand.perform(action)
    assert held_keys_and_buttons() == (0, 0)


def test_the_pointer_in_a_corner_is_a_stop(desk):
    hand, stop, sandbox = desk
    subprocess.run(["xdotool", "mousemove", "0", "0"], env=sandbox.environ, check=True)
    with pytest.raises(StoppedError, match="corner"):
        hand.perform(Click(DesktopPoint(300, 300)))
    assert stop.stopped


def test_text_that_nothing_takes_is_an_error_and_not_lost_silently(desk):
    hand, _, sandbox = desk
    subprocess.Popen([sys.executable, "-c", DEAF], env=sandbox.environ, start_new_session=True)
    in_front(lambda window: window.title == "deaf")
    hand.perform(Click(DesktopPoint(300, 300)))
    clipboard(sandbox, "mine")
    with pytest.raises(ActionFailedError, match="took the text"):
        hand.perform(TypeText("日本 " * 100))
    assert clipboard(sandbox) == "mine"


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
            xdotool(sandbox, "windowactivate", "--sync", str(other.window.id))
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
    assert "libgtk-3.so" in libraries_of(host_pid(receiver.window.pid, sandbox.environ))
