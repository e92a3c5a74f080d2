"""A bundle replays without a model."""

import json
from pathlib import Path

import pytest
from stubs.desk import FakePerson, recorded
from stubs.endpoint import DONE, Behaviour, FakeEndpoint, act, say

from agent.core.actions import Click, Drag, Scroll
from agent.core.geometry import DesktopPoint
from agent.families.registry import get_family
from agent.record.read import read_bundle
from agent.record.replay import replay
from agent.safety.policy import Policy
from foundation.errors import UsageError

SCRIPT = [
    act("click", coordinate=[0, 0]),
    act("double_click", coordinate=[998, 999]),
    act("type", text="sudo rm -rf /\n"),
    act("drag", start_coordinate=[1, 2], end_coordinate=[997, 640]),
    act("scroll", direction="down", amount=3),
    act("key", keys="alt+f4"),
    act("ask_user", text="Which?"),
    '<tool_call>{"name": "weather", "arguments": {}}</tool_call>',
    "no call at all",
    act("open", text="Files"),
    DONE,
]


async def test_replaying_gives_the_recorded_targets(tmp_path: Path) -> None:
    bundle = read_bundle(await recorded(tmp_path, SCRIPT, person=FakePerson(["That one"])))
    steps = list(replay(bundle, get_family("mai-ui"), Policy.load("risky")))
    assert [step.step for step in steps] == list(range(1, 11))
    assert all(step.same for step in steps)
    assert all(step.target is not None and step.failure is None for step in steps)
    drag, wheel = (steps[number].target for number in (3, 4))
    assert isinstance(drag, Drag)
    assert wheel == Scroll(drag.end, 0, 3), "the wheel turned where the drag left the pointer"
    asking = [step.step for step in steps if step.reason_to_ask]
    assert asking == [3, 6, 8]  # a command, closing keys, a tool


async def test_a_target_that_differs_from_the_record_is_noticed(tmp_path: Path) -> None:
    path = await recorded(tmp_path, SCRIPT, person=FakePerson(["That one"]))
    lines = [json.loads(line) for line in (path / "steps.jsonl").read_text().splitlines()]
    lines[1]["actions"][0]["target"]["point"][0] += 1
    (path / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    steps = list(replay(read_bundle(path), get_family("mai-ui"), Policy.load("never")))
    assert [step.step for step in steps if not step.same] == [2]


async def test_a_run_that_ended_unparsable_replays_its_failure(tmp_path: Path) -> None:
    bundle = read_bundle(await recorded(tmp_path, ["junk"] * 3))
    assert bundle.outcome == "unparsable"
    assert len(bundle.steps[0].answers) == 3
    (step,) = replay(bundle, get_family("mai-ui"), Policy.load("never"))
    assert step.target is None
    assert step.failure
    assert step.same


async def test_places_that_were_found_by_a_grounder_or_a_closer_look_are_those_of_the_record(tmp_path: Path) -> None:
    def plan(**call: object) -> Behaviour:
        return say(json.dumps({"thought": "Next.", **call}))

    found = say('<answer>{"coordinate": [500, 250]}</answer>')
    script = [plan(action="click", target="Save"), plan(action="terminate", status="success")]
    with FakeEndpoint([found]) as grounder:
        path = await recorded(tmp_path, script, family="planner", grounder=grounder)
    click, _ = replay(read_bundle(path), get_family("planner"), Policy.load("never"))
    assert click.target == Click(DesktopPoint(128, 64))
    assert click.same
    path = await recorded(tmp_path, [act("click", coordinate=[0, 0]), found, DONE], zoom="always")
    click, _ = replay(read_bundle(path), get_family("mai-ui"), Policy.load("never"))
    assert click.target == Click(DesktopPoint(64, 32))
    assert click.same


async def test_a_damaged_step_is_named(tmp_path: Path) -> None:
    path = await recorded(tmp_path, SCRIPT, person=FakePerson(["That one"]))
    lines = (path / "steps.jsonl").read_text().splitlines()
    lines[2] = '{"step": 3}'
    (path / "steps.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(UsageError, match="Step 3"):
        list(replay(read_bundle(path), get_family("mai-ui"), Policy.load("never")))
