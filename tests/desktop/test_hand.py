"""The real hand on a real display: what arrives in applications, and that nothing stays pressed."""

import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from stubs.typing_fields import wait_for

from agent.core.actions import Click, Drag, HoldKeys, LongPress, OpenApp, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.apps.launcher import Launcher
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.x11.connection import open_display
from agent.desktop.x11.text import X11TextEntry
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
    from agent.desktop.x11.input import X11Input

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
    subprocess.Popen(["mousepad", str(home / "old.txt")], env=sandbox.environ, start_new_session=True)
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
