"""Every way to stop a real run, with something held down: it is let go at once, also where the run itself hangs.

What is promised is a tenth of a second, and measured with the X server's own clock by scripts/bench/stop.py. Machines
that run tests are busy with other things, so a quarter of a second is asked for here.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stubs.display import PlainDisplay, wait_until
from stubs.endpoint import DONE, FakeEndpoint, act, say, silent
from stubs.program import PROGRAM, ROOT, Program, ended

pytestmark = pytest.mark.e2e

PROMISED = 0.25
HOLD = act("hold_key", keys="shift", seconds=60)
BUTTON_DOWN = act("left_mouse_down", coordinate=[300, 300])
DRAG = act("drag", start_coordinate=[200, 200], end_coordinate=[800, 800])
CHORD = ("xdotool", "key", "ctrl+alt+shift+Escape")


@pytest.fixture
def display() -> Iterator[PlainDisplay]:
    with PlainDisplay() as found:
        yield found


def start(home: Path, display: PlainDisplay, endpoint: FakeEndpoint) -> Program:
    return Program(home, display.environ, "--endpoint", endpoint.url, "--approve", "never", "do the task")


def stop_command(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """`mai-agent stop` in another terminal of the same person."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "DISPLAY"))}
    return subprocess.run(
        [*PROGRAM, "stop", *arguments], env={**kept, "HOME": str(home), "PYTHONPATH": str(ROOT)}, cwd=home,
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


def let_go_after(display: PlainDisplay, stop: Callable[[], object]) -> float:
    """Seconds from the end of `stop` to the moment when nothing is held down any more."""
    wait_until(display.pressed, "something is pressed")
    stop()
    began = time.monotonic()
    while display.pressed() and time.monotonic() - began < 30:
        time.sleep(0.002)
    return time.monotonic() - began


def test_the_stop_command_ends_a_run_that_still_starts_its_sandbox(tmp_path: Path, display: PlainDisplay) -> None:
    entries = tmp_path / ".local/state/mai-agent/running"
    with Program(tmp_path, display.environ, "--sandbox", "--engine", "literal", "open settings") as program:
        wait_until(lambda: list(entries.glob("starting-*.json")), "it starts")
        done = stop_command(tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"stopped starting-{program.process.pid} (open settings)\n"
        assert program.wait() == 130
        assert program.left_over() == []
        assert list(program.runs.glob("*")) == []
    assert list(entries.glob("*")) == []


@pytest.mark.parametrize("answer", [HOLD, DRAG], ids=["a held key", "a drag"])
def test_the_stop_command_lets_everything_go_and_waits_for_the_end(
    tmp_path: Path, display: PlainDisplay, answer: str
) -> None:
    with FakeEndpoint([say(answer)] * 9) as endpoint, start(tmp_path, display, endpoint) as program:
        wait_until(display.pressed, "something is pressed")
        done = stop_command(tmp_path)
        assert display.pressed() == []
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"stopped {program.bundle.path.name} (do the task)\n"
        ended(program, 130, "stopped", "a signal asked for it.", display)
        assert stop_command(tmp_path).stdout == "Nothing is running.\n"


@pytest.mark.slow
def test_the_stop_command_can_name_one_of_several_runs(tmp_path: Path, display: PlainDisplay) -> None:
    with (
        FakeEndpoint(lambda _: silent()) as endpoint,
        start(tmp_path, display, endpoint) as first,
        start(tmp_path, display, endpoint) as second,
    ):
        wait_until(lambda: len(list(first.runs.glob("*"))) == 2 and len(endpoint.requests) == 2, "both ask")
        [name] = [path.name for path in first.runs.glob("*") if f'"pid": {first.process.pid}' in
                  (path / "run.json").read_text()]  # fmt: skip
        assert stop_command(tmp_path, name).returncode == 0
        assert first.wait() == 130
        assert second.process.poll() is None
        assert stop_command(tmp_path).returncode == 0
        assert second.wait() == 130


@pytest.mark.slow
@pytest.mark.parametrize("answer", [HOLD, DRAG], ids=["a held key", "a drag"])
def test_the_stop_key_works_while_the_hand_is_busy(tmp_path: Path, display: PlainDisplay, answer: str) -> None:
    with FakeEndpoint([say(answer)] * 9) as endpoint, start(tmp_path, display, endpoint) as program:
        assert let_go_after(display, lambda: display.call(*CHORD)) < PROMISED
        ended(program, 130, "stopped", "the stop key was pressed", display)


def test_the_stop_key_works_while_the_model_thinks(tmp_path: Path, display: PlainDisplay) -> None:
    with FakeEndpoint([silent()]) as endpoint, start(tmp_path, display, endpoint) as program:
        wait_until(lambda: endpoint.requests, "the model is asked")
        display.call(*CHORD)
        ended(program, 130, "stopped", "the stop key was pressed", display)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["sleep", "spin", "gil"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_whose_loop_hangs_lets_go_all_the_same(
    tmp_path: Path, display: PlainDisplay, monkeypatch: pytest.MonkeyPatch, how: str, number: signal.Signals
) -> None:
    bench = str(ROOT / "scripts" / "bench" / "stop.py")  # runs mai-agent, and makes its event loop hang for 5 s
    monkeypatch.setattr("stubs.program.PROGRAM", (sys.executable, bench, "--child", how, "--"))
    with FakeEndpoint([say(HOLD)]) as endpoint, start(tmp_path, display, endpoint) as program:
        wait_until(display.pressed, "something is pressed")
        time.sleep(0.5)  # it hangs a moment after the hand has begun
        assert let_go_after(display, lambda: program.signal(number)) < PROMISED
        assert program.process.poll() is None, "it should still hang"
        assert program.wait() == 130
        assert program.bundle.outcome == "stopped"


def test_a_run_that_is_killed_outright_leaves_nothing_pressed(tmp_path: Path, display: PlainDisplay) -> None:
    with FakeEndpoint([say(HOLD), say(DONE)]) as endpoint, start(tmp_path, display, endpoint) as program:
        assert let_go_after(display, lambda: program.signal(signal.SIGKILL)) < PROMISED


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_button_that_is_down_while_the_model_thinks_is_let_go(
    tmp_path: Path, display: PlainDisplay, number: signal.Signals
) -> None:
    with FakeEndpoint([say(BUTTON_DOWN), silent()]) as endpoint, start(tmp_path, display, endpoint) as program:
        wait_until(lambda: len(endpoint.requests) == 2, "the model thinks")
        assert display.pressed() == ["button 1"]
        assert let_go_after(display, lambda: program.signal(number)) < PROMISED
        assert program.wait() == (-9 if number == signal.SIGKILL else 130)
    assert display.pressed() == []


@pytest.mark.slow
def test_a_key_that_is_kept_down_is_up_while_the_model_thinks(tmp_path: Path, display: PlainDisplay) -> None:
    keys = [act("key_down", keys="ctrl"), act("click", coordinate=[300, 300])]
    with FakeEndpoint([*map(say, keys), silent()]) as endpoint, start(tmp_path, display, endpoint) as program:
        wait_until(lambda: len(endpoint.requests) == 3, "the model thinks")
        assert display.pressed() == []
        program.signal(signal.SIGINT)
        assert program.wait() == 130
