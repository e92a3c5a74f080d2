"""Carries out runs on a separate thread, so that a slow screen and a busy terminal do not delay each other.

What happens is posted to the application as messages; what the person decides comes back through `Steering`, the stop
switch, and the answers of `ApprovalWanted` and `ReplyWanted`.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from agent.run.control import Steering
from agent.safety.stop import StopSwitch
from foundation.errors import ExitStatus, MaiError
from foundation.printing import remark

if TYPE_CHECKING:  # imported by the first run: the application is on the screen before that
    from agent.core.actions import Action
    from agent.core.geometry import DesktopPoint
    from agent.events.run_events import Event
    from agent.record.bundle import Recorder
    from agent.safety.policy import Approval, Question
    from agent.workplace import Workplace


@dataclass(frozen=True, slots=True)
class RunBegan:
    """A run was taken up; it is being made ready."""

    instruction: str
    max_steps: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of something slow: the start of a server or a sandbox."""

    text: str


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run could not begin, or broke off."""

    message: str
    status: int


@dataclass(frozen=True, slots=True)
class RunClosed:
    """The run is over and recorded; the next may begin."""


@dataclass(frozen=True, slots=True)
class ApprovalWanted:
    """The run waits for a decision; call `answer` once."""

    target: "Action[DesktopPoint]"
    question: "Question"
    answer: "Callable[[Approval], None]"


@dataclass(frozen=True, slots=True)
class ReplyWanted:
    """The model, or the start of a server, asks something; call `answer` once, with "" for no answer."""

    question: str
    answer: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class QuestionOver:
    """The last question is over and needs no answer any more."""


#: What is posted to the application: the events of the run as they are, and what happens beside them.
Report: TypeAlias = "RunBegan | Event | Progress | RunFailed | RunClosed | ApprovalWanted | ReplyWanted | QuestionOver"
Post: TypeAlias = "Callable[[Report], None]"
_YES = ("y", "yes")
#: Seconds for a stopped run to let go, and for a sandbox to end.
_CLOSING = 15.0


@contextmanager
def _asked(post: Post, wanted: "Callable[[Callable[[Any], None]], Report]") -> "Iterator[Future[Any]]":
    """Post a question, and its end on exit; the first answer from any thread counts."""
    answer: Future[Any] = Future()

    def give(value: Any) -> None:
        with suppress(InvalidStateError):
            answer.set_result(value)

    post(wanted(give))
    try:
        yield answer
    finally:
        post(QuestionOver())


class PersonThere:
    """The person at an application: an `Approver` and a `Person`."""

    def __init__(self, post: Post) -> None:
        self._post = post

    async def approve(self, action: "Action[DesktopPoint]", question: "Question") -> "Approval":
        """Ask whether an action may be carried out."""
        with _asked(self._post, partial(ApprovalWanted, action, question)) as answer:
            decision: Approval = await asyncio.wrap_future(answer)
            return decision

    async def ask(self, question: str) -> str | None:
        """Return the reply to a question of the model; None if there is none."""
        with _asked(self._post, partial(ReplyWanted, question)) as answer:
            return await asyncio.wrap_future(answer) or None

    async def permit(self, question: str) -> bool:
        """Ask a yes/no question."""
        return (await self.ask(f"{question} (yes or no)") or "").strip().casefold() in _YES


@dataclass(slots=True)
class Run:
    """A run, with the stop switch and the steering for it."""

    instruction: str
    stop: StopSwitch = field(default_factory=StopSwitch)
    steering: Steering = field(default_factory=Steering)


class Conductor:
    """Takes up one run after another on its own thread, which makes the workplace and posts the reports."""

    def __init__(
        self, make_workplace: "Callable[[Callable[[str], None], Callable[[str], bool]], Workplace]", post: Post
    ) -> None:
        self._make_workplace = make_workplace
        self._post = post
        self._left = False  # whether nobody reads reports any more
        self._wanted: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._workplace: Workplace | None = None
        self._going: list[Run] = []  # queued or running, the oldest first
        self._remarks: set[str] = set()  # warnings from before a first look: shown once, for all runs
        self.run: Run | None = None
        self.recorder: Recorder | None = None  # of the run that was taken up last
        self.status: int | None = None
        self.message = ""  # how the last run ended

    def start(self, instruction: str) -> Run:
        """Queue a run; it begins when the one before is over."""
        run = Run(instruction)
        self.run, self.message = run, ""
        self._going.append(run)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="conductor", daemon=True)
            self._thread.start()
        self._wanted.put(run)
        return run

    def stop(self, reason: str) -> None:
        """Stop the current run at once, and the queued ones."""
        for run in tuple(self._going):
            run.stop.stop(reason)

    def server_load(self) -> str:
        """The server's load in a few words; may take a second."""
        workplace = self._workplace
        return "" if workplace is None else workplace.server_load()

    def close(self, seconds: float) -> bool:
        """Stop, and wait until everything is released; False after this many seconds."""
        self._left = True
        self.stop("the program was left")
        if self._thread is None:
            return True
        self._wanted.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def end(self) -> None:
        """Stop and release everything; say so if that takes a moment."""
        if not self.close(0):
            remark("ending what is under way ...")
            self.close(_CLOSING)

    def _work(self) -> None:
        try:
            while (run := self._wanted.get()) is not None:
                try:
                    if self._workplace is None:
                        self._workplace = self._make_workplace(self._tell, self._ask)
                    self.status = self._conduct(self._workplace, run)
                except Exception as error:  # also a mistake of ours must not end the application
                    mistake = f"mai-agent itself made a mistake: {type(error).__name__}: {error}. Please report it."
                    self.status, self.message = ExitStatus.NOT_DONE, mistake
                    if isinstance(error, MaiError):
                        self.status, self.message = error.exit_status, str(error)
                    self._post(RunFailed(self.message, self.status))
                self._going.remove(run)
                self._post(RunClosed())
        finally:
            if self._workplace is not None:
                self._workplace.__exit__()

    def _tell(self, text: str) -> None:
        if self._left:
            remark(text)
        else:
            self._post(Progress(text))

    def _conduct(self, workplace: "Workplace", run: Run) -> int:
        from agent.events.run_events import Observed, Warned

        self._post(RunBegan(run.instruction, workplace.run_settings(run.instruction).max_steps))
        job = workplace.job(run.instruction, run.stop)
        self.recorder = job.recorder
        person = PersonThere(self._post)
        looked = False

        def show(event: "Event") -> None:
            nonlocal looked
            looked = looked or isinstance(event, Observed)
            if isinstance(event, Warned) and not looked:  # about the machine: an earlier run may have shown it
                if event.message in self._remarks:
                    return
                self._remarks.add(event.message)
            self._post(job.recorder.redactor.event(event))

        with closing(job.recorder):
            try:
                finished = asyncio.run(job.carry_out(person, run.stop, show, run.steering))
            finally:
                job.write_report(self._tell)
            self.message = finished.message
        return finished.status

    def _ask(self, question: str) -> bool:
        with _asked(self._post, partial(ReplyWanted, f"{question} (yes or no)")) as answer, suppress(CancelledError):
            self._going[0].stop.on_stop(answer.cancel)
            return answer.result().strip().casefold() in _YES
        return False
