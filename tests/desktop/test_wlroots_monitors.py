"""Scaled, turned and several monitors on Wayland: what is captured is where the pointer goes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stubs.benches import ROOT, WlrootsBench, bench_of
from stubs.sway import PlainSway

from agent.core.actions import Click, Move
from agent.core.geometry import CapturePoint, DesktopPoint, Region, Size
from agent.desktop.factory import check_display, open_desktop
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
