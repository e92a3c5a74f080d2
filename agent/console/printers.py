"""Prints a run as plain lines: for pipes, logs and terminals without the TUI."""

from dataclasses import replace
from pathlib import Path
from typing import TextIO

from typing_extensions import override

from agent.core.actions import TYPING, points_of
from agent.events import run_events as events
from agent.events.as_json import to_json
from agent.events.fates import WORDS, decider_words
from agent.families.published import OURS
from agent.record.bundle import target_file
from agent.record.redactor import Redactor
from agent.safety.naming import named, unplaced
from foundation.errors import ExitStatus
from foundation.printing import counted, put, put_json


class JsonPrinter:
    """One event per line on standard output.

    The pieces of an answer are printed together, because half of a secret cannot be recognised. A decision to type
    is printed with the next event, which shows whether the text went into a password field.
    """

    def __init__(self, out: TextIO | None = None, redactor: Redactor | None = None) -> None:
        self._out = out
        self._redactor = redactor or Redactor()
        self._waiting: list[events.Event] = []  # an answer's pieces as one event, and the decision

    def handle(self, event: events.Event) -> None:
        """Print one event."""
        last = self._waiting[-1] if self._waiting else None
        if isinstance(event, events.ModelDelta) and isinstance(last, events.ModelDelta) and not event.restart:
            self._waiting[-1] = replace(last, text=last.text + event.text)
            return
        self._redactor.data(to_json(event))  # first: the event may show what to mask in earlier ones
        types = isinstance(event, events.Decided) and any(isinstance(target, TYPING) for target in event.targets)
        if types and isinstance(last, events.ModelDelta):
            self._waiting.append(event)
            return
        for before in self._waiting:
            self._tell(before)
        self._waiting = [event] if types or isinstance(event, events.ModelDelta) else []
        if not self._waiting:
            self._tell(event)

    def _tell(self, event: events.Event) -> None:
        put_json(self._redactor.data(to_json(event)), to=self._out)


class PlainPrinter(JsonPrinter):
    """Lines for a person."""

    _bundle = Path()
    _dry_run = False

    @override
    def _tell(self, event: events.Event) -> None:
        match event:
            case events.RunStarted():
                self._bundle = Path(event.bundle)
                self._started(event)
            case events.Observed(step, images, viewport, tokens):
                sent = " and ".join(str(image.size) for image in images) or "no image"
                cost = f" ({tokens} tokens)" if tokens else ""  # the literal engine has none
                self._line(f"step {step}: saw {viewport.captured}, sent {sent}{cost}")
            case events.Decided():
                self._decided(event)
            case events.ReliefAsked() | events.HandedOver() | events.HandedBack():
                self._line(event.words)
            case events.Consulted():
                self._line(f"  {event.words}")
            case events.Paused(_, reason):
                self._line(f"paused, because {reason}")
            case events.Resumed():
                self._line("resumed")
            case events.UserActed(_, what):
                self._line(f"you acted: {what}")
            case events.PersonSaid(_, text):
                self._line(f"you said: {text}")
            case events.ApprovalAsked(_, target, reason):
                self._line(f"  asks first: {named(target, event.aim)}, because {reason}")
            case events.ApprovalGiven():
                self._answered(event)
            case events.Dropped(_, target, "left out"):
                self._line(f"  left out: {unplaced(target)}")
            case events.Dropped(_, _, "overtaken"):
                self._line(f"  {WORDS['overtaken']}")
            case events.Acted():
                self._acted(event)
            case events.StepFinished(_, _, note, reply, _):
                if reply:
                    self._line(f"  reply: {reply}")
                if note:
                    self._line(f"  note to the model: {note}")
            case events.Warned(message):
                self._line(f"  note: {message}")
            case events.Receipt():
                self._line("what changed:")
                for line in event.lines:
                    self._line(f"  {line}")
            case events.RunFinished():
                self._finished(event)

    def _decided(self, event: events.Decided) -> None:
        if event.by != "actor":
            self._line(f"  {decider_words(event.by)}")
        if event.thought:
            self._line(f"  thought: {' '.join(event.thought.split())}")
        if event.failure is not None:
            self._line(f"  the answer cannot be used: {event.failure.message}")
        for target in event.targets:
            if not points_of(target):  # a point is printed with the outcome of its action
                self._line(f"  next: {unplaced(target)}")

    def _started(self, event: events.RunStarted) -> None:
        self._dry_run = event.dry_run
        mode = "dry run: nothing is touched" if event.dry_run else "live"
        place = "in a sandbox" if event.sandbox or event.sandbox_name else f"on {event.machine or 'your desktop'}"
        self._line(f"task: {event.instruction}")
        words = "" if event.actor.words == OURS else f" · words: {event.actor.words}"
        self._line(f"engine: {event.actor.engine} · model: {event.actor.model}{words} · {mode}, {place}")

    def _answered(self, event: events.ApprovalGiven) -> None:
        answer = "not allowed" if event.answer == "told" else event.answer
        note = f": {event.note}" if event.note else ""
        if event.instead is None:
            self._line(f"  {answer} by {event.by}{note}")
            return
        self._line(f"  changed by {event.by} to: {named(event.instead, event.instead_aim)}{note}")
        if event.instead_reason:
            self._line(f"  the policy would ask about this, too: {event.instead_reason}")

    def _acted(self, event: events.Acted) -> None:
        if event.dry_run and points_of(event.target):
            self._line(f"  target: {self._bundle / target_file(event.step)}")
        if event.elements:
            self._line(f"  on: {' → '.join(element.words for element in event.elements)}")
        if event.error is not None:
            self._line(f"  failed: {event.error}")
            return
        word = "done" if event.executed else "dry run"
        self._line(f"  {word}: {event.detail} ({event.milliseconds:.0f} ms)")

    def _finished(self, event: events.RunFinished) -> None:
        for evidence in event.evidence:
            self._line(f"evidence: {evidence}")
        word = {ExitStatus.DONE: "done", ExitStatus.STOPPED: "stopped"}.get(event.status, "not done")
        word = "not confirmed" if event.outcome == "unverified" else word
        word = "dry run over" if self._dry_run and event.status == ExitStatus.DONE else word
        message = event.message.removeprefix("Stopped: ")  # the word says this already
        self._line(f"{word}: {message} ({counted(event.steps, 'step')}, {event.seconds:.1f} s)")

    def _line(self, text: str) -> None:
        put(self._redactor.text(text), to=self._out)
