"""What the live page shows: the run under way as recorded by now, and what waits for the person."""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agent.conductor import (
    ApprovalWanted,
    Progress,
    QuestionOver,
    ReplyWanted,
    Report,
    Run,
    RunBegan,
    RunClosed,
    RunFailed,
)
from agent.core.actions import TYPING, Action
from agent.core.geometry import DesktopPoint, Viewport
from agent.desktop.guard.own_windows import serve_page
from agent.events.run_events import Observed, RunFinished, RunStarted
from agent.record.read import Bundle, read_bundle
from agent.record.report.view import screenshot, view_run, view_step
from agent.record.run_record import RunRecord
from agent.record.step_record import StepRecord
from agent.safety.editing import can_be_changed, editable, edited
from agent.safety.policy import Approval, Question
from agent.safety.question_text import asked
from agent.safety.situation import UNKNOWN
from foundation.foreign_text import harmless

if TYPE_CHECKING:
    from agent.record.bundle import Recorder

Json = dict[str, Any]


class Runs(Protocol):
    """What the page shows and steers."""

    @property
    def run(self) -> Run | None:
        """The latest run; None before the first run."""
        ...

    @property
    def recorder(self) -> "Recorder | None":
        """The recorder of this run; None while the run is prepared."""
        ...

    def stop(self, reason: str) -> None:
        """Stop the run at once."""
        ...


class Live:
    """The state of the page. Reports come from the run's thread; everything else happens in the server's loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.runs: Runs  # set once, before the first run
        self.start: Callable[[str], object] | None = None  # starts a run; None if the page cannot
        self.version = 0
        self.question: Json | None = None
        self.over = False  # whether the session has ended
        self.watchers = 0  # browsers that show it now
        self._answer: Callable[[Any], None] | None = None
        self._change: Callable[[str], None] = lambda _: None  # asks about the action with this text in it
        self._loop = loop
        self._changed = asyncio.Event()
        self._bundle: Path | None = None
        self._pending: Json | None = None
        self._running = False
        self._said = ""
        self._viewport: Viewport | None = None  # of the newest screenshot

    def post(self, report: Report) -> None:
        """Take a report, on the run's thread."""
        recorder = self.runs.recorder
        pending = None if recorder is None else recorder.under_way
        bundle = None if recorder is None else recorder.path
        self._loop.call_soon_threadsafe(self._take, report, bundle, pending)

    def _take(self, report: Report, bundle: Path | None, pending: Json | None) -> None:
        self._pending = pending
        match report:
            case RunBegan():
                self._running, self._said, self._bundle = True, "", None
            case Progress(text):
                self._said = text
            case RunFailed(message):
                self._said = message
            case RunClosed():
                self._running = False
            case ApprovalWanted(target, question, answer):
                self._propose(target, question, answer)
            case ReplyWanted(question, answer):
                self._ask({"kind": "reply", "what": harmless(question)}, answer)
            case QuestionOver():
                self.question = self._answer = None
            case RunStarted() | RunFinished():
                self._said = ""
            case Observed(viewport=viewport):
                self._viewport = viewport
        if not isinstance(report, RunBegan | Progress):
            self._bundle = bundle
        self.tell()

    def _ask(self, question: Json, answer: Callable[[Any], None]) -> None:
        self.question = question | {"id": secrets.token_urlsafe(9)}
        self._answer = answer

    def _propose(
        self, target: Action[DesktopPoint], question: Question, answer: Callable[[Any], None], *, changed: bool = False
    ) -> None:
        """Ask about an action. An action that the person changed is asked about again, so that all of it is shown."""

        def decided(approval: Approval) -> None:
            answer(replace(approval, instead=target) if changed and approval.allowed else approval)

        written = editable(target) if can_be_changed(target) else None
        self._ask(_question(asked(target, question)) | {"edit": written}, decided)

        def change(text: str) -> None:
            # What is known of the target, and could be allowed for the rest of the run, is about the proposed action.
            of_target = question if isinstance(target, TYPING) else replace(question, situation=UNKNOWN)
            action = edited(target, text, None if self._viewport is None else self._viewport.region)
            self._propose(action, replace(of_target, scope=""), answer, changed=True)

        self._change = change

    def tell(self) -> None:
        """Wake the watchers."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, known: int) -> int:
        """Wait until the state is newer than the version `known`. Return the new version."""
        while self.version == known:
            await self._changed.wait()
        return self.version

    def decide(self, question: str, answer: str, text: str) -> bool:
        """Answer the question of an id: allow, always, skip, refuse (with `text`: what to do instead), or reply.

        The answer "change" asks again, about the action with `text` in it. Return whether that question is still open
        and takes such an answer. Raises ValueError: the action cannot have such a text.
        """
        if self.question is None or self._answer is None or self.question["id"] != question:
            return False
        if self.question["kind"] == "reply":
            if answer != "reply":
                return False
            self._answer(text)
        elif answer == "change":
            self._change(text)
            self.tell()
            return True
        elif answer in ("allow", "skip", "refuse") or (answer == "always" and self.question["scope"]):
            allowed = answer in ("allow", "always")
            self._answer(
                Approval(allowed, "you", "" if allowed else text, always=answer == "always", skip=answer == "skip")
            )
        else:
            return False
        self.question = self._answer = None
        self.tell()
        return True

    def control(self, command: str, text: str) -> bool:
        """Steer the run: pause, resume, step, stop, tell; or start the next one. Return whether that was possible."""
        run = self.runs.run
        if command == "start":
            if self.start is None or self._running or not text.strip():
                return False
            self._running = True
            self.start(text.strip())
        elif run is None or not self._running:
            return False
        elif command == "stop":
            self.runs.stop("you stopped it")
        elif command == "tell":
            run.steering.tell(text)
        elif command in ("pause", "resume", "step"):
            {"pause": run.steering.pause, "resume": run.steering.resume, "step": run.steering.step}[command]()
        else:
            return False
        self.tell()
        return True

    def screen(self, name: str) -> Path | None:
        """Return a screenshot's file; None if this run has no such file."""
        if self._bundle is None:
            return None
        folder = (self._bundle / "screens").resolve()
        with suppress(OSError, ValueError):  # of a name that no file can have
            file = (folder / name).resolve()
            return file if file.parent == folder and file.is_file() else None
        return None

    def data(self) -> Json:
        """What the page shows now: the run, its steps and pictures as in a report, and the part that is live."""
        run = self.runs.run
        live = {
            "running": self._running,
            "state": self._state(),
            "title": f"{self._state()} · {serve_page()}",
            "said": harmless(self._said),
            "question": self.question,
            "held": "" if run is None or not self._running else run.steering.held_by,
            "over": self.over,
            "bundle": "" if self._bundle is None else self._bundle.name,
        }
        if self._bundle is None:
            instruction = "" if run is None else run.instruction
            bundle = Bundle(Path(), RunRecord(instruction=instruction, outcome="not begun"), ())
        else:
            bundle = read_bundle(self._bundle)
        records = list(bundle.steps)
        pending = None if self._bundle is None else self._pending
        if pending is not None:
            records.append(StepRecord.model_validate(pending))
        steps = [view_step(step, number) for number, step in enumerate(records, 1)]
        pictures: list[Json] = []
        for record, step in zip(records, steps, strict=True):
            file = screenshot(bundle, record)
            step["picture"] = None if file is None or record.image is None else len(pictures)
            if step["picture"] is not None and file is not None and record.image is not None:
                url = f"/screens/{file.name}?{bundle.path.name}"
                size = [record.image.width, record.image.height]
                pictures.append({"url": url, "thumb": url, "size": size, "reduced": False})
        if pending is not None and steps:
            _under_way(steps[-1], "waits for you" if self.question else "under way")
        run_view = (
            view_run(bundle) | {"reduced": 0, "problem": ""} | ({} if self._bundle else {"facts": [], "stages": []})
        )
        return {"run": run_view, "steps": steps, "pictures": pictures, "live": live}

    def _state(self) -> str:
        run = self.runs.run
        if self.question is not None:
            return "IT ASKS YOU"
        if not self._running or run is None:
            return "NO RUN"
        if run.stop.stopped:
            return "STOPPING"
        held = {"paused": "PAUSED", "taken over": "YOU HAVE IT", "step": "STEP BY STEP"}
        return held.get(run.steering.held_by, "RUNNING")


def _under_way(step: Json, words: str) -> None:
    """Mark a step as under way. In a report, the same step would count as broken off."""
    step["state"] = words
    for action in step["actions"]:
        if action["fate"] in ("broken off", "unanswered"):
            action |= {"fate": "under way", "words": words, "approval": None}


def _question(question: Any) -> Json:
    return {
        "kind": "approval",
        "what": harmless(" ".join(filter(None, (question.what, question.where)))),
        "text": harmless(question.text),
        "facts": [harmless(fact) for fact in question.facts],
        "reasons": [harmless(reason) for reason in question.reasons],
        "scope": harmless(question.scope),
    }
