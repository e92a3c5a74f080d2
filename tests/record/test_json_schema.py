"""The documented schemas of runs, steps and events: they are what the code says, and what it writes keeps to them."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from stubs.desk import Desk, FakePerson
from stubs.endpoint import DONE, FakeEndpoint, act, say
from stubs.events import run_of, started

from agent.console.printers import JsonPrinter
from agent.events.run_events import Event
from agent.record.bundle import Recorder
from agent.safety.policy import Approval

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from schemas import schemas

DOCUMENTED = Path(__file__).parents[2] / "docs" / "schema"
RECORDED = Path(__file__).parent / "data" / "format-3"
SCRIPT = [
    act("click", coordinate=[10, 20]),
    "no call at all",
    act("drag", start_coordinate=[1, 2], end_coordinate=[997, 640]),
    act("type", text="sudo reboot\n"),
    act("ask_user", text="Which?"),
    act("key", keys="alt+f4"),
    act("open", text="Files"),
    DONE,
]


VALIDATORS = {name: Draft202012Validator(schema) for name, schema in schemas().items()}


def check(name: str, value: Any) -> None:
    VALIDATORS[name].validate(value)


async def run_with_everything(receive: Any) -> None:
    """A run with every kind of event."""
    yes, no = Approval(allowed=True, by="you", always=True), Approval(allowed=False, by="you", note="no")
    with FakeEndpoint([say(answer, cached=3) for answer in SCRIPT]) as endpoint:
        desk = Desk(endpoint, approve="risky", person=FakePerson(["That one"], [yes, no]))
        desk.steering.tell("use the other window")
        await desk.run(receive)


@pytest.mark.parametrize("name", ["run", "step", "event", "tasks-report", "task-verdict"])
def test_the_documented_schema_is_current(name: str) -> None:
    written = json.loads((DOCUMENTED / f"{name}.schema.json").read_text(encoding="utf-8"))
    assert written == schemas()[name], "write it anew: python scripts/schemas.py"
    Draft202012Validator.check_schema(written)


async def test_every_line_of_a_run_keeps_to_the_schema_of_events() -> None:
    out = io.StringIO()
    printer = JsonPrinter(out)
    for event in run_of(1):
        printer.handle(event)
    await run_with_everything(printer.handle)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    for line in lines:
        check("event", line)
    told = {line["event"] for line in lines}
    assert told >= {"RunStarted", "Observed", "ModelDelta", "Decided", "ApprovalAsked", "ApprovalGiven", "Acted"}
    assert told >= {"StepFinished", "Warned", "PersonSaid", "RunFinished"}
    for wrong in ({"event": "Unknown"}, {**lines[0], "schema": 1}, {**lines[1], "at": None}):
        with pytest.raises(ValidationError):
            check("event", wrong)


async def test_every_file_of_a_run_keeps_to_its_schema(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "do the task")
    events: list[Event] = [started()]
    await run_with_everything(events.append)
    for event in events:
        recorder.handle(event)
        check("run", json.loads((recorder.path / "run.json").read_text()))
    recorder.close()
    lines = (recorder.path / "steps.jsonl").read_text().splitlines()
    assert len(lines) == len(SCRIPT) - 1
    for line in lines:
        check("step", json.loads(line))
    with pytest.raises(ValidationError):
        check("step", json.loads(lines[0]) | {"actions": [{"target": {"type": "unknown"}}]})


@pytest.mark.parametrize("run", ["whole", "dry-run"])
def test_bundles_of_today_keep_to_the_schemas(run: str) -> None:
    check("run", json.loads((RECORDED / run / "run.json").read_text()))
    for line in (RECORDED / run / "steps.jsonl").read_text().splitlines():
        check("step", json.loads(line))
