"""The thread that conducts runs: what it reports, and how it ends."""

import queue
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stubs.terminal import VIEWPORT

from agent.conductor import (
    ApprovalWanted,
    Conductor,
    Progress,
    QuestionOver,
    ReplyWanted,
    Report,
    RunBegan,
    RunClosed,
    RunFailed,
)
from agent.core.actions import PressKeys
from agent.events.run_events import Event, Observed, RunEvent, RunFinished, Warned
from agent.record.redactor import Redactor
from agent.safety.policy import Approval, Question
from agent.workplace import Job
from foundation.chat_stream import Usage
from foundation.errors import EnvironmentLacksError, ExitStatus

KEYS = PressKeys(("ctrl", "w"))


class Notes:
    """A recorder that keeps what it was given."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.abandoned: list[RunFinished] = []
        self.closed = False
        self.path = Path("bundle")
        self.redactor = Redactor()

    def handle(self, event: Event) -> None:
        self.events.append(event)

    def abandon(self, ending: RunFinished) -> None:
        self.abandoned.append(ending)

    def close(self) -> None:
        self.closed = True


class Place:
    """A workplace whose runs are what the test wants."""

    def __init__(self, tell: Any, ask: Any) -> None:
        self.tell, self.ask = tell, ask
        self.recorders: list[Notes] = []
        self.left = False

    def run_settings(self, instruction: str) -> Any:
        return SimpleNamespace(max_steps=50)

    def job(self, instruction: str, stop: Any) -> Any:
        if instruction == "no display":
            raise EnvironmentLacksError("There is no display.", "Use --sandbox.")
        if instruction == "mistake":
            raise ZeroDivisionError("1/0")
        if instruction == "install" and not self.ask("May vLLM be installed?"):
            raise EnvironmentLacksError("vLLM is not installed.")
        self.tell("getting ready")
        self.recorders.append(Notes())
        return Job(instruction, self.recorders[-1])  # type: ignore[arg-type]

    def __exit__(self, *_: object) -> None:
        self.tell("the sandbox stays")
        self.left = True


async def _run(request: Any, person: Any, stop: Any, emit: Any, steering: Any) -> RunFinished:
    if request == "ask":
        approval = await person.approve(KEYS, Question("it closes", "pressing ctrl+w"))
        emit(Warned(f"{approval.allowed} by {approval.by}"))
        emit(Warned(str(await person.ask("Which?"))))
    if request == "remarks":
        emit(Warned("no graphics card"))
        emit(Observed(1, (), VIEWPORT, 1, "digest", {}))
        emit(Warned("trying again"))
    if request == "break":
        raise EnvironmentLacksError("The disk is full.")
    finished = RunFinished("done", ExitStatus.DONE, "ok", 1, 0.1, Usage(1, 1, 0))
    emit(finished)
    return finished


class Sitting:
    """A conductor, and the reports in the order in which they came."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self.conductor = Conductor(self._make, self.reports.put)

    def _make(self, tell: Any, ask: Any) -> Any:
        self.places.append(Place(tell, ask))
        return self.places[-1]

    def until(self, kind: type[Any]) -> list[Report]:
        found: list[Report] = []
        while not found or not isinstance(found[-1], kind):
            found.append(self.reports.get(timeout=20))
        return found


@pytest.fixture
def sitting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sitting]:
    monkeypatch.setattr("agent.run.session.run", _run)
    monkeypatch.setattr("agent.workplace.Job.write_report", lambda job, tell: "")
    made = Sitting()
    yield made
    assert made.conductor.close(20)


def test_a_run_is_reported_from_its_beginning_to_its_rest(sitting: Sitting) -> None:
    sitting.conductor.start("go")
    reports = sitting.until(RunClosed)
    assert reports[:2] == [RunBegan("go", 50), Progress("getting ready")]
    assert isinstance(reports[2], RunEvent)
    assert reports[3:] == [RunClosed()]
    assert sitting.conductor.status == ExitStatus.DONE


def test_several_runs_share_one_workplace_and_it_is_left_at_the_end(
    sitting: Sitting, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        sitting.conductor.start("go")
        sitting.until(RunClosed)
    (place,) = sitting.places
    assert [recorder.closed for recorder in place.recorders] == [True] * 3
    assert not place.left
    assert sitting.conductor.close(20)
    assert place.left
    assert "the sandbox stays" in capsys.readouterr().err  # the terminal application is gone: nobody reads a report


def test_what_holds_for_the_machine_is_shown_once_in_a_sitting_and_recorded_with_every_run(sitting: Sitting) -> None:
    told = []
    for _ in range(2):
        sitting.conductor.start("remarks")
        events = [report for report in sitting.until(RunClosed) if isinstance(report, RunEvent)]
        told.append([event.message for event in events if isinstance(event, Warned)])
    assert told == [["no graphics card", "trying again"], ["trying again"]]
    for recorder in sitting.places[0].recorders:
        assert Warned("no graphics card") in recorder.events


def test_a_decision_and_a_reply_reach_the_run(sitting: Sitting) -> None:
    sitting.conductor.start("ask")
    *_, wanted = sitting.until(ApprovalWanted)
    assert isinstance(wanted, ApprovalWanted)
    wanted.answer(Approval(allowed=True, by="you"))
    wanted.answer(Approval(allowed=False, by="you"))  # a second answer is none
    *gone, asked = sitting.until(ReplyWanted)
    assert QuestionOver() in gone
    assert isinstance(asked, ReplyWanted)
    asked.answer("the left one")
    warned = [report for report in [*gone, *sitting.until(RunClosed)] if isinstance(report, RunEvent)]
    assert Warned("True by you") in warned
    assert Warned("the left one") in warned


def test_a_run_that_cannot_begin_is_broken_and_the_next_one_is_taken_up(sitting: Sitting) -> None:
    sitting.conductor.start("no display")
    assert RunFailed("There is no display. Use --sandbox.", ExitStatus.ENVIRONMENT) in sitting.until(RunClosed)
    sitting.conductor.start("go")
    assert not any(isinstance(report, RunFailed) for report in sitting.until(RunClosed))


def test_a_run_that_breaks_off_is_recorded_as_such(sitting: Sitting) -> None:
    sitting.conductor.start("break")
    assert any(isinstance(report, RunFailed) for report in sitting.until(RunClosed))
    ((ending,),) = [recorder.abandoned for recorder in sitting.places[0].recorders]
    assert ending.outcome == "failed"


def test_a_mistake_of_ours_ends_the_run_and_not_the_application(sitting: Sitting) -> None:
    sitting.conductor.start("mistake")
    (broken,) = [report for report in sitting.until(RunClosed) if isinstance(report, RunFailed)]
    assert "ZeroDivisionError" in broken.message


@pytest.mark.parametrize(("said", "asked_for"), [("yes", True), ("no", False), ("", False)])
def test_the_start_of_a_server_can_ask_the_person(sitting: Sitting, said: str, asked_for: bool) -> None:
    sitting.conductor.start("install")
    *_, wanted = sitting.until(ReplyWanted)
    assert isinstance(wanted, ReplyWanted)
    assert "May vLLM be installed?" in wanted.question
    wanted.answer(said)
    assert any(isinstance(report, RunFailed) for report in sitting.until(RunClosed)) is not asked_for


def test_a_stop_answers_a_question_of_the_start_with_no(sitting: Sitting) -> None:
    sitting.conductor.start("install")
    sitting.until(ReplyWanted)
    sitting.conductor.stop("enough")
    assert any(isinstance(report, RunFailed) for report in sitting.until(RunClosed))


def test_a_stop_reaches_the_run_under_way_and_those_that_wait(sitting: Sitting) -> None:
    under_way = sitting.conductor.start("ask")
    *_, wanted = sitting.until(ApprovalWanted)
    waiting = sitting.conductor.start("go")
    sitting.conductor.stop("enough")
    assert under_way.stop.stopped
    assert waiting.stop.stopped
    assert isinstance(wanted, ApprovalWanted)
    wanted.answer(Approval(allowed=False, by="you"))
    *_, asked = sitting.until(ReplyWanted)
    assert isinstance(asked, ReplyWanted)
    asked.answer("")
    sitting.until(RunClosed)
    sitting.until(RunClosed)
    sitting.conductor.stop("nothing is left to stop")
