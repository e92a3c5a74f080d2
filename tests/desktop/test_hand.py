"""The real hand on a real display: what arrives in applications, and that nothing stays pressed."""

import subprocess
import threading
import time
from pathlib import Path

import pytest

from agent.core.actions import Click, Drag, HoldKeys, LongPress, OpenApp, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.apps.launcher import Launcher
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.x11.connection import open_display
from agent.desktop.x11.text import X11TextEntry
from agent.desktop.x11.windows import X11Windows, open_windows
from agent.safety.stop import StopSwitch
from foundation.errors import StoppedError

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(120)]

LOGGER = """
import sys, tkinter
log = open(sys.argv[1], "a", buffering=1)
window = tkinter.Tk(); window.geometry("600x400+100+100"); window.title("logger")
canvas = tkinter.Canvas(window, width=600, height=400); canvas.pack(); canvas.focus_set()
for name in ("<ButtonPress>", "<ButtonRelease>", "<Double-Button-1>", "<Triple-Button-1>", "<B1-Motion>", "<KeyPress>",
             "<KeyRelease>"):
    canvas.bind(name, lambda event, name=name: log.write(f"{name} {event.num} {event.keysym} {event.x} {event.y}\\n"))
log.write("ready\\n"); window.mainloop()
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


@pytest.fixture
def logger(desk, tmp_path):
    """A window that writes down every event, and a way to read them."""
    import sys

    _, _, sandbox = desk
    log = tmp_path / "events"
    program = subprocess.Popen([sys.executable, "-c", LOGGER, str(log)], env=sandbox.environ)
    wait_for(lambda: log.exists() and "ready" in log.read_text())
    time.sleep(0.5)
    yield lambda: log.read_text().splitlines()[1:]
    program.kill()
    program.wait()


def wait_for(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def held_keys_and_buttons():
    display = open_display()
    try:
        keys = sum(display.query_keymap())
        return keys, display.screen().root.query_pointer().mask & 0x1F00
    finally:
        display.close()


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
    windows = X11Windows()
    wait_for(lambda: (window := windows.active()) is not None and "old.txt" in window.title)
    time.sleep(0.5)
    hand.perform(PressKeys(("ctrl", "a")))
    time.sleep(0.3)
    hand.perform(TypeText("short"))
    hand.perform(PressKeys(("ctrl", "shift", "s")))
    wait_for(lambda: (window := windows.active()) is not None and "old.txt" not in window.title)
    windows.close()
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
    windows = X11Windows()
    wait_for(lambda: (window := windows.active()) is not None and window.app.lower() == "xterm")
    region = windows.region(windows.active().id)
    windows.close()
    time.sleep(0.8)
    hand.perform(Click(DesktopPoint(region.left + 20.0, region.top + 12.0), count=3))
    hand.perform(TypeText(f"printf done > {target}\n"))
    wait_for(lambda: target.exists() and target.read_text() == "done")


@pytest.mark.parametrize("terminal", ["xterm", "xfce4-terminal"])
def test_text_arrives_in_terminals(desk, tmp_path, terminal):
    hand, _, sandbox = desk
    target = tmp_path / "typed"
    subprocess.Popen([terminal], env=sandbox.environ, start_new_session=True)
    windows = X11Windows()
    wait_for(lambda: (window := windows.active()) is not None and window.app.lower() in ("xterm", "xfce4-terminal"))
    windows.close()
    time.sleep(0.8)
    hand.perform(TypeText(f"printf %s 'ä<b> 日本' > {target}\n"))
    wait_for(lambda: target.exists() and target.read_text() == "ä<b> 日本")


def test_double_and_triple_clicks_arrive_as_such(desk, logger):
    hand, *_ = desk
    hand.perform(Click(DesktopPoint(300, 300), count=2))
    wait_for(lambda: any(line.startswith("<Double") for line in logger()))
    hand.perform(Click(DesktopPoint(500, 400), count=3))
    wait_for(lambda: any(line.startswith("<Triple") for line in logger()))


def test_buttons_and_wheel_notches_are_counted(desk, logger):
    hand, *_ = desk
    hand.perform(Click(DesktopPoint(300, 300), button="right"))
    hand.perform(Scroll(DesktopPoint(300, 300), dx=0, dy=3))
    hand.perform(Scroll(DesktopPoint(300, 300), dx=0, dy=-2))
    wait_for(lambda: sum(line.startswith("<ButtonPress> 4") for line in logger()) == 2)
    presses = [line.split()[1] for line in logger() if line.startswith("<ButtonPress>")]
    assert presses == ["3", "5", "5", "5", "4", "4"]


def test_a_drag_is_many_motions_with_the_button_held(desk, logger):
    hand, *_ = desk
    hand.perform(Drag(DesktopPoint(200, 200), DesktopPoint(500, 400)))
    wait_for(lambda: any(line.startswith("<ButtonRelease>") for line in logger()))
    lines = logger()
    assert sum(line.startswith("<B1-Motion>") for line in lines) >= 10
    assert lines[-1].startswith("<ButtonRelease>")


def test_chords_press_and_release_every_key(desk, logger):
    hand, *_ = desk
    hand.perform(PressKeys(("ctrl", "shift", "page_down")))
    wait_for(lambda: sum(line.startswith("<KeyRelease>") for line in logger()) == 3)
    pressed = [line.split()[2] for line in logger() if line.startswith("<KeyPress>")]
    assert pressed == ["Control_L", "Shift_L", "Next"]
    assert held_keys_and_buttons() == (0, 0)


def test_a_key_that_the_keyboard_lacks_is_an_error(desk):
    hand, *_ = desk
    with pytest.raises(ActionFailedError, match="no key"):
        hand.perform(PressKeys(("ctrl", "漢")))


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


def test_text_that_nothing_takes_is_an_error_and_not_lost_silently(desk, logger):
    hand, _, sandbox = desk
    hand.perform(Click(DesktopPoint(300, 300)))
    clipboard(sandbox, "mine")
    with pytest.raises(ActionFailedError, match="took the text"):
        hand.perform(TypeText("日本 " * 100))
    assert clipboard(sandbox) == "mine"


def test_an_unknown_application_is_refused_with_similar_names(desk):
    hand, *_ = desk
    with pytest.raises(ActionFailedError, match="no installed application"):
        hand.perform(OpenApp("Quantum Paint"))
