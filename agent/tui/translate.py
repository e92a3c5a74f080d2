"""Converts a run's events to a `RunView`. `agent.tui.recorded` makes a view from a bundle."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.events import run_events as events
from agent.record.step_record import StepRecord
from agent.tui.recorded import row_of
from agent.tui.view import Mark, Row, RunView
from foundation.errors import ExitStatus

#: The longest part of an answer that is shown while it streams in, in characters.
_STREAM_CHARS = 4000
#: Characters from the end of the thought that are shown in the line of the step.
_GIST_CHARS = 80
#: The beginning of a call, which ends the thought; and tags, also a tag whose end has not arrived yet.
_CALL = re.compile(r"<tool_call>|<function=|```|^\s*[{\[]", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z_]+>|<[/A-Za-z_]*$")


class Translator:
    """Keeps one view up to date; the clock (seconds) times its steps."""

    def __init__(self, view: RunView, clock: Callable[[], float]) -> None:
        self.view = view
        self._clock = clock
        self._began = clock()
        self._step: int | None = None  # the row of the step under way
        self._streamed = ""  # of the answer under way
        self._asked = 0.0
        self._starting: int | None = None  # the row about the start, until another row is added
        self._starting = self._add(Row(None, "thinking", "starting"))

    @property
    def elapsed(self) -> float:
        return self._clock() - self._began

    def apply(self, event: events.Event, step: Mapping[str, Any]) -> int | None:
        """Process an event; `step` is the step that it belongs to, as it is recorded.

        Return the index of the changed row; None if only the state of the run changed.
        """
        view = self.view
        match event:
            case events.RunStarted():
                self._runs_on()
                view.engine, view.model = event.actor.engine, event.actor.model
                view.dry_run, view.bundle = event.dry_run, Path(event.bundle)
                view.sandbox = event.sandbox or bool(event.sandbox_name)
            case events.ModelDelta(_, text, restart):
                row = self._row()
                self._streamed = ("" if restart else self._streamed) + text
                row.thought = spoken(self._streamed)[-_STREAM_CHARS:]
                row.gist = " ".join(row.thought[-_GIST_CHARS:].split())
                return self._step
            case events.StepFinished():
                index, row = self._update(step), self._row()
                row.seconds, self._step = self.elapsed - row.began, None
                return index
            case events.Observed():
                view.step, self._streamed = event.step, ""
                self._step = self._add(Row(event.step, "thinking", "thinking", self.elapsed))
                return self._update(step, "thinking")
            case events.Consulted():
                return self._update(step, "acting")
            case events.Decided():
                view.tokens += (event.usage.prompt or 0) + (event.usage.completion or 0)
                return self._update(step, "acting")
            case events.ApprovalAsked():
                self._asked = self.elapsed
                view.state, view.stage = "asking", event.reason
                return self._update(step, "asking", event.index)
            case events.ApprovalGiven():
                self._row().began += self.elapsed - self._asked  # the person's time is not the step's
                self._runs_on()
                return self._update(step, "acting", event.index)
            case events.Acted() | events.Dropped():
                return self._update(step, "acting", event.index)
            case events.Paused(_, reason):
                view.state, view.stage = "paused", reason
                return self._between(f"paused, because {reason}")
            case events.Resumed():
                self._runs_on()
            case events.UserActed(_, what):
                return self._between(f"you acted: {what}")
            case events.PersonSaid(_, text):
                return self._between(f"you said: {text}")
            case events.Warned(message):
                return self._between(message)
            case events.ReliefAsked() | events.HandedOver() | events.HandedBack():
                return self._between(event.words)
            case events.Receipt():
                view.receipt, view.changes = event.told, event.changes
            case events.RunFinished():
                return self._finished(event)
        return None

    # Reports beside the events

    def progress(self, text: str) -> int:
        """Show the progress of something slow, in the row of the start or in a new row. Return the index of the row."""
        if self.view.state != "preparing" or self._starting is None:
            return self._between(text)
        row = self.view.rows[self._starting]
        row.words = self.view.stage = " ".join(text.split())
        row.thought = f"{row.thought}\n{self.elapsed:5.1f} s  {row.words}".lstrip("\n")
        return self._starting

    def failed(self, message: str, status: int) -> int:
        self.view.state, self.view.stage, self.view.status = "ended", message, status
        self.view.seconds = self.elapsed
        return self._between(message, failed=True)

    def asks(self, question: str | None = None) -> None:
        """Note that the person is asked something; None if the run's own event has already shown the question."""
        self.view.state = "asking"
        self.view.stage = self.view.stage if question is None else question

    def answered(self) -> None:
        if self.view.state != "asking":
            return
        self._runs_on()
        if self.view.bundle is None:  # asked before the run began
            self.view.state = "preparing"

    def pausing(self) -> None:
        self.view.stage = "pausing before the next step"

    def _runs_on(self) -> None:
        self.view.state, self.view.stage = "running", ""

    def _row(self) -> Row:
        if self._step is None:  # an event of a step without its beginning: shown all the same
            self._step = self._add(Row(self.view.step, "thinking", "thinking", self.elapsed))
        return self.view.rows[self._step]

    def _add(self, row: Row) -> int:
        starting, self._starting = self._starting, None
        if starting is not None:
            self.view.rows[starting] = row
            return starting
        self.view.rows.append(row)
        return len(self.view.rows) - 1

    def _between(self, words: str, failed: bool = False) -> int:
        return self._add(Row(None, "failed" if failed else "note", " ".join(words.split()), self.elapsed, 0.0))

    def _update(self, step: Mapping[str, Any], under_way: Mark | None = None, current: int = -1) -> int:
        """Show the step under way as it is recorded, in its row, which widgets hold. Return the row's index."""
        row, made = self._row(), row_of(StepRecord.model_validate(step), self.view.bundle, under_way, current)
        kept = {"began": row.began, "seconds": None, "thought": made.thought or row.thought}
        for name in Row.__slots__:
            setattr(row, name, kept.get(name, getattr(made, name)))
        return self._step or 0

    def _finished(self, event: events.RunFinished) -> int | None:
        view = self.view
        view.state, view.status, view.seconds = "ended", int(event.status), event.seconds
        view.stage, view.outcome, view.evidence = event.message, event.outcome, list(event.evidence)
        if self._starting is not None:  # before anything else came
            return self._between(event.message, failed=event.status != ExitStatus.DONE)
        if self._step is None:
            return None
        row = self._row()  # cut off in mid-step
        row.mark, row.seconds = "failed", self.elapsed - row.began
        row.outcome = row.outcome or event.message
        return self._step


def spoken(answer: str) -> str:
    """The thought in an unfinished answer, without tags and without the call."""
    call = _CALL.search(answer)
    return _TAG.sub("", answer if call is None else answer[: call.start()]).strip()
