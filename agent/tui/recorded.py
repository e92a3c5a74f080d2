"""Makes a `RunView` of a recorded run, from its bundle."""

from collections.abc import Sequence
from pathlib import Path

from agent.core.actions import Finish, describe
from agent.events.fates import WHYS, WORDS, change_words
from agent.record.read import Bundle, read_bundle
from agent.record.replay import ReplayedStep, replay_as_recorded
from agent.record.step_record import ActionRecord, ApprovalRecord, StepRecord
from agent.safety.naming import unplaced
from agent.tui.action_text import gist
from agent.tui.view import Mark, Row, RunView, deed
from foundation.errors import MaiError

#: The stages that follow one another; others (ttft) lie within one of them.
_STAGES = ("capture", "fit", "encode", "prompt", "model", "parse", "act", "settle")

#: Outcomes of actions that become the mark of their row; and outcomes if the run ended in the middle of the step.
_NOT_DONE: tuple[Mark, ...] = ("refused", "told", "skipped")
_ENDED = ("unanswered", "broken off")


def read_view(path: Path) -> RunView:
    """The run in a folder; if it cannot be read, a view that says why."""
    try:
        return view_of(read_bundle(path))
    except MaiError as error:
        return RunView(instruction=path.name, state="ended", stage=str(error), status=1)


def view_of(bundle: Bundle) -> RunView:
    """The run in a bundle; missing or damaged parts are left out."""
    run = bundle.run
    view = RunView(
        instruction=run.instruction,
        state="ended",
        stage=run.message or bundle.outcome,
        engine=run.engine or "",
        model=run.model or "",
        dry_run=run.dry_run,
        sandbox=run.sandbox or bool(run.sandbox_name),
        step=len(bundle.steps),
        bundle=bundle.path,
        status=run.status,
        seconds=run.seconds or 0.0,
        outcome=bundle.outcome,
        receipt=[] if run.receipt is None else run.receipt.receipt.told,
        evidence=list(run.evidence),
        changes=() if run.receipt is None else run.receipt.receipt.changes,
    )
    for step in bundle.steps:
        for between in step.before:
            if between.words and between.event != "Resumed":
                view.rows.append(Row(None, "note", between.words, between.at or 0.0, 0.0))
        view.rows.append(row_of(step, bundle.path))
    return view


def row_of(step: StepRecord, bundle: Path | None, under_way: Mark | None = None, current: int = -1) -> Row:
    """The row of a step. `under_way` is the mark of an unfinished step, `current` the index of its present action."""
    actions = step.each_action
    target, aim = actions[current].final_action, actions[current].aim.aim
    error = next((one.error for one in actions if one.error), None)
    words = "; ".join(_words(one, under_way) for one in actions)
    approvals = [(one, one.approval) for one in actions if one.approval is not None]
    return Row(
        number=step.step,
        mark="thinking" if under_way and not step.actions else _mark(actions, error, under_way),
        words=f"the answer cannot be used: {error}" if target is None and error else words,
        began=step.at or 0.0,
        seconds=sum(step.milliseconds.get(name, 0.0) for name in _STAGES) / 1000,
        thought=step.thought,
        gist=gist(step.thought, target) if target is not None else "",
        answers=[answer.raw for answer in step.answers],
        target=target,
        viewport=None if step.viewport is None else step.viewport.viewport,
        about=aim.box,
        spot=aim.field,
        image=bundle / step.image.file if bundle and step.image and step.image.file else None,
        found="\n".join(step.how),
        hit="; ".join(one.hit for one in actions if one.hit),
        deed=next(filter(None, (deed(one.answer, one.by, one.note) for _, one in approvals)), ""),
        proposed="; ".join(one.proposed for one in actions if one.changed_to),
        approval="\n".join(_approval(one, asked, under_way) for one, asked in approvals),
        outcome=error or step.reply or _not_done(actions, under_way) or _detail(actions[-1]),
        note=step.note or "",
        tokens=(step.tokens.prompt, step.tokens.completion, step.tokens.cached),
        milliseconds=step.milliseconds,
    )


def _words(action: ActionRecord, under_way: Mark | None) -> str:
    """The action in words; without its place until its target is known."""
    final = action.final_action
    if under_way and final is not None and action.fate == "broken off" and action.approval is None:
        return unplaced(final)
    return action.words or ("thinking" if under_way else "no action")


def _not_done(actions: list[ActionRecord], under_way: Mark | None) -> str:
    """The reason why an action was not carried out; "" if all were, or may still be."""
    why = WHYS if under_way else (*WHYS, *_ENDED)
    return next((WORDS[one.became] for one in actions if one.became in why), "")


def _detail(action: ActionRecord) -> str:
    """The hand's own words, unless they repeat the action's."""
    return "" if action.detail in (None, action.words) else action.detail


def _mark(actions: list[ActionRecord], error: str | None, under_way: Mark | None) -> Mark:
    last = actions[-1].final_action
    if error or (isinstance(last, Finish) and not last.success):
        return "failed"
    fates = [one.became for one in actions]
    for mark in _NOT_DONE:
        if mark in fates:
            return mark
    if "overtaken" in fates:
        return "skipped"
    if fates[-1] in _ENDED:
        return under_way or "failed"
    return "dry" if fates[-1] == "dry run" else "done"


def _approval(action: ActionRecord, approval: ApprovalRecord, under_way: Mark | None) -> str:
    question = f"asked because {approval.reason}"
    if under_way == "asking" and approval.answer is None:
        return question
    if approval.instead is None:
        return f"{question}: {approval.words}"
    reason, by = approval.instead_reason, approval.by or "you"
    return f"{question}\n{change_words(action.changed_to, by, reason, approval.note)}"


def replayed_view(bundle: Bundle) -> RunView:
    """A bundle's decisions, replayed dry. Raises UsageError for a step that lacks what a replay needs."""
    steps = list(replay_as_recorded(bundle))
    view = view_of(bundle)
    recorded = {row.number: row for row in view.rows if row.number is not None}
    view.rows = [_replayed_row(step, recorded.get(step.step)) for step in steps]
    view.stage, view.receipt, view.evidence, view.changes = _told(steps), [], [], ()
    view.status = 0 if all(step.same for step in steps) else 1
    return view


def _told(steps: Sequence[ReplayedStep]) -> str:
    other = list(dict.fromkeys(step.step for step in steps if not step.same))
    asks = sum(step.reason_to_ask is not None for step in steps)
    ends = f"these differ now: {', '.join(map(str, other))}." if other else "all come out the same."
    return f"{len(steps)} decisions replayed; {asks} would be asked about; {ends}"


def _replayed_row(step: ReplayedStep, recorded: Row | None) -> Row:
    row = Row(step.step, _replayed_mark(step), "", thought=step.thought, target=step.target, hit=step.hit)
    row.words = step.failure or "" if step.target is None else describe(step.target)
    if step.same and recorded is not None and recorded.target == step.target:  # it has the elements' names
        row.words = recorded.words
    row.approval = f"would be asked about: {step.reason_to_ask}" if step.reason_to_ask else ""
    if recorded is not None:
        row.answers, row.viewport, row.image = recorded.answers, recorded.viewport, recorded.image
        row.about, row.spot = recorded.about, recorded.spot
    if not step.same:
        row.words = f"≠ {row.words}"
        row.outcome = "differs from the recording" + (f": {recorded.words}" if recorded else "")
    return row


def _replayed_mark(step: ReplayedStep) -> Mark:
    if not step.same or step.target is None:
        return "failed"
    return "asking" if step.reason_to_ask is not None else "dry"
