"""A replay as a `RunView`: what a run's decisions come to now, read and judged anew, beside what they were."""

from collections.abc import Sequence

from agent.core.actions import describe
from agent.record.read import Bundle
from agent.record.replay import ReplayedStep, replay_as_recorded
from agent.tui.recorded import view_of
from agent.tui.view import Mark, Row, RunView


def replayed_view(bundle: Bundle) -> RunView:
    """The decisions of a bundle, replayed dry. Raises UsageError where a step lacks what that needs."""
    steps = list(replay_as_recorded(bundle))
    view = view_of(bundle)
    recorded = {row.number: row for row in view.rows if row.number is not None}
    view.rows = [_row(step, recorded.get(step.step)) for step in steps]
    view.stage, view.receipt, view.evidence, view.changes = _told(steps), [], [], ()
    view.status = 0 if all(step.same for step in steps) else 1
    return view


def _told(steps: Sequence[ReplayedStep]) -> str:
    other = list(dict.fromkeys(step.step for step in steps if not step.same))
    asks = sum(step.reason_to_ask is not None for step in steps)
    ends = f"these come out otherwise now: {', '.join(map(str, other))}." if other else "all come out the same."
    return f"{len(steps)} decisions replayed; {asks} would be asked about; {ends}"


def _row(step: ReplayedStep, recorded: Row | None) -> Row:
    row = Row(step.step, _mark(step), "", thought=step.thought, target=step.target, hit=step.hit)
    row.words = step.failure or "" if step.target is None else describe(step.target)
    if step.same and recorded is not None and recorded.target == step.target:  # that knows what things are called
        row.words = recorded.words
    row.approval = f"would be asked about: {step.reason_to_ask}" if step.reason_to_ask else ""
    if recorded is not None:
        row.answers, row.viewport, row.image = recorded.answers, recorded.viewport, recorded.image
        row.about, row.spot = recorded.about, recorded.spot
    if not step.same:
        row.words = f"≠ {row.words}"
        row.outcome = "comes out otherwise than it was recorded" + (f": {recorded.words}" if recorded else "")
    return row


def _mark(step: ReplayedStep) -> Mark:
    if not step.same or step.target is None:
        return "failed"
    return "asking" if step.reason_to_ask is not None else "dry"
