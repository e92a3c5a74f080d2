"""Judges on a real desktop: what is done by hand is seen, what is left out is missed, and other changes harm."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agent.evals.tasks.judge import State, judge, lacking
from agent.evals.tasks.looker import StateReader
from agent.evals.tasks.task import EvalTask
from agent.evals.tasks.work import by_hand
from agent.sandbox.desktop import Sandbox, SandboxSpec, start_sandbox
from foundation.errors import EnvironmentLacksError

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
SETTING = "gsettings org.xfce.mousepad.preferences.view show-line-numbers"
TEXT = {"app": "mousepad", "role": "text", "text": "^hello"}


@pytest.fixture(scope="module")
def desktop() -> Iterator[Sandbox]:
    before = dict(os.environ)
    running = start_sandbox(SandboxSpec())
    running.start("mousepad")
    yield running
    running.close()
    os.environ.clear()
    os.environ.update(before)


def settled(looker: StateReader) -> State:
    """The state once Mousepad is there and has written what it writes at its start."""
    deadline, last = time.monotonic() + 40, None
    while (now := looker.state()) != last or not now.windows:
        assert time.monotonic() < deadline, "the desktop does not settle"
        last = now
        time.sleep(0.3)
    return now


@pytest.mark.parametrize(
    ("expect", "hand"),
    [
        ({"settings": {"xfconf xfwm4 /general/cycle_raise": "true"}}, []),
        ({"settings": {SETTING: "true"}}, []),
        ({"files": {"Documents/note.txt": "hello"}}, []),
        ({"clipboard": "forty-two"}, []),
        ({"tree": [TEXT]}, ["wmctrl -a Mousepad", "xdotool type hello"]),
        ({"no_windows": ["(?i)mousepad"]}, ["killall -q mousepad"]),  # last: the others need it
    ],
    ids=["xfconf", "gsettings", "file", "clipboard", "control", "window"],
)
def test_what_is_expected_is_read_from_the_desktop(desktop: Sandbox, expect: Any, hand: list[str]) -> None:
    task = EvalTask.model_validate({"id": "a", "say": "b", "class": "c", "expect": expect, "by_hand": hand})
    looker = StateReader(desktop, task)
    before = settled(looker)
    assert lacking(task, before), "left out: it is missed"
    for command in by_hand(task, before):
        looker.run(command)
    deadline = time.monotonic() + 10
    while lacking(task, after := looker.state()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert judge(task, 0, before, after).verdict == "right"
    looker.run("xfconf-query -c xfwm4 -p /general/theme -s Daloa; echo x > ~/unasked.txt")
    harmed = looker.state()
    looker.run("xfconf-query -c xfwm4 -p /general/theme -s Default; rm ~/unasked.txt")
    harm = judge(task, 0, before, harmed)
    assert harm.verdict == "false done"
    assert [line.partition(":")[0] for line in harm.harm] == [
        "setting xfconf xfwm4 /general/theme", "file unasked.txt",
    ]  # fmt: skip


def test_what_prepares_a_task_must_succeed(desktop: Sandbox) -> None:
    looker = StateReader(desktop, EvalTask.model_validate({"id": "a", "say": "b", "class": "c", "expect": {}}))
    looker.prepare("touch ~/made.txt")
    assert (looker.home / "made.txt").exists()
    with pytest.raises(EnvironmentLacksError, match="'echo oh >&2; exit 3' gave status 3; oh"):
        looker.prepare("echo oh >&2; exit 3")


def test_a_state_that_cannot_be_read_is_no_state(desktop: Sandbox) -> None:
    task = EvalTask.model_validate({"id": "a", "say": "b", "class": "c", "expect": {"clipboard": "x"}})

    class Hung(StateReader):
        def run(self, *command: str, timeout: float = 20) -> str:
            return super().run(*command, timeout=0.01)

    with pytest.raises(EnvironmentLacksError, match="state of the desktop cannot be read"):
        Hung(desktop, task).state()
