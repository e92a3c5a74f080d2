"""What `mai-agent doctor` says of a desktop: nothing is called good that was not tried, or did not arrive."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine
from PIL import Image
from stubs.display import PlainDisplay
from stubs.sway import PlainSway

from agent.commands import doctor as doctor_desktop
from agent.desktop.factory import portal_lacks
from agent.desktop.linux import session
from agent.desktop.portable import MssScreen
from agent.desktop.self_test import capture as seeing
from agent.screen.capture import Frame

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def display() -> Iterator[PlainDisplay]:
    with PlainDisplay() as found:
        yield found


@pytest.fixture
def on_display(display: PlainDisplay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", display.name)
    monkeypatch.setenv("XAUTHORITY", os.devnull)
    monkeypatch.setattr(doctor_desktop, "COUNTDOWN", 0)


def told(out: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in map(json.loads, out.splitlines())}


@pytest.mark.e2e
def test_without_a_trial_it_says_that_nothing_was_tried(mai: CommandLine, on_display: None) -> None:
    ran = mai("doctor", "--json")
    found = told(ran.out)
    assert ran.status == 0
    assert (found["input"]["ok"], found["trial"]["ok"]) == (None, None)
    assert "--try" in found["trial"]["remedy"]
    assert "untried trial: nothing was really clicked" in mai("doctor").out


@pytest.mark.e2e
def test_settings_that_cannot_be_read_and_a_folder_that_cannot_be_written_are_told_among_all_else(
    mai: CommandLine, on_display: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("max_steps = ")
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(config))
    ran = mai("doctor", "--json")
    found = told(ran.out)
    assert ran.status == 3
    assert (found["settings"]["ok"], found["screen"]["ok"] is False) == (False, False)
    assert str(config) in found["settings"]["detail"]
    config.write_text('runs = "/dev/null/runs"')
    assert told(mai("doctor", "--json").out)["runs"]["ok"] is False


@pytest.mark.e2e
def test_a_picture_of_one_colour_is_not_called_good(mai: CommandLine, on_display: None) -> None:
    screen = told(mai("doctor", "--json").out)["screen"]  # nothing is shown on this display
    assert screen["ok"] is None
    assert "every pixel is black" in screen["detail"]


def test_a_compositor_that_is_gone_is_said_of_the_screen_and_all_else_is_told_still(
    mai: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WAYLAND_DISPLAY", str(tmp_path / "gone"))
    ran = mai("doctor", "--json")
    found = told(ran.out)
    assert found["screen"]["ok"] is False
    assert "cannot be reached" in found["screen"]["detail"] and found["screen"]["remedy"]
    assert {"sandbox", "reading words", "local server"} <= set(found)


@pytest.mark.e2e
def test_a_trial_is_announced_and_told_line_by_line(mai: CommandLine, on_display: None) -> None:
    ran = mai("doctor", "--try", "--json")
    found = told(ran.out)
    assert ran.status == 0, ran.out
    tried = ("capture", "pointer", "left button", "drag", "wheel up", "text, Chinese", "chord", "clipboard", "released")
    assert [found[name]["ok"] for name in tried] == [True] * len(tried)
    assert "trial" not in found
    assert "do not touch them" in ran.err


@pytest.mark.e2e
def test_a_black_capture_ends_the_doctor_with_3(
    mai: CommandLine, on_display: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = MssScreen.grab

    def black(self: MssScreen) -> Frame:
        frame = seen(self)
        return Frame(Image.new("RGB", frame.image.size), frame.viewport, frame.taken_at)

    monkeypatch.setattr(MssScreen, "grab", black)
    monkeypatch.setattr(seeing, "TIMEOUT", 1.0)
    ran = mai("doctor", "--try")
    assert ran.status == 3
    assert "MISSING capture: the capture is empty: every pixel is black" in ran.out
    assert "ok      input" in ran.out  # it can be opened, and that is all that is said of it
    assert "untried input: mouse and keyboard were not tried" in ran.out


@pytest.mark.e2e
def test_ctrl_c_ends_it_before_anything_is_touched(display: PlainDisplay) -> None:
    display.call("xdotool", "mousemove", "111", "77")
    asked = subprocess.Popen(
        [sys.executable, "-m", "agent", "doctor", "--try"], env=display.environ | {"PYTHONPATH": str(ROOT)}, cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert asked.stderr is not None
    while "3 ..." not in (line := asked.stderr.readline()):
        assert line
    asked.send_signal(signal.SIGINT)
    out, _ = asked.communicate(timeout=60)
    assert asked.returncode == 130
    assert "capture" not in out
    assert display.pointer() == (111, 77)


@pytest.mark.slow
@pytest.mark.e2e
def test_a_trial_on_wayland_needs_nothing_of_x11() -> None:
    code = (
        "import sys; from agent.cli import main; status = main(['doctor', '--try', '--json']); "
        "names = {one.partition('.')[0] for one in sys.modules}; "
        "print(status, sorted(names & {'Xlib', 'mss', 'pyautogui'}), file=sys.stderr)"
    )
    with PlainSway(("resolution 1280x800 position 0 0 scale 1.5",)) as sway:
        done = subprocess.run(
            [sys.executable, "-c", code], env=sway.environ | {"PYTHONPATH": str(ROOT)}, cwd=ROOT, text=True,
            capture_output=True, timeout=100,
        )  # fmt: skip
    assert done.stderr.splitlines()[-1] == "0 []", done.stdout
    found = told(done.stdout)
    assert "at scale 1.5" in found["capture"]["detail"]


def test_a_portal_and_a_pipewire_that_do_not_answer_are_told(tmp_path: Path) -> None:
    environ = {"XDG_RUNTIME_DIR": str(tmp_path)}
    found = list(session.portal(environ, portal_lacks(environ)))
    assert [(one.name, one.ok) for one in found] == [("portal", False), ("PipeWire", False)]
    assert "cannot be asked" in found[0].detail and "xdg-desktop-portal" in found[0].remedy
