"""A recorded run as a `RunView`: the same picture of a run, read from its bundle."""

from dataclasses import dataclass
from pathlib import Path

from agent.actions import describe
from agent.record.actions import read_action
from agent.record.read import Bundle, list_bundles, read_bundle
from agent.record.schema import ApprovalRecord, StepRecord
from agent.tui.action_text import gist
from agent.tui.view import Mark, Row, RunView
from foundation.errors import MaiError

#: The stages that follow one another; others (ttft) lie within one of them.
_STAGES = ("capture", "fit", "encode", "prompt", "model", "parse", "act", "settle")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of the list of runs; read from run.json alone, so that long runs cost no more than short ones."""

    path: Path
    instruction: str
    when: str
    outcome: str
    steps: int | None
    seconds: float | None

    @property
    def searched(self) -> str:
        """What a search looks at."""
        return f"{self.instruction} {self.outcome} {self.path.name}".casefold()


def summaries(runs: Path) -> list[RunSummary]:
    """The runs below a folder, newest first."""
    return [
        RunSummary(
            bundle.path, bundle.run.instruction, bundle.run.started[:19].replace("T", " "), bundle.outcome,
            bundle.run.steps, bundle.run.seconds,
        )
        for bundle in list_bundles(runs)
    ]  # fmt: skip


def read_view(path: Path) -> RunView:
    """The run in a folder, or what is wrong with it."""
    try:
        return view_of(read_bundle(path))
    except MaiError as error:
        return RunView(instruction=path.name, state="ended", stage=str(error), status=1)


def view_of(bundle: Bundle) -> RunView:
    """The run in a bundle; what is missing or damaged is left out."""
    run = bundle.run
    view = RunView(
        instruction=run.instruction,
        state="ended",
        stage=run.message or bundle.outcome,
        engine=run.engine or "",
        model=run.model or "",
        dry_run=run.dry_run,
        sandbox=run.sandbox,
        step=len(bundle.steps),
        bundle=bundle.path,
        status=run.status,
        seconds=run.seconds or 0.0,
    )
    for step in bundle.steps:
        for between in step.before:
            if between.words and between.event != "Resumed":
                view.rows.append(Row(None, "note", between.words, between.at or 0.0, 0.0))
        view.rows.append(_row(step, bundle))
    return view


def _row(step: StepRecord, bundle: Bundle) -> Row:
    target = read_action(step.target)
    words = describe(target) if target is not None else str((step.target or {}).get("type") or "no action")
    tokens = step.tokens
    return Row(
        number=step.step,
        mark=_mark(step),
        words=f"the answer cannot be used: {step.error}" if target is None and step.error else words,
        began=step.at or 0.0,
        seconds=sum(step.milliseconds.get(name, 0.0) for name in _STAGES) / 1000,
        thought=step.thought,
        gist=gist(step.thought, target) if target is not None else "",
        answers=[answer.raw for answer in step.answers],
        target=target,
        viewport=None if step.viewport is None else step.viewport.viewport,
        image=bundle.path / step.image.file if step.image and step.image.file else None,
        approval=_approval(step.approval),
        outcome=step.error or step.reply or step.detail or "",
        note=step.note or "",
        tokens=(tokens.prompt, tokens.completion, tokens.cached),
        milliseconds=step.milliseconds,
    )


def _mark(step: StepRecord) -> Mark:
    target = step.target or {}
    if step.error or (target.get("type") == "finish" and target.get("success") is False):
        return "failed"
    if step.approval is not None and step.approval.allowed is False:
        return "skipped"
    return "dry" if step.dry_run else "done"


def _approval(approval: ApprovalRecord | None) -> str:
    if approval is None:
        return ""
    note = f", “{approval.note}”" if approval.note else ""
    by = f" by {approval.by}" if approval.by else ""
    return f"{approval.reason}: {approval.verdict}{by}{note}"
