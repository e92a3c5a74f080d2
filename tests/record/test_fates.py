"""What became of an action is told apart everywhere: in events, records, the report, the screens and printed lines."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stubs.desk import Desk, FakePerson
from stubs.endpoint import DONE, FakeEndpoint, act, say, texts
from stubs.events import started
from stubs.several import Several

from agent.cli import main
from agent.console.printers import JsonPrinter, PlainPrinter
from agent.core.actions import PressKeys
from agent.events.fates import WORDS, Fate
from agent.events.run_events import ApprovalGiven, Dropped, Event
from agent.record.bundle import Recorder
from agent.record.read import read_bundle
from agent.record.report.view import view_step
from agent.safety.policy import Approval
from agent.tui.recorded import view_of
from agent.tui.translate import Translator
from agent.tui.view import RunView

SUDO = "sudo rm -rf /\n"
YES = Approval(allowed=True, by="you")
CHANGED = Approval(allowed=True, by="you", instead=PressKeys(("alt", "f4")))
SKIPPED = Approval(allowed=False, by="you", skip=True)
TOLD = Approval(allowed=False, by="you", note="use the menu")
REFUSED = Approval(allowed=False, by="you")
ANSWERS = [YES, CHANGED, SKIPPED, TOLD, REFUSED]
FATES: list[Fate] = ["done", "done", "skipped", "told", "refused", "said"]
COMMANDS = "(rule “commands”)"
CLOSING = "(rule “closing keys”)"


@pytest.fixture
async def ran(tmp_path: Path) -> tuple[list[Event], Path, FakeEndpoint]:
    """A run in which every step is answered in another way: its events and its bundle."""
    script = [*(act("type", text=SUDO) for _ in ANSWERS), DONE]
    return await carried_out(tmp_path, script, ANSWERS)


async def carried_out(folder: Path, script: list[str], answers: list[Approval], **more: Any) -> Any:
    with FakeEndpoint([say(item) for item in script]) as endpoint:
        desk = Desk(endpoint, approve="risky", person=FakePerson(approvals=answers), **more)
        recorder = Recorder(folder / "runs", "rename it")
        begun: list[Event] = [replace(started("rename it"), bundle=str(recorder.path))]
        recorder.handle(begun[0])
        events = [*begun, *(await desk.run(recorder.handle))]
        recorder.close()
    return events, recorder.path, endpoint


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "steps.jsonl").read_text().splitlines()]


def test_events_tell_the_answer_by_its_kind_and_what_was_dropped(ran: Any) -> None:
    events, _, _ = ran
    given = [event for event in events if isinstance(event, ApprovalGiven)]
    assert [event.answer for event in given] == ["allowed", "changed", "skipped", "told", "refused"]
    assert [CLOSING in event.instead_reason for event in given] == [False, True, False, False, False]
    assert [(one.step, one.why) for one in events if isinstance(one, Dropped)] == [
        (3, "skipped"), (4, "told"), (5, "refused"),
    ]  # fmt: skip


def test_the_record_holds_each_fate_and_the_proposal_beside_the_change(ran: Any) -> None:
    _, path, _ = ran
    steps = lines_of(path)
    assert [step["actions"][0]["fate"] for step in steps] == FATES
    assert [step["fate"] for step in steps] == FATES
    changed = steps[1]["actions"][0]
    assert changed["target"] == {"type": "type", "text": SUDO}
    assert changed["approval"]["instead"] == {"type": "key", "keys": ["alt", "f4"]}
    assert COMMANDS in changed["approval"]["reason"]
    assert CLOSING in changed["approval"]["instead_reason"]
    assert CLOSING not in changed["approval"]["reason"]


def test_the_model_is_told_each_in_its_own_words(ran: Any) -> None:
    _, path, endpoint = ran
    notes = [step["note"] or "" for step in lines_of(path)]
    assert "changed your action: press alt+f4" in notes[1]
    assert "wants this skipped" in notes[2]
    assert "did not allow this. The person says: “use the menu”." in notes[3]
    assert notes[4].endswith("The person did not allow this.")
    asked = texts(endpoint.requests[-1], "user")
    assert all(note in asked for note in notes[1:5])


def test_show_puts_reasons_beside_what_they_are_of(ran: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _, path, _ = ran
    assert main(["show", str(path)]) == 0
    steps = capsys.readouterr().out.split("\nstep ")[1:]
    lines = [line.strip() for line in steps[1].splitlines()]
    proposed = next(at for at, line in enumerate(lines) if line.startswith("proposed type “sudo"))
    assert lines[proposed + 1] == r'whole    "sudo rm -rf /\n"'  # the line end that carries it out is told
    assert COMMANDS in lines[proposed + 2]
    assert lines[proposed + 3] == "answer   changed by you to: press alt+f4"
    assert CLOSING in lines[proposed + 4]
    assert "skipped by you" in steps[2]
    assert "you said what to do instead" in steps[3]
    assert "use the menu" in steps[3]
    assert "refused by you" in steps[4]
    assert all("refused" not in step for step in steps[:4])


def test_the_report_calls_a_skip_a_skip(ran: Any) -> None:
    _, path, _ = ran
    shown = [view_step(step, 0) for step in read_bundle(path).steps]
    assert [step["state"] for step in shown] == FATES
    [changed] = shown[1]["actions"]
    assert changed["proposed"].startswith("type “sudo")
    assert changed["changed"] == "press alt+f4"
    assert (COMMANDS in changed["approval"]["reason"], CLOSING in changed["approval"]["reason"]) == (True, False)
    assert CLOSING in changed["approval"]["changed_reason"]


def test_a_recorded_run_looks_like_the_one_that_was_watched(ran: Any) -> None:
    events, path, _ = ran
    watched, recorder = RunView(), Recorder(path.parent / "again", "rename it")
    translator = Translator(watched, lambda: 0.0)
    for event in events:
        recorder.handle(event)
        translator.apply(event, recorder.latest)
    recorder.close()
    opened = view_of(read_bundle(path))
    for view in (watched, opened):
        assert [row.mark for row in view.rows] == ["done", "done", "skipped", "told", "refused", "done"]
        assert view.rows[1].words == "press alt+f4"
        assert view.rows[1].proposed.startswith("type “sudo")
        asked, changed = view.rows[1].approval.splitlines()
        assert COMMANDS in asked
        assert CLOSING not in asked
        assert changed.startswith("changed by you to: press alt+f4")
        assert [WORDS[fate] in row.outcome for row, fate in zip(view.rows, FATES, strict=True)][2:5] == [True] * 3
    assert [row.approval for row in opened.rows] == [row.approval for row in watched.rows]


def test_printed_lines_and_json_tell_them_apart(ran: Any) -> None:
    events, _, _ = ran
    plain, told = io.StringIO(), io.StringIO()
    for printer in (PlainPrinter(plain), JsonPrinter(told)):
        for event in events:
            printer.handle(event)
    lines = plain.getvalue().splitlines()
    assert "  changed by you to: press alt+f4" in lines
    assert [line for line in lines if " by you" in line][2:] == [
        "  skipped by you", "  not allowed by you: use the menu", "  refused by you",
    ]  # fmt: skip
    answers = [json.loads(line).get("answer") for line in told.getvalue().splitlines()]
    assert {"changed", "skipped", "told", "refused"} <= set(filter(lambda one: isinstance(one, str), answers))


def test_a_replay_tells_what_became_of_each_and_what_the_run_changed(
    ran: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    _, path, _ = ran
    assert main(["replay", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "you changed it to: press alt+f4 · would ask about that too: " in lines[1]
    assert lines[1].index(COMMANDS) < lines[1].index("you changed it") < lines[1].index(CLOSING)
    assert [WORDS[fate] in line for line, fate in zip(lines, FATES, strict=False)][2:5] == [True] * 3
    assert lines[6] == "what the recorded run changed:"


async def test_what_follows_an_action_that_was_not_done_is_left_out_and_not_refused(tmp_path: Path) -> None:
    script = [act("type", text="one alt+f4 two done"), DONE]
    _, path, _ = await carried_out(tmp_path, script, [SKIPPED], family=Several())
    assert [action["fate"] for action in lines_of(path)[0]["actions"]] == ["done", "skipped", "left out", "left out"]
    [step, _] = read_bundle(path).steps
    assert view_step(step, 1)["state"] == "skipped"


async def test_an_action_that_the_person_overtook_is_told_so(tmp_path: Path) -> None:
    with FakeEndpoint([say(act("type", text=SUDO)), say(DONE)]) as endpoint:
        desk = Desk(endpoint, approve="risky")

        class Overtaken(FakePerson):
            async def approve(self, *_: object) -> Approval:  # type: ignore[override]
                desk.steering.user_acted("moved the mouse")
                desk.steering.resume()
                return YES

        desk.person = Overtaken()
        recorder = Recorder(tmp_path / "runs", "rename it")
        await desk.run(recorder.handle)
        recorder.close()
    assert lines_of(recorder.path)[0]["actions"][0]["fate"] == "overtaken"
