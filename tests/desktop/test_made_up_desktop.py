"""What every desktop gets for free, on one that knows no display system."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stubs.made_up_desktop import MadeUpDesktop, MadeUpInput

from agent.core.actions import Action, Click, Drag, HoldKeys, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.protocol.hand import ActionFailedError, CornerError
from agent.safety.stop import StopSwitch
from foundation.errors import StoppedError

ROOT = Path(__file__).resolve().parents[2]
#: What would put the terminal of these tests elsewhere.
ELSEWHERE = ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY", "TMUX", "STY")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a whole run on it said and did, in a process in which no display system can be imported."""
    environ = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    environ |= {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "XDG_STATE_HOME": str(tmp_path_factory.mktemp("state"))}
    done = subprocess.run(
        [sys.executable, "-m", "stubs.made_up_desktop"], env=environ, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_run_is_carried_out_without_any_display_system(run: dict[str, Any]) -> None:
    assert run["outcome"] == "done"
    assert run["imported"] == []
    assert run["closed"] == [True, True, True]


def test_our_own_window_is_blank_and_takes_no_click(run: dict[str, Any]) -> None:
    assert run["pixels"] == [[128, 128, 128], [255, 255, 255]]
    assert "mai-agent's own window" in run["acted"][0]
    assert run["events"] == ["paste hello", "paste sudo reboot", "move 179,128", "+left", "-left"]


def test_text_goes_to_the_window_used_before_ours_also_after_a_question(run: dict[str, Any]) -> None:
    assert run["acted"][1:3] == ["type “hello” · Untitled", "type “sudo reboot” · Untitled"]
    assert len(run["asked"]) == 1
    assert run["focus"] == "right"


def test_what_was_decided_for_a_window_that_moved_meanwhile_is_not_carried_out(run: dict[str, Any]) -> None:
    assert run["acted"][3] == "“Untitled” moved meanwhile: look again"
    assert run["acted"][4].startswith("click")


def test_the_person_is_told_what_it_cannot_do(run: dict[str, Any]) -> None:
    assert any("no stop key" in warning for warning in run["warned"])
    assert "There is no sound." in run["warned"]


def test_it_is_given_what_it_needs_to_notice_the_person(run: dict[str, Any]) -> None:
    assert run["watched"] == ["f1", True, True, False]


A, B = DesktopPoint(10, 20), DesktopPoint(110, 20)


@pytest.mark.parametrize(
    ("action", "events"),
    [
        (Click(A, count=2), ["move 10,20", "+left", "-left", "+left", "-left"]),
        (Scroll(None, -1, 2), ["wheel 0,1", "wheel 0,1", "wheel -1,0"]),
        (PressKeys(("ctrl", "w")), ["+ctrl", "+w", "-w -ctrl"]),
        (HoldKeys(("shift",), 0.01), ["+shift", "-shift"]),
        (TypeText("a\nb\n\n"), ["paste a\nb", "+enter", "-enter", "+enter", "-enter"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_action_is_made_of_single_events(action: Action[DesktopPoint], events: list[str]) -> None:
    desktop = MadeUpDesktop(StopSwitch())
    desktop.hand.perform(action)
    assert desktop.input.events == events


def test_a_drag_is_many_movements_with_the_button_down() -> None:
    desktop = MadeUpDesktop(StopSwitch())
    desktop.hand.perform(Drag(A, B))
    events = desktop.input.events
    assert (events[:2], events[-2:]) == (["move 10,20", "+left"], ["move 110,20", "-left"])
    assert len(events) > 10


def test_a_key_that_is_not_there_presses_none_of_its_chord() -> None:
    desktop = MadeUpDesktop(StopSwitch())
    with pytest.raises(ActionFailedError, match="no key 'f13'"):
        desktop.hand.perform(PressKeys(("ctrl", "f13")))
    assert desktop.input.events == []


def test_whatever_goes_wrong_nothing_stays_down(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = StopSwitch()
    desktop = MadeUpDesktop(stop)
    press = MadeUpInput.press

    def press_in_a_corner(self: MadeUpInput, one: Any) -> None:
        press(self, one)
        if one.name == "w":
            raise CornerError

    monkeypatch.setattr(MadeUpInput, "press", press_in_a_corner)
    with pytest.raises(StoppedError, match="corner"):
        desktop.hand.perform(PressKeys(("ctrl", "w")))
    assert desktop.input.events == ["+ctrl", "+w", "-w -ctrl"]
    assert stop.reason == "the pointer was moved into a corner of the screen"
    assert not desktop.hand.rest.busy
