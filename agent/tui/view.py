"""What a run looks like to a person: plain values that widgets draw, and that know no widget."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from agent.actions import Action
from agent.geometry import DesktopPoint, Viewport

Mark: TypeAlias = Literal["thinking", "asking", "acting", "done", "dry", "failed", "skipped", "note"]
State: TypeAlias = Literal["idle", "preparing", "running", "asking", "paused", "ended"]

#: One character for every mark, in the fonts that terminals have.
SIGNS: dict[Mark, str] = {
    "thinking": "·", "asking": "?", "acting": "▸", "done": "✓", "dry": "○", "failed": "✗", "skipped": "–", "note": "●",
}  # fmt: skip


@dataclass(slots=True)
class Row:
    """One line of the history: a step of the run, or something that happened between two steps.

    Args:
        number: of the step; None for what is no step.
        mark: how it stands.
        words: what it does.
        began: seconds since the run began.
        seconds: how long it took; None while it goes on.
        thought: the model's reasoning, or the answer so far while it streams in.
        answers: the raw answers, several when some could not be read.
        target: the action in desktop units.
        viewport: how the screenshot lies on the desktop.
        image: the screenshot's file.
        data: the screenshot itself, where no file of it is known.
        approval: what was asked and decided.
        gist: why it is done, on one line.
        outcome: what became of it, when that says more than the mark.
        note: what the model was told about it.
        tokens: prompt, completion and cached tokens; None where the server does not tell.
        milliseconds: of every stage.
    """

    number: int | None
    mark: Mark
    words: str
    began: float = 0.0
    seconds: float | None = None
    thought: str = ""
    answers: list[str] = field(default_factory=list)
    target: Action[DesktopPoint] | None = None
    viewport: Viewport | None = None
    image: Path | None = None
    data: bytes | None = None
    approval: str = ""
    gist: str = ""
    outcome: str = ""
    note: str = ""
    tokens: tuple[int | None, int | None, int | None] = (None, None, None)
    milliseconds: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class RunView:
    """One run.

    Args:
        instruction: what it is to do.
        state: what it is doing.
        rows: its history.
        stage: the last word about what it waits for: a server's start, a pause's reason, its end.
        engine, model: who decides.
        dry_run: nothing is touched.
        sandbox: on a throw-away desktop.
        step: the step under way.
        max_steps: its limit; None where it is not known.
        bundle: where it is recorded.
        status: its exit status once it ended.
    """

    instruction: str = ""
    state: State = "idle"
    rows: list[Row] = field(default_factory=list)
    stage: str = ""
    engine: str = ""
    model: str = ""
    dry_run: bool = False
    sandbox: bool = False
    step: int = 0
    max_steps: int | None = None
    bundle: Path | None = None
    status: int | None = None
    tokens: int = 0
    seconds: float = 0.0

    @property
    def active(self) -> bool:
        """Whether it is under way, in whatever way."""
        return self.state not in ("idle", "ended")
