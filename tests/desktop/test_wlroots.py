"""Compositors with wlroots' protocols: their monitors, what is typed there, and our own window and terminal."""

import ast
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from stubs.benches import ROOT, Bench, WlrootsBench, bench_of
from stubs.display import wait_until
from stubs.sway import PlainSway

from agent.core.actions import Click, Move, PressKeys, TypeText
from agent.core.geometry import CapturePoint, DesktopPoint, Region, Size
from agent.desktop.factory import check_display, has_stop_key, open_desktop
from agent.desktop.guard.own_windows import titled_window
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.wayland.desktop import Pointer
from agent.desktop.wayland.wire import socket_of
from agent.desktop.wlroots import input as wlroots_input
from agent.desktop.wlroots.windows import ToplevelWindows
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, UsageError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


@contextmanager
def sway_of(monkeypatch: pytest.MonkeyPatch, *outputs: str) -> Iterator[PlainSway]:
    """A sway that this process's environment names."""
    monkeypatch.delenv("DISPLAY", raising=False)
    with PlainSway(outputs) as sway:
        for name, value in sway.variables.items():
            monkeypatch.setenv(name, value)
        yield sway


@pytest.mark.parametrize(
    ("scale", "logical"),
    [("1", (1280, 800)), ("1.25", (1024, 640)), ("1.5", (853, 533)), ("2", (640, 400))],
)
def test_what_is_seen_on_a_scaled_monitor_is_clicked_where_it_was_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scale: str, logical: tuple[int, int]
) -> None:
    with sway_of(monkeypatch, f"resolution 1280x800 position 0 0 scale {scale}") as sway:
        bench = WlrootsBench(sway, tmp_path)
        desktop = bench.open()
        frame = desktop.screen.grab()
        assert frame.viewport.captured == Size(1280, 800)
        assert abs(desktop.monitors[0].width - logical[0]) <= 1 and abs(desktop.monitors[0].height - logical[1]) <= 1
        for x, y in ((200, 300), (1000, 700), (641, 401), (1270, 790)):
            bench.since_now()
            desktop.hand.perform(Click(frame.viewport.capture_to_desktop(CapturePoint(x, y))))
            bench.wait(lambda: bench.events("press"), "the click arrives")
            press = bench.events("press")[0]
            assert abs(press["x"] * float(scale) - x) <= float(scale) + 0.5
            assert abs(press["y"] * float(scale) - y) <= float(scale) + 0.5
        desktop.hand.close()
        desktop.screen.close()


@pytest.mark.parametrize("turn", ["90", "180", "270", "flipped", "flipped-90", "flipped-180", "flipped-270"])
def test_a_turned_monitor_is_seen_upright(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, turn: str) -> None:
    with sway_of(monkeypatch, f"resolution 800x600 position 0 0 scale 1 transform {turn}") as sway:
        bench = WlrootsBench(sway, tmp_path)
        desktop = bench.open()
        region, image = desktop.monitors[0], desktop.screen.grab().image
        assert region.size == (Size(600, 800) if turn.endswith(("90", "270")) else Size(800, 600))
        assert Size(*image.size) == region.size
        # The entry at the top is the only part that is light; below it, all is coloured.
        top, bottom = image.getpixel((300, 45)), image.getpixel((300, region.height - 20))
        assert isinstance(top, tuple) and isinstance(bottom, tuple)
        assert min(top) > 200 > min(bottom)
        assert min(image.getpixel((region.width - 40, 45))) > 200
        desktop.hand.perform(Click(DesktopPoint(77, 444)))
        bench.wait(lambda: bench.events("press"), "the click arrives")
        assert (int(bench.events("press")[0]["x"]), int(bench.events("press")[0]["y"])) == (77, 444)
        desktop.hand.close()
        desktop.screen.close()


def test_monitors_to_the_left_and_above_are_reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    outputs = ("resolution 1280x800 position 0 0 scale 1", "resolution 1000x600 position -500 -300 scale 2")
    with sway_of(monkeypatch, *outputs) as sway:
        assert [one["name"] for one in sway.tree()["nodes"]][1:] == ["HEADLESS-1", "HEADLESS-2"]
        sway.do("focus output HEADLESS-2")
        bench = WlrootsBench(sway, tmp_path)
        desktop = bench.open(monitor=2)
        assert desktop.monitors == [Region(0, 0, 1280, 800), Region(-500, -300, 500, 300)]
        frame = desktop.screen.grab()
        assert frame.viewport.region == desktop.monitors[1] and frame.viewport.captured == Size(1000, 600)
        desktop.hand.perform(Move(DesktopPoint(-300, -100)))
        desktop.hand.perform(Click(frame.viewport.capture_to_desktop(CapturePoint(300, 400))))
        bench.wait(lambda: bench.events("press"), "the click arrives")
        press = bench.events("press")[0]
        assert (int(press["x"]), int(press["y"])) == (150, 200)
        windows = desktop.open_windows()
        assert windows is not None
        under = windows.at(-350, -100)
        assert under is not None and under.title == "probe" and windows.at(100, 100) is None
        windows.close()
        desktop.hand.close()
        desktop.screen.close()
        with pytest.raises(UsageError, match="monitors 1 to 2"):
            open_desktop(StopSwitch(), 3)


def test_a_compositor_that_goes_away_ends_the_run_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with sway_of(monkeypatch, "resolution 1280x800 position 0 0 scale 1") as sway:
        stop = StopSwitch()
        desktop = WlrootsBench(sway, tmp_path).open(stop)
        desktop.watch("none", None)
        desktop.hand.perform(Move(DesktopPoint(100, 100)))
        sway.kill()
        with pytest.raises(EnvironmentLacksError, match="went away"):
            desktop.screen.grab()
        with pytest.raises(EnvironmentLacksError, match="went away"):
            desktop.hand.perform(Move(DesktopPoint(200, 100)))
        assert stop.wait(10)
        with pytest.raises(EnvironmentLacksError, match="went away"):
            stop.check()
        desktop.hand.close()
        desktop.screen.close()
        desktop.close()


def test_x11_is_not_used_where_a_wayland_session_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with sway_of(monkeypatch, "resolution 800x600 position 0 0 scale 1"):
        monkeypatch.setenv("DISPLAY", ":99")
        desktop = open_desktop(StopSwitch())
        assert type(desktop).__name__ == "WlrootsDesktop"
        assert [sentence for sentence in desktop.abilities.lacks() if "X11" in sentence] == []
        desktop.screen.close()
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "")
        with pytest.raises(EnvironmentLacksError, match="names no session bus"):
            open_desktop(StopSwitch(), kind="portal")
        monkeypatch.delenv("SWAYSOCK")
        other = open_desktop(StopSwitch())
        assert (other.abilities.windows, other.abilities.stop_key) == (False, False)
        assert other.open_elements() is None
        windows = other.open_windows()
        assert windows is not None and windows.windows() == []
        windows.close()
        assert any("Ctrl-C" in sentence for sentence in other.abilities.lacks())
        other.screen.close()
    with pytest.raises(EnvironmentLacksError, match="cannot be reached"):
        check_display(os.environ)


RUN = """
import sys
from agent.core.actions import Click, TypeText
from agent.desktop.factory import check_display, needed_programs, open_desktop
from agent.desktop.guard.desktop import GuardedDesktop
from agent.core.geometry import DesktopPoint
from agent.safety.stop import StopSwitch
import agent.run.session, os
check_display(os.environ)
assert needed_programs() == {}
desktop = open_desktop(StopSwitch())
safe = GuardedDesktop(desktop)
safe.watch("ctrl+alt+shift+escape", None)
safe.screen.grab()
safe.surroundings.of(Click(DesktopPoint(500, 400)))
safe.hand.perform(Click(DesktopPoint(500, 400)))
safe.hand.perform(TypeText("text"))
elements = safe.open_elements()
elements.outline()
safe.hand.close()
print(sorted({name.split(".")[0] for name in sys.modules} & {"Xlib", "mss", "pyautogui", "pyperclip"}))
print(sorted(name for name in sys.modules if name.startswith(("agent.desktop.x11", "agent.desktop.portable"))))
"""


def test_nothing_of_x11_is_imported_in_a_run_on_wayland(tmp_path: Path) -> None:
    with bench_of("sway", tmp_path) as bench:
        done = subprocess.run(
            [sys.executable, "-c", RUN], env=bench.server.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.stdout.splitlines() == ["[]", "[]"], done.stderr


INSIDE = """
import sys
from agent.core.actions import Click
from agent.desktop.factory import open_desktop
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.guard.desktop import GuardedDesktop
from agent.safety.stop import StopSwitch
desktop = open_desktop(StopSwitch())
safe = GuardedDesktop(desktop)
own = [desktop.open_windows().window(one).title for one in safe.reach.own]
try:
    said = safe.hand.perform(Click(desktop.home))
except ActionFailedError as error:
    said = str(error)
colours = {safe.screen.grab().image.getpixel((x, 300)) for x in range(0, 1280, 40)}
open(sys.argv[1] + ".new", "w").write(repr((own, said, len(colours))))
import os
os.rename(sys.argv[1] + ".new", sys.argv[1])
input()
"""


def test_the_terminal_is_known_by_its_process_hidden_and_not_clicked(tmp_path: Path) -> None:
    told, program = tmp_path / "told", tmp_path / "inside.py"
    program.write_text(INSIDE)
    with PlainSway() as sway:
        command = f"cd {shlex.quote(str(ROOT))}; PYTHONPATH=. {sys.executable} {program} {told} 2> {tmp_path}/errors"
        sway.start("foot", "--title=our terminal", "sh", "-c", command)
        wait_until(told.exists, f"it tells: {tmp_path}/errors")
    own, said, colours = ast.literal_eval(told.read_text())
    assert own == ["our terminal"]
    assert "mai-agent's own window" in said
    assert colours == 1


def test_nothing_more_is_typed_once_another_window_has_the_focus(tmp_path: Path) -> None:
    with bench_of("sway", tmp_path) as bench:
        desktop = bench.open()
        desktop.hand.perform(Click(DesktopPoint(400, 30)))
        others: list[Bench] = []
        intruder = threading.Thread(target=lambda: others.append(Bench(bench.server, tmp_path)))
        intruder.start()
        text = "abcdefghij" * 300
        with pytest.raises(ActionFailedError, match=r"focus went to .* rest was not typed"):
            desktop.hand.perform(TypeText(text))
        intruder.join()
        arrived = bench.text()
        assert arrived and len(arrived) < len(text) and text.startswith(arrived)
        assert len(others[0].text()) <= 8  # what was on its way
        desktop.hand.close()
        desktop.screen.close()


def test_the_first_key_reaches_an_application_that_is_slow_to_learn_of_the_keyboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_of("sway", tmp_path) as bench:
        assert isinstance(bench.server, PlainSway)
        window = bench.server.programs[-1]
        waits = time.sleep

        def wait(_: float) -> None:
            window.send_signal(signal.SIGCONT)
            waits(1)

        monkeypatch.setattr(wlroots_input, "time", SimpleNamespace(monotonic=time.monotonic, sleep=wait))
        desktop = bench.open()
        window.send_signal(signal.SIGSTOP)
        desktop.hand.perform(PressKeys(("f5",)))  # the first of this seat: there was no keyboard before
        bench.wait(lambda: [one["name"] for one in bench.events("key")] == ["F5"], "the key arrives")
        desktop.hand.close()
        desktop.screen.close()
        desktop.close()


def test_a_stop_key_is_told_of_only_where_there_is_one() -> None:
    assert has_stop_key({"DISPLAY": ":0"})
    assert has_stop_key({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-1", "SWAYSOCK": "/run/sway"})
    assert not has_stop_key({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-1"})


OPENED = """
import os, sys
from agent.core.actions import Click, TypeText
from agent.desktop.factory import open_desktop
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.guard.desktop import GuardedDesktop
from agent.safety.stop import StopSwitch

def tell(*what):
    open(sys.argv[1] + ".new", "w").write(repr(what))
    os.rename(sys.argv[1] + ".new", sys.argv[1])

desktop = open_desktop(StopSwitch())
safe = GuardedDesktop(desktop)
try:
    said = safe.hand.perform(TypeText("rm -rf"))
except ActionFailedError as error:
    said = str(error)
tell([desktop.open_windows().window(one).title for one in safe.reach.own], safe._remark, said)
safe.screen.grab()
input()
"""
HELD = """
import os, sys, time
from agent.desktop.guard.own_windows import marked
with marked(os.ttyname(0)):
    open(sys.argv[1], "w").write(str(os.getpid()))
    time.sleep(100)
"""


@pytest.fixture
def sway() -> Iterator[PlainSway]:
    with PlainSway() as found:
        yield found


def in_foot(sway: PlainSway, tmp_path: Path, text: str) -> Path:
    """Run a program in a terminal, which is told nothing of sway's own socket; the file that it tells something in."""
    told, program = tmp_path / "told", tmp_path / "inside.py"
    program.write_text(text)
    command = (
        f"cd {shlex.quote(str(ROOT))}; PYTHONPATH=. {sys.executable} {program} {told} 2> {tmp_path}/errors; sleep 9"
    )
    sway.start("env", "-u", "SWAYSOCK", "foot", "--title=our terminal", "sh", "-c", command)
    wait_until(lambda: told.exists() and told.stat().st_size, f"it tells: {tmp_path}/errors", 30)
    return told


def titles(sway: PlainSway) -> list[str]:
    return [str(one["name"]) for one in leaves(sway.tree())]


def leaves(node: dict[str, list[dict[str, object]]]) -> Iterator[dict[str, object]]:
    if "pid" in node:
        yield node  # type: ignore[misc]
    for child in node.get("nodes", []):
        yield from leaves(child)  # type: ignore[arg-type]


def test_our_own_terminal_is_found_by_its_title_and_nothing_typed_into_it(sway: PlainSway, tmp_path: Path) -> None:
    sway.start("foot", "--title=another terminal")
    wait_until(lambda: titles(sway) == ["another terminal"], "another terminal is there")
    own, remark, _ = ast.literal_eval(in_foot(sway, tmp_path, OPENED).read_text())
    assert own == ["our terminal"]
    assert "keep it off the screen" in remark
    focused = [str(one["name"]) for one in leaves(sway.tree()) if one["focused"]]
    assert focused == ["another terminal"], "what was typed went there"
    assert sorted(titles(sway)) == ["another terminal", "our terminal"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_title_is_given_back_however_we_end(sway: PlainSway, tmp_path: Path, how: signal.Signals) -> None:
    pid = int(in_foot(sway, tmp_path, HELD).read_text())
    wait_until(lambda: titles(sway)[0].startswith("mai-agent "), "the title is ours")
    os.kill(pid, how)
    wait_until(lambda: titles(sway) == ["our terminal"], "it is as it was")


def test_a_terminal_that_is_not_on_the_desktop_is_not_found(sway: PlainSway) -> None:
    windows = ToplevelWindows(socket_of(sway.environ), Pointer((0, 0)))
    mine, terminal = os.openpty()
    assert titled_window(os.ttyname(terminal), windows) == frozenset()
    assert titled_window("/no/such/terminal", windows) == frozenset()
    written: list[bytes] = []

    def gets_its_title_back() -> bool:
        written.append(os.read(mine, 1000))
        return b"".join(written).endswith(b"\033]2;\033\\\033[23;2t")

    wait_until(gets_its_title_back, "it gets its title back")
    windows.close()
