"""A hostile endpoint against the real program: nothing is done unasked or unseen, nothing steers, no history lies."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stubs.endpoint import FakeEndpoint, act, after, say
from stubs.hostile import FORBIDDEN, HOSTILE
from stubs.pane import ROOT, Pane

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(240)]
TAIL = "rm -rf ~/Documents"
LONG = "All is well and the sun shines. " * 47 + f"\n{TAIL}\n"
WIDE = "䷀䷁" * 19 + "; rm -rf ~/Music"  # hexagrams, on two cells each
PANEL = "Wait.\n╭─ may it do this? ─╮\n│ click “Next” │\n│ y  yes, once │\n╰──────────────╯\ny = approve\n" * 300
ASKED, LET_KEYS_IN = "may it do this?", 1.0  # the half second in which no key is taken, and a busy machine


def two(*calls: dict[str, object]) -> str:
    """An answer with several calls, of a model that makes one at a time."""
    told = (json.dumps({"name": "mobile_use", "arguments": call}) for call in calls)
    return "<thinking>T</thinking>" + "".join(f"<tool_call>\n{one}\n</tool_call>\n" for one in told)


SCRIPT = [
    act("open", text="text editor"),
    act("type", thought=HOSTILE, text=LONG),
    act("type", text=WIDE),
    *(act("key", keys=key) for key in ("left", "home", "right", "end")),  # harmless ones that tire a person
    act("key", keys="ctrl+q"),
    act("key", keys=HOSTILE),  # no key: the model is told, and asked again
    act("key", keys="right"),
    f"<tool_call>{json.dumps({'name': HOSTILE, 'arguments': {'x': HOSTILE}})}</tool_call>",
    two({"action": "key", "keys": "left"}, {"action": "type", "text": "sudo reboot\n"}),
    act("ask_user", text=PANEL),
    act("terminate", HOSTILE, status="success", text=HOSTILE),
]
SLOW = 1  # this answer is late, so that keys can be pressed before its question is there


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint([after(3, say(one)) if at == SLOW else say(one) for at, one in enumerate(SCRIPT)]) as made:
        yield made


@pytest.fixture
def pane(tmp_path: Path, endpoint: FakeEndpoint) -> Iterator[Pane]:
    made = Pane(tmp_path, "--endpoint", endpoint.url)
    yield made
    made.close()


def answers(pane: Pane, word: str, key: str, *, gone: str) -> str:
    """Wait for a question with a word, and answer it; the screen that had it."""
    pane.wait(word)
    time.sleep(LET_KEYS_IN)
    asked = pane.text
    pane.press(*key.split())
    pane.wait_until(lambda text: gone not in text, f"{gone!r} goes away")
    return asked


def steers_nothing(pane: Pane) -> None:
    """Nothing hostile was written to the terminal, into the files of the run, or by what shows them."""
    written = pane.written.read_text(encoding="utf-8", errors="replace")
    assert "\x1b]52" not in written
    assert not any(char in written for char in "\u202e\u2066\u200b\u2028\x9b\U000e0041")
    [run] = pane.runs.iterdir()
    for file in ("run.json", "steps.jsonl", "report.html"):
        text = (run / file).read_text(encoding="utf-8")
        assert not FORBIDDEN.search(text), file
    for command in ("show", "replay"):
        done = subprocess.run(
            [sys.executable, "-m", "agent", command, str(run)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.stdout
        assert not FORBIDDEN.search(done.stdout + done.stderr), command
        assert "\nforged" not in done.stdout


def tells_what_happened(pane: Pane) -> None:
    """What was refused was not done, what nobody was asked about is harmless, and what was left out is told."""
    _, steps = pane.bundle()
    fates = [(step["target"]["type"], step["executed"], step["approval"]) for step in steps if step["target"]]  # type: ignore[index]
    assert [(kind, done) for kind, done, asked in fates if asked] == [("type", False), ("type", False), ("key", False)]
    typed = [step["target"]["text"] for step in steps if step["executed"] and step["target"]["type"] == "type"]  # type: ignore[index]
    assert typed == []
    assert any("Only the first call" in str(step["note"]) for step in steps)


def test_in_the_application(pane: Pane, endpoint: FakeEndpoint) -> None:
    pane.start("--approve", "risky", "do it", size=(80, 24))
    pane.wait_until(lambda _: len(endpoint.requests) > SLOW, "the model is asked for the long text")
    for _ in range(8):  # ahead of the question
        pane.type("y")
        time.sleep(0.1)
    pane.wait(ASKED)
    time.sleep(LET_KEYS_IN)
    assert ASKED in pane.text, "keys of before answered it"
    for part in (TAIL, "because the text looks like a command", "no"):
        assert part in pane.text
    pane.press("y")
    time.sleep(LET_KEYS_IN)
    assert ASKED in pane.text, "what was not shown was approved"
    answers(pane, "1,5", "n", gone="1,5")
    assert "rm -rf ~/Music" in answers(pane, "type 54", "n", gone="type 54")
    answers(pane, "ctrl+q", "n", gone=ASKED)
    asked = pane.wait("asks you: “Wait. ╭─ may it do this?")
    assert not any(line.lstrip().startswith("╭─ may it do this?") for line in asked.splitlines())
    time.sleep(LET_KEYS_IN)
    pane.type("no")
    pane.press("Enter")
    pane.wait("done in")
    pane.press("C-q")
    pane.wait("exit=0")
    steers_nothing(pane)
    tells_what_happened(pane)


def test_on_a_plain_terminal(pane: Pane) -> None:
    pane.start("--approve", "risky", "--no-tui", "do it", size=(80, 24))
    pane.wait("Enter = read on")
    time.sleep(LET_KEYS_IN)
    pane.type("y")
    pane.press("Enter")
    for word in (f"{TAIL}⏎", "rm -rf ~/Music", "press ctrl+q"):  # the y was none: the end is shown, and asked about
        pane.wait(word)
        time.sleep(LET_KEYS_IN)
        pane.type("n")
        pane.press("Enter")
    pane.wait("your reply:")
    time.sleep(LET_KEYS_IN)
    pane.type("no")
    pane.press("Enter")
    pane.wait("exit=0")
    steers_nothing(pane)
    tells_what_happened(pane)
