"""Converts a run's events to a `RunView`. `agent.tui.recorded` makes a view from a bundle."""

import re
from collections.abc import Callable
from pathlib import Path

from agent.core.actions import Action, Finish
from agent.core.geometry import DesktopPoint
from agent.events import run_events as events
from agent.events.fates import WORDS, answer_words, change_words, decider_words
from agent.safety.naming import Aim, named, unplaced
from agent.tui.action_text import gist
from agent.tui.view import Row, RunView, deed
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
        self._actions: list[str] = []  # of that step, in words
        self._asked = 0.0
        self._starting: int | None = None  # the row about the start, until another row is added
        self._starting = self._add(Row(None, "thinking", "starting"))

    @property
    def elapsed(self) -> float:
        return self._clock() - self._began

    def apply(self, event: events.Event) -> int | None:
        """Process an event. Return the index of the changed row; None if only the state of the run changed."""
        view = self.view
        match event:
            case events.RunStarted():
                self._runs_on()
                view.engine, view.model = event.actor.engine, event.actor.model
                view.dry_run, view.sandbox, view.bundle = event.dry_run, event.sandbox, Path(event.bundle)
            case events.Observed():
                return self._observed(event)
            case events.ModelDelta(_, text, restart):
                row = self._row()
                self._streamed = ("" if restart else self._streamed) + text
                row.thought = spoken(self._streamed)[-_STREAM_CHARS:]
                row.gist = " ".join(row.thought[-_GIST_CHARS:].split())
                return self._step
            case events.Consulted():
                row = self._row()
                row.found = "\n".join(filter(None, (row.found, event.words)))
                return self._step
            case events.Decided():
                return self._decided(event)
            case events.ApprovalAsked(_, target, reason):
                row = self._row()
                self._show_action(row, target, event.index, event.aim)
                row.mark = "asking"
                row.approval = "\n".join(filter(None, (row.approval, f"asked because {reason}")))
                row.about, row.spot = event.aim.box, event.aim.field
                self._asked = self.elapsed
                view.state, view.stage = "asking", reason
                return self._step
            case events.ApprovalGiven():
                return self._given(event)
            case events.Dropped():
                return self._dropped(event)
            case events.Acted():
                return self._acted(event)
            case events.StepFinished():
                return self._step_finished(event)
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

    def _observed(self, event: events.Observed) -> int:
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
        self._step, self._actions, self._streamed = self._add(row), [], ""
        return self._step

    def _decided(self, event: events.Decided) -> int | None:
        row = self._row()
        row.thought, row.gist = event.thought, ""
        row.found = "\n".join(filter(None, (decider_words(event.by), row.found)))
        row.answers.append(event.raw)
        usage, (prompt, completion, cached) = event.usage, row.tokens
        row.tokens = (_sum(prompt, usage.prompt), _sum(completion, usage.completion), _sum(cached, usage.cached))
        self.view.tokens += (usage.prompt or 0) + (usage.completion or 0)
        for name, value in event.milliseconds.items():
            row.milliseconds[name] = row.milliseconds.get(name, 0.0) + value
        if event.failure is not None:
            row.words = f"the answer cannot be used: {event.failure.message}"
            row.outcome = event.failure.message
        elif event.target is not None:
            self._actions = [unplaced(target) for target in event.targets]
            row.mark, row.words, row.target = "acting", "; ".join(self._actions), event.target
            row.gist = gist(event.thought, event.target)
            row.outcome = ""
        return self._step

    def _given(self, event: events.ApprovalGiven) -> int | None:
        row = self._row()
        row.began += self.elapsed - self._asked  # the person's time is not the step's
        row.mark = "acting"
        row.deed = deed(event.answer, event.by, event.note) or row.deed
        if event.instead is None:
            row.approval += f": {answer_words(event.answer, event.by, event.note)}"
        else:  # the recorded reasons belong to the action that the model proposed
            row.proposed = "; ".join(filter(None, (row.proposed, *self._actions[event.index : event.index + 1])))
            changed = self._show_action(row, event.instead, event.index, event.instead_aim)
            row.approval += f"\n{change_words(changed, event.by, event.instead_reason, event.note)}"
        self._runs_on()
        return self._step

    def _acted(self, event: events.Acted) -> int | None:
        row = self._row()
        row.milliseconds["act"] = row.milliseconds.get("act", 0.0) + event.milliseconds
        row.about, row.spot = event.aim.box, event.aim.field
        words = self._show_action(row, event.target, event.index, event.aim)
        hit = " → ".join(element.words for element in event.elements)
        row.hit = "; ".join(filter(None, (row.hit, hit)))
        if event.error is not None:
            row.mark, row.outcome = "failed", event.error
        elif event.index + 1 >= len(self._actions):  # the last one of the step
            row.mark = "dry" if event.dry_run else "done"
            row.outcome = "" if event.detail == words else event.detail
        return self._step

    def _dropped(self, event: events.Dropped) -> int | None:
        row = self._row()
        if event.why != "left out":  # "left out" adds nothing to the action before it
            row.mark = "skipped" if event.why == "overtaken" else event.why
            row.outcome = WORDS[event.why]
        return self._step

    def _show_action(self, row: Row, action: Action[DesktopPoint], index: int, aim: Aim) -> str:
        """Put an action in its place among the actions of the step. Return its words."""
        words = named(action, aim)
        self._actions[index : index + 1] = [words]
        row.target, row.words = action, "; ".join(self._actions)
        return words

    def _step_finished(self, event: events.StepFinished) -> int | None:
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

    def _finished(self, event: events.RunFinished) -> int | None:
        view = self.view
        view.state, view.status, view.seconds = "ended", int(event.status), self.elapsed  # waits for the person too
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


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other
