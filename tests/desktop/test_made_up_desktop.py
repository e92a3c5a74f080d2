"""What every desktop gets for free, on one that knows no display system."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
    assert run["done"] == ["TypeText", "TypeText", "Click"]


def test_text_goes_to_the_window_used_before_ours_also_after_a_question(run: dict[str, Any]) -> None:
    assert run["acted"][1:3] == ["done", "done"]
    assert len(run["asked"]) == 1
    assert run["focus"] == "right"


def test_the_person_is_told_what_it_cannot_do(run: dict[str, Any]) -> None:
    assert any("no stop key" in warning for warning in run["warned"])
    assert "There is no sound." in run["warned"]


def test_it_is_given_what_it_needs_to_notice_the_person(run: dict[str, Any]) -> None:
    assert run["watched"] == ["f1", True, True, False]
