"""The real application in a real terminal (tmux), driving a real desktop: read from the pane and from the system."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stubs.pane import Pane

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
DARK = "open settings and enable dark mode"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Pane]:
    made = Pane(tmp_path)
    yield made
    made.close()


@pytest.mark.slow
def test_a_person_approves_every_step_and_dark_mode_is_on(terminal: Pane) -> None:
    terminal.start("--approve", "ask", DARK)
    for number in range(1, 5):
        text = terminal.wait_until(
            lambda text, number=number: ("may it do this?" in text and f"step {number} of" in text) or " done " in text,
            f"a question in step {number}, or the end",
        )
        if " done " in text:
            break
        time.sleep(1.0)  # the half second in which no key is taken
        terminal.press("y")
        terminal.wait_until(lambda text: "may it do this?" not in text, "the question goes away")
    terminal.wait(" done ", "Dark mode: off -> on")
    meta, steps = terminal.bundle()
    assert meta["outcome"] == "done"
    allowed = [step["approval"] for step in steps if step["executed"]]
    assert allowed
    assert all(approval["allowed"] and approval["by"] == "you" for approval in allowed)  # type: ignore[index]
    terminal.press("C-q")
    terminal.wait("exit=0", "recorded in")


@pytest.mark.slow
def test_pause_tell_change_and_stop(terminal: Pane) -> None:
    terminal.start("--approve", "ask")
    terminal.wait("What shall I do?")
    terminal.type("open mousepad and type 'hello'")
    terminal.press("Enter")
    terminal.wait("may it do this?", "mousepad")
    time.sleep(1.0)
    terminal.press("y")
    terminal.wait("may it do this?", "type 5 characters", "hello")
    time.sleep(1.0)
    terminal.press("e")
    terminal.wait("change hello")
    terminal.type(" world")
    terminal.press("Space", "Enter")
    terminal.wait_until(lambda text: "may it do this?" not in text, "the changed action is done")
    terminal.wait_until(lambda text: " done " in text or "may it do this?" in text, "it goes on")
    _, steps = terminal.bundle()
    typed = [step for step in steps if step["target"] and step["target"]["type"] == "type"]  # type: ignore[index]
    assert typed[0]["approval"]["instead"] == {"type": "type", "text": "hello world "}  # type: ignore[index]
    terminal.press("C-q")
    terminal.wait("exit=")


def test_escape_twice_stops_and_the_bundle_says_so(terminal: Pane) -> None:
    terminal.start("--approve", "ask", DARK)
    terminal.wait("may it do this?")
    terminal.press("Escape")
    time.sleep(0.3)
    terminal.press("Escape")
    terminal.wait("stopped", "Esc Esc")
    meta, _ = terminal.bundle()
    assert meta["outcome"] == "stopped"
    assert meta["status"] == 130
    terminal.press("C-q")
    terminal.wait("exit=130")


@pytest.mark.slow
def test_a_pause_holds_the_run_until_it_goes_on(terminal: Pane) -> None:
    terminal.start(DARK)
    terminal.wait("step 1 of")
    terminal.press("Space")
    terminal.wait_until(lambda text: "paused" in text or "may it do this?" in text, "it pauses")
    held = terminal.text
    time.sleep(1.5)
    assert "step 4" not in terminal.text, held
    terminal.press("Space")
    terminal.wait(" done ", "Dark mode: off -> on")
    terminal.press("C-q")
    terminal.wait("exit=0")


@pytest.mark.slow
def test_a_small_terminal_can_do_it_all(terminal: Pane) -> None:
    terminal.start("--approve", "ask", DARK, size=(40, 12))
    terminal.wait("ASKS YOU")
    time.sleep(1.0)
    terminal.press("y")
    terminal.wait("step 2")
    terminal.press("C-c")
    terminal.wait("stopped")
    terminal.press("C-c")
    terminal.wait("exit=130")
