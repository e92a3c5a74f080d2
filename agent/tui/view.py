"""What a run looks like to a person: plain values that widgets draw, and that know no widget."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from agent.core.actions import Action
from agent.core.changes import Change
from agent.core.geometry import DesktopPoint, Region, Viewport
from agent.events.change_words import Told
from agent.run.control import Hold
from foundation.foreign_text import on_one_line

Mark: TypeAlias = Literal["thinking", "asking", "acting", "done", "dry", "failed", "refused", "told", "skipped", "note"]
State: TypeAlias = Literal["idle", "preparing", "running", "asking", "paused", "ended"]

#: How good an end is, and its colour in the theme. "plain" is the end of a dry run, which touched nothing.
Tone: TypeAlias = Literal["good", "plain", "doubt", "bad"]
TONES: dict[Tone, str] = {
    "good": "$text-success", "plain": "$text-primary", "doubt": "$text-warning", "bad": "$text-error",
}  # fmt: skip

#: Names of the states in the status line.
_NAMES: dict[State, str] = {
    "idle": "READY", "preparing": "STARTING", "running": "RUNNING", "asking": "ASKS YOU", "paused": "PAUSED",
}  # fmt: skip
_HELD: dict[Hold, str] = {"paused": "PAUSED", "taken over": "YOU HAVE IT", "step": "STEP"}

#: One character for every mark, in the fonts that terminals have.
SIGNS: dict[Mark, str] = {
    "thinking": "·", "asking": "?", "acting": "▸", "done": "✓", "dry": "○", "failed": "✗", "refused": "⊘", "told": "↪",
    "skipped": "–", "note": "●",
}  # fmt: skip


@dataclass(slots=True)
class Row:
    """One line of the history: a step of the run, or something that happened between two steps."""

    number: int | None  # of the step; None for a row that is not a step
    mark: Mark
    words: str  # what it does
    began: float = 0.0  # seconds since the run began
    seconds: float | None = None  # how long it took; None while it goes on
    thought: str = ""  # the model's reasoning, or the answer so far while it streams in
    answers: list[str] = field(default_factory=list)  # as they came; several when some could not be read
    target: Action[DesktopPoint] | None = None
    viewport: Viewport | None = None  # how the screenshot lies on the desktop
    about: Region | None = None  # the region of the window that an action goes to
    spot: Region | None = None  # the field that gets what is typed
    image: Path | None = None  # the screenshot's file
    found: str = ""  # which other model decided, and how its places were found, a line each
    hit: str = ""  # what the action hit on the screen, if known
    earlier: bool = False  # a run before this one, of the same session
    deed: str = ""  # what the person did about it, in a word or two
    proposed: str = ""  # the model's own action in words, if the person changed it
    approval: str = ""  # what was asked and decided, a line for every question
    gist: str = ""  # why it is done, on one line
    outcome: str = ""  # the result, if it says more than the mark
    note: str = ""  # the note about it that the model got
    tokens: tuple[int | None, int | None, int | None] = (None, None, None)  # prompt, completion, cached; None: unknown
    milliseconds: dict[str, float] = field(default_factory=dict)  # of every stage


_STOPPED = 130
#: The mark of a finished run above the next one.
_ENDED: dict[Tone, Mark] = {"good": "done", "plain": "dry", "doubt": "skipped", "bad": "failed"}
#: What a person did about an action, for its line in the history.
_DEEDS = {"allowed": "you: yes", "changed": "you: changed", "refused": "you: no", "skipped": "you: skipped"}


def deed(answer: str | None, by: str | None, note: str = "") -> str:
    """The person's decision about an action in a word or two; "" if nobody was asked."""
    if answer is None:
        return ""
    if by != "you":
        return "you: before" if by is not None and by.startswith("you, before") else ""
    return f"you: {on_one_line(note)}" if answer == "told" else _DEEDS.get(answer, "")


@dataclass(slots=True)
class RunView:
    """One run."""

    instruction: str = ""
    state: State = "idle"
    rows: list[Row] = field(default_factory=list)
    stage: str = ""  # the latest message: the start of a server, the reason for a pause, or the end
    engine: str = ""
    model: str = ""
    dry_run: bool = False
    sandbox: bool = False
    step: int = 0  # the one under way
    max_steps: int | None = None  # None if unknown
    bundle: Path | None = None  # where it is recorded
    status: int | None = None  # its exit status once it ended
    tokens: int = 0
    seconds: float = 0.0  # how long it took once it ended
    outcome: str = ""  # how it ended
    receipt: list[Told] = field(default_factory=list)  # what changed, a line each, once it ended
    taken_back: tuple[Change, ...] = ()  # changes that the person tried to undo
    undone: list[str] = field(default_factory=list)  # the result of undoing each change, a line each
    evidence: list[str] = field(default_factory=list)  # what shows that it is done, or speaks against it
    changes: tuple[Change, ...] = ()  # what changed, with the data for undoing it

    @property
    def title(self) -> str:
        return on_one_line(self.instruction)

    @property
    def ending(self) -> tuple[str, Tone]:
        if self.outcome == "unverified":
            return "not confirmed", "doubt"
        if self.status == _STOPPED:
            return "stopped", "doubt"
        if self.status != 0:
            return ("not done" if self.status is not None else self.outcome or "not done"), "bad"
        return ("dry run over", "plain") if self.dry_run else ("done", "good")

    def state_name(self, held_by: Hold = "") -> str:
        """Return the name of the present state. `held_by` is what keeps the run from going on by itself."""
        if self.state == "ended":
            return "OVER" if self.ending[1] == "plain" else self.ending[0].upper()  # beside "DRY RUN"
        if self.state == "running" and held_by == "paused":
            return "PAUSING"  # before the next step
        return _HELD.get(held_by) or _NAMES[self.state]

    @property
    def outcome_words(self) -> str:
        minutes, seconds = divmod(round(self.seconds), 60)
        took = f"{minutes} min {seconds} s" if minutes else f"{self.seconds:.1f} s"
        word, tone = self.ending
        return f"{word} {'after' if tone == 'plain' else 'in'} {took}"

    @property
    def heading(self) -> list[Row]:
        """A finished run as a line above the next one."""
        if not self.instruction:
            return []
        text = "\n".join([self.stage, "", *(line.words for line in self.receipt), "", *self.evidence])
        mark = _ENDED[self.ending[1]]
        return [Row(None, mark, self.title, thought=text.strip(), deed=self.outcome_words, earlier=True)]

    @property
    def active(self) -> bool:
        return self.state not in ("idle", "ended")
