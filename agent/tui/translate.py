"""The one translator: run events in, a `RunView` out. Nothing else in the application reads an event."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.actions import Finish, describe
from agent.families.base import ParseFailure
from agent.run.events import (
    Acted,
    ApprovalAsked,
    ApprovalGiven,
    Decided,
    Event,
    ModelDelta,
    Observed,
    Paused,
    PersonSaid,
    Resumed,
    RunFinished,
    RunStarted,
    StepFinished,
    UserActed,
    Warned,
)
from agent.tui.action_text import gist
from agent.tui.view import Row, RunView

#: The longest part of an answer that is shown while it streams in, in characters.
_STREAM_CHARS = 4000


@dataclass(frozen=True, slots=True)
class Change:
    """What an event changed.

    Args:
        row: the index of the row that changed, None where only the run's own state did.
        streams: a piece of an answer came in, of which there are many a second.
        finishes: the row's step is over.
    """

    row: int | None
    streams: bool = False
    finishes: bool = False


class Translator:
    """Keeps one view up to date.

    Args:
        view: what is kept.
        clock: seconds; for the duration of steps.
    """

    def __init__(self, view: RunView, clock: Callable[[], float]) -> None:
        self.view = view
        self._clock = clock
        self._began = clock()
        self._step: int | None = None  # the row of the step under way
        self._asked = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._began

    def apply(self, event: Event) -> Change:
        """Take an event in."""
        row = self._apply(event)
        return Change(row, streams=isinstance(event, ModelDelta), finishes=isinstance(event, StepFinished))

    def _apply(self, event: Event) -> int | None:
        view = self.view
        match event:
            case RunStarted():
                view.state, view.stage = "running", ""
                view.engine, view.model = event.actor.engine, event.actor.model
                view.dry_run, view.sandbox, view.bundle = event.dry_run, event.sandbox, Path(event.bundle)
            case Observed():
                return self._observed(event)
            case ModelDelta(_, text, restart):
                row = self._row()
                row.thought = ("" if restart else row.thought[-_STREAM_CHARS:]) + text
                return self._step
            case Decided():
                return self._decided(event)
            case ApprovalAsked(_, target, reason):
                row = self._row()
                row.mark, row.target, row.approval = "asking", target, reason
                self._asked = self.elapsed
                view.state, view.stage = "asking", reason
                return self._step
            case ApprovalGiven():
                return self._given(event)
            case Acted():
                return self._acted(event)
            case StepFinished():
                return self._step_finished(event)
            case Paused(_, reason):
                view.state, view.stage = "paused", reason
                return self._between(f"paused: {reason}")
            case Resumed():
                view.state, view.stage = "running", ""
            case UserActed(_, what):
                return self._between(f"you acted: {what}")
            case PersonSaid(_, text):
                return self._between(f"you said: {text}")
            case Warned(message):
                return self._between(message)
            case RunFinished():
                return self._finished(event)
        return None

    def failed(self, message: str, status: int) -> int:
        """The run could not begin, or broke off."""
        self.view.state, self.view.stage, self.view.status = "ended", message, status
        self.view.seconds = self.elapsed
        return self._between(message, failed=True)

    def note(self, text: str) -> int:
        """Something was said beside the run."""
        return self._between(text)

    def _row(self) -> Row:
        if self._step is None:  # an event of a step without its beginning: shown all the same
            self._step = self._add(Row(self.view.step, "thinking", "thinking", self.elapsed))
        return self.view.rows[self._step]

    def _add(self, row: Row) -> int:
        self.view.rows.append(row)
        return len(self.view.rows) - 1

    def _between(self, words: str, failed: bool = False) -> int:
        return self._add(Row(None, "failed" if failed else "note", " ".join(words.split()), self.elapsed, 0.0))

    def _observed(self, event: Observed) -> int:
        view = self.view
        view.step = event.step
        row = Row(event.step, "thinking", "thinking", self.elapsed, viewport=event.viewport)
        if (image := event.image) is not None:
            suffix = "jpg" if image.format == "jpeg" else image.format
            if view.bundle is not None and (path := view.bundle / "screens" / f"{event.step:04d}.{suffix}").is_file():
                row.image = path
            else:
                row.data = image.data
        row.milliseconds = dict(event.milliseconds)
        self._step = self._add(row)
        return self._step

    def _decided(self, event: Decided) -> int | None:
        row = self._row()
        row.thought = event.thought
        row.answers.append(event.raw)
        prompt, completion, _ = row.tokens
        usage = event.usage
        row.tokens = (
            _sum(prompt, usage.prompt), _sum(completion, usage.completion), _sum(row.tokens[2], usage.cached)
        )  # fmt: skip
        self.view.tokens += (usage.prompt or 0) + (usage.completion or 0)
        for name, value in event.milliseconds.items():
            row.milliseconds[name] = row.milliseconds.get(name, 0.0) + value
        if isinstance(event.failure, ParseFailure):
            row.words = f"the answer cannot be used: {event.failure.message}"
            row.outcome = event.failure.message
        elif event.target is not None:
            row.mark, row.words, row.target = "acting", describe(event.target), event.target
            row.gist = gist(event.thought, event.target)
            row.outcome = ""
        return self._step

    def _given(self, event: ApprovalGiven) -> int | None:
        row = self._row()
        row.began += self.elapsed - self._asked  # the person's time is not the step's
        verdict = "allowed" if event.allowed else "not allowed"
        note = f", “{event.note}”" if event.note else ""
        row.approval = f"{row.approval}: {verdict} by {event.by}{note}"
        row.mark = "acting" if event.allowed else "skipped"
        if event.instead is not None:
            row.target, row.words = event.instead, describe(event.instead)
            row.approval += ", changed by you"
        self.view.state, self.view.stage = "running", ""
        return self._step

    def _acted(self, event: Acted) -> int | None:
        row = self._row()
        row.milliseconds["act"] = event.milliseconds
        row.words, row.target = describe(event.target), event.target
        if event.error is not None:
            row.mark, row.outcome = "failed", event.error
        else:
            row.mark = "dry" if event.dry_run else "done"
            row.outcome = "" if event.detail == row.words else event.detail
        return self._step

    def _step_finished(self, event: StepFinished) -> int | None:
        row = self._row()
        row.seconds = self.elapsed - row.began
        row.note = event.note or ""
        row.milliseconds |= event.milliseconds
        if event.reply:
            row.outcome = event.reply
        if row.mark in ("acting", "thinking", "asking"):
            row.mark = "failed" if isinstance(row.target, Finish) and not row.target.success else "done"
        index, self._step = self._step, None
        return index

    def _finished(self, event: RunFinished) -> int | None:
        view = self.view
        view.state, view.status, view.seconds = "ended", int(event.status), self.elapsed  # waits for the person too
        view.stage = event.message
        if self._step is None:
            return None
        row = self._row()  # cut off in mid-step
        row.mark, row.seconds = "failed", self.elapsed - row.began
        row.outcome = row.outcome or event.message
        return self._step


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other
