"""The terminal that runs us: found, blank in what is captured, and out of the hand's reach."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stubs.typing_fields import wait_for

from agent.core.actions import Click, Drag, Move, OpenApp, Scroll, TypeText
from agent.core.geometry import DesktopPoint, Region, without
from agent.desktop.apps.launcher import Launcher
from agent.desktop.guard.hand import GuardedHand
from agent.desktop.guard.own_windows import Own, find_own, serve_page
from agent.desktop.guard.reach import MaskedScreen, Reach
from agent.desktop.input.hand import DryRunHand, InputHand
from agent.desktop.portable import MssScreen
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.x11.desktop import X11Desktop, X11Input
from agent.desktop.x11.text import X11TextEntry
from agent.desktop.x11.windows import X11Windows, open_windows
from agent.safety.stop import StopSwitch

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
GREY = (128, 128, 128)

#: What mai-agent does when it starts, told to the test.
LOOK = """
import json, os, sys, time
from agent.desktop.guard.own_windows import find_own
from agent.desktop.x11.windows import open_windows, same_display
own = find_own(open_windows, lambda environ: same_display(environ.get("DISPLAY", ""), os.environ["DISPLAY"]))
with open(sys.argv[1] + ".part", "w") as out:
    json.dump([sorted(own.windows), own.remark], out)
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(60)
"""

HOME = DesktopPoint(1700, 900)

e2e = [pytest.mark.e2e, pytest.mark.timeout(90)]


class Desk:
    """A sandbox in which mai-agent is started in a terminal."""

    def __init__(self, sandbox, folder):
        self.sandbox, self.folder = sandbox, folder
        self.windows = X11Windows()

    def active(self, app):
        return wait_for(
            lambda: (now := self.windows.active()) is not None and now.app.casefold() == app.casefold() and now
        )

    def front(self, window):
        self.windows.activate(window.id)
        wait_for(lambda: (now := self.windows.active()) is not None and now.id == window.id)

    def start(self, *command, app, **environ):
        subprocess.Popen(command, env=self.sandbox.environ | environ, start_new_session=True, cwd=ROOT)
        return self.active(app)

    def told(self, *terminal, app, **environ):
        """What a program in this terminal finds: its own windows, the remark; and the terminal's window."""
        target = self.folder / f"told{time.monotonic_ns()}"
        self.folder.joinpath("look.py").write_text(LOOK)
        look = f"{sys.executable} {self.folder}/look.py {target}"
        window = self.start(
            *[part.replace("LOOK", look) for part in terminal], app=app, PYTHONPATH=str(ROOT), **environ
        )
        wait_for(target.exists)
        return (*json.loads(target.read_text()), window)


@pytest.fixture
def desk(sandbox, tmp_path):
    found = Desk(sandbox, tmp_path)
    yield found
    found.windows.close()


@pytest.fixture
def terminal(desk):
    """Our own terminal at a known place."""
    return desk.start("xterm", "-geometry", "80x24+100+100", "-bg", "#ff00ff", app="XTerm")


def shell(script):
    return ("sh", "-c", script)


@pytest.mark.e2e
def test_the_terminal_is_found_by_what_it_tells_the_programs_in_it(desk):
    windows, remark, window = desk.told("xterm", "-e", "sh", "-c", "LOOK", app="XTerm")
    assert (windows, remark) == ([window.id], "")
    desk.start("xterm", app="XTerm")  # another one changes nothing


@pytest.mark.e2e
def test_the_terminal_is_found_by_its_process_where_it_tells_nothing(desk):
    windows, _, window = desk.told("xfce4-terminal", "-x", "sh", "-c", "unset WINDOWID; LOOK", app="Xfce4-terminal")
    assert windows == [window.id]


@pytest.mark.e2e
def test_a_number_left_over_from_another_terminal_is_not_believed(desk):
    editor = desk.start("mousepad", app="Mousepad")
    script = f"export WINDOWID={editor.id}; LOOK"
    windows, _, window = desk.told("xfce4-terminal", "-x", "sh", "-c", script, app="Xfce4-terminal")
    assert windows == [window.id]


@pytest.mark.e2e
def test_the_terminal_around_tmux_is_found(desk, tmp_path):
    script = f"unset WINDOWID; exec tmux -S {tmp_path}/socket -f /dev/null new-session 'WINDOWID=1 LOOK'"
    try:
        windows, _, window = desk.told("xterm", "-e", "sh", "-c", script, app="XTerm")
    finally:
        subprocess.run(["tmux", "-S", f"{tmp_path}/socket", "kill-server"], check=False)
    assert windows == [window.id]


@pytest.mark.e2e
def test_over_ssh_there_is_nothing_to_find_and_nothing_to_say(desk):
    windows, remark, _ = desk.told("xterm", "-e", "sh", "-c", "SSH_CONNECTION='1 2 3 4' LOOK", app="XTerm")
    assert (windows, remark) == ([], "")


@pytest.mark.e2e
def test_where_windows_cannot_be_told_apart_the_person_is_warned(desk):
    windows, remark, _ = desk.told("xterm", "-e", "sh", "-c", "DISPLAY=:77 LOOK", app="XTerm")
    assert windows == []
    assert "keep it off the screen" in remark


@pytest.mark.e2e
def test_our_terminal_is_not_looked_for_on_a_display_that_we_changed_to(sandbox):
    found = find_own(open_windows, X11Desktop(StopSwitch()).shows)
    assert found == Own()  # this process was started on another display, or none


def colours(image, box):
    return {colour for _, colour in image.crop(box).getcolors(1 << 24)}


def inside(region, inset=4):
    return (
        region.left + inset, region.top + inset, region.left + region.width - inset, region.top + region.height - inset
    )  # fmt: skip


@pytest.mark.e2e
def test_our_window_is_blank_in_what_is_captured_and_nothing_else_is(desk, terminal):
    time.sleep(0.3)
    plain, masked = MssScreen(), MaskedScreen(MssScreen(), Reach(open_windows, frozenset({terminal.id})))
    region = desk.windows.region(terminal.id)
    before, after = plain.grab().image, masked.grab().image
    assert (255, 0, 255) in colours(before, inside(region))
    assert colours(after, inside(region)) == {GREY}
    assert (255, 0, 255) not in colours(after, (0, 0, after.width, after.height))
    beside = (region.left + region.width + 20, region.top, region.left + region.width + 200, region.top + 200)
    assert before.crop(beside).tobytes() == after.crop(beside).tobytes()


@pytest.mark.e2e
def test_a_browser_that_shows_our_page_is_out_of_sight_and_reach(desk):
    browser = desk.start("xterm", "-geometry", "40x10+300+200", "-bg", "#ff00ff", "-T", "My mail", app="XTerm")
    time.sleep(0.3)
    reach = Reach(open_windows, pages=True)
    masked, middle = MaskedScreen(MssScreen(), reach), desk.windows.region(browser.id).middle
    click = Click(DesktopPoint(middle.x, middle.y))
    mark = serve_page()
    assert (255, 0, 255) in colours(masked.grab().image, inside(desk.windows.region(browser.id)))
    assert not reach.owns(desk.windows.at(*middle.rounded()))
    title = f"IT ASKS YOU · {mark} - Chromium"
    subprocess.run(["wmctrl", "-i", "-r", hex(browser.id), "-N", title], env=desk.sandbox.environ, check=True)
    wait_for(lambda: mark in desk.windows.window(browser.id).title)
    assert colours(masked.grab().image, inside(desk.windows.region(browser.id))) == {GREY}
    with pytest.raises(ActionFailedError):
        GuardedHand(DryRunHand(), reach).perform(click)
    assert not Reach(open_windows).owns(desk.windows.window(browser.id)), "a sandbox has no page of ours"


@pytest.mark.e2e
def test_what_covers_our_window_stays_visible(desk, terminal):
    region = desk.windows.region(terminal.id)
    over = desk.start(
        "xterm", "-geometry", f"30x8+{region.left + 100}+{region.top + 80}", "-bg", "#00ff00", app="XTerm"
    )
    wait_for(lambda: (now := desk.windows.active()) is not None and now.id != terminal.id)
    time.sleep(0.3)
    cover = desk.windows.region(over.id if over.id != terminal.id else desk.windows.active().id)
    masked = MaskedScreen(MssScreen(), Reach(open_windows, frozenset({terminal.id})))
    image = masked.grab().image
    assert (0, 255, 0) in colours(image, inside(cover))
    assert GREY not in colours(image, inside(cover))
    assert colours(image, (region.left + 4, region.top + 4, region.left + 90, region.top + 60)) == {GREY}
    desk.front(terminal)  # now it is on top
    time.sleep(0.2)
    assert colours(masked.grab().image, inside(region)) == {GREY}


@pytest.mark.e2e
def test_our_window_is_followed_when_it_moves(desk, terminal):
    masked = MaskedScreen(MssScreen(), Reach(open_windows, frozenset({terminal.id})))
    masked.grab()
    for x in (400, 700, 250):
        subprocess.run(["wmctrl", "-i", "-r", hex(terminal.id), "-e", f"0,{x},300,-1,-1"], env=desk.sandbox.environ)
        image = masked.grab().image
        assert (255, 0, 255) not in colours(image, (0, 0, image.width, image.height))


@pytest.fixture
def guarded(terminal):
    hand = GuardedHand(DryRunHand(), Reach(open_windows, frozenset({terminal.id})))
    yield hand
    hand.close()


@pytest.mark.e2e
def test_no_pointer_action_reaches_our_window(desk, terminal, guarded):
    region = desk.windows.region(terminal.id)
    mine = DesktopPoint(region.left + 50, region.top + 50)
    title = DesktopPoint(region.left + 50, region.top - 8)
    free = DesktopPoint(1700, 800)
    for action in (Click(mine), Click(title), Move(mine), Scroll(mine, 0, 1), Drag(free, mine), Drag(mine, free)):
        with pytest.raises(ActionFailedError, match="mai-agent's own window"):
            guarded.perform(action)
    for action in (Click(free), Scroll(None, 0, 1), OpenApp("x")):
        assert guarded.perform(action).startswith("would")


@pytest.mark.e2e
def test_what_is_typed_while_our_window_has_the_focus_goes_to_the_window_used_before(desk, terminal, guarded):
    editor = desk.start("mousepad", app="Mousepad")
    desk.start("galculator", app="Galculator")
    desk.front(editor)
    desk.front(terminal)
    assert Reach(open_windows, frozenset({terminal.id})).receiver(desk.windows).id == editor.id
    assert guarded.perform(TypeText("hello")).startswith("would")
    assert desk.windows.active().id == editor.id


@pytest.mark.e2e
def test_a_click_on_our_entry_in_the_taskbar_is_undone_and_said(desk, terminal):
    editor = desk.start("mousepad", app="Mousepad")
    stop = StopSwitch()
    real = InputHand(stop, X11Input(stop), X11TextEntry(), Launcher(desk.sandbox.environ, open_windows))
    hand = GuardedHand(real, Reach(open_windows, frozenset({terminal.id})))
    desk.front(editor)
    time.sleep(1.0)  # for the panel to show them
    of_editor, of_terminal = DesktopPoint(180, 12), DesktopPoint(380, 12)  # sorted by name
    with pytest.raises(ActionFailedError, match="the windows were put back"):
        hand.perform(Click(of_terminal))
    wait_for(lambda: (now := desk.windows.active()) is not None and now.id == editor.id)
    assert desk.windows.stacking().index(editor.id) > desk.windows.stacking().index(terminal.id)
    hand.perform(Click(of_editor))
    assert not desk.windows.is_ordinary(editor.id)  # minimised, as every other click there does
    hand.close()


rectangles = st.builds(Region, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9), st.integers(1, 9))


@given(rectangles, rectangles)
def test_a_rectangle_minus_another_holds_each_point_of_the_one_alone_exactly_once(one, other):
    parts = without(one, other)
    for x in range(-10, 20):
        for y in range(-10, 20):
            point = DesktopPoint(x, y)
            expected = one.contains(point) and not other.contains(point)
            assert sum(part.contains(point) for part in parts) == expected
