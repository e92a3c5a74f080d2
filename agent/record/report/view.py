"""What a report shows of a bundle, as plain values: texts cut to a length that a page can bear."""

import json
from pathlib import Path
from typing import Any, TypeAlias

from agent.core.actions import Action, Drag, Scroll, points_of
from agent.core.geometry import DesktopPoint, Region
from agent.events.fates import WORDS, Fate
from agent.record.read import Bundle
from agent.record.records import ViewportRecord, read_action
from agent.record.run_record import UndoneRecord
from agent.record.step_record import ActionRecord, ApprovalRecord, StepRecord
from foundation.foreign_text import harmless

Json: TypeAlias = dict[str, Any]

#: The longest text shown; the bundle has the rest.
_MOST_CHARS = 20_000
#: Stages in the order they happen: their name in the report, and the measured parts that make them up.
STAGES = (
    ("look", ("capture", "fit", "encode")), ("prompt", ("prompt",)), ("model", ("model",)),
    ("read", ("parse", "map")), ("approval", ("approval",)), ("act", ("act",)), ("settle", ("settle",)),
)  # fmt: skip
_TOKENS = {"prompt", "completion", "cached"}
#: Fates, the most important first: a step's state is the first of these among its actions.
_FIRST: tuple[Fate, ...] = (
    "failed", "refused", "told", "skipped", "overtaken", "unanswered", "left out", "dry run", "done", "said",
    "broken off",
)  # fmt: skip


def view_run(bundle: Bundle) -> Json:
    """The run as a whole."""
    run = bundle.run
    return {
        "id": _text(run.id or bundle.path.name),
        "instruction": _text(run.instruction),
        "outcome": _text(bundle.outcome),
        "message": _text(run.message),
        "facts": [[name, value] for name, value in _facts(bundle) if value],
        "warnings": [_text(warning) for warning in run.warnings],
        "started": _text(run.started),
        "version": _text(run.version),
        "dry_run": run.dry_run,
        "problem": _problem(bundle),
        "stages": [name for name, _ in STAGES],
        **({} if run.receipt is None else {"changes": [_line(line) for line in run.receipt.receipt.lines]}),
        **({"undone": [_undone(one) for one in run.undone]} if run.undone else {}),
        **({"evidence": [_line(evidence) for evidence in run.evidence]} if run.evidence else {}),
    }


def _undone(one: UndoneRecord) -> str:
    return _line(f"{'' if one.done else 'not undone: '}{one.kind} {one.what}: {one.words}")


def _facts(bundle: Bundle) -> list[tuple[str, str]]:
    run, tokens = bundle.run, bundle.run.tokens
    used = ""
    if tokens is not None and tokens.prompt and tokens.completion is not None:
        used = f"{tokens.prompt:,} in, {tokens.completion:,} out"
    desktop = "sandbox" if run.sandbox or run.sandbox_name else "this desktop"
    return [
        ("engine", _text(run.engine)),
        ("model", _text(run.model)),
        ("family", _text(run.family)),
        *((role, _text(model.model)) for role, model in run.models.items() if role != "actor"),
        ("steps", str(len(bundle.steps))),
        ("duration", "" if run.seconds is None else _duration(run.seconds)),
        ("tokens", used),
        ("desktop", desktop + (", dry run" if run.dry_run else "") if run.engine else ""),
        ("approval", _text(run.approve)),
        ("verified", "" if run.verified is None else "yes" if run.verified else "no"),
        ("masked", f"{run.masked} secrets" if run.masked else ""),
    ]


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _problem(bundle: Bundle) -> str:
    """Return why the run is incomplete, as a sentence; empty if it is complete."""
    if bundle.outcome == "running":
        return "This run is still under way; the report shows it as far as it is recorded."
    if bundle.outcome == "interrupted":
        return "This run broke off without an end: its process is gone. Everything up to its last step is here."
    if not bundle.steps:
        return "No step was recorded."
    counted = bundle.run.steps
    if counted is not None and counted > len(bundle.steps):
        return f"Of {counted} steps only {len(bundle.steps)} are in the bundle."
    return ""


def view_step(step: StepRecord, number: int) -> Json:
    """Return one step; `number` is for a step without its own number. Several actions are shown as one list."""
    actions = step.each_action
    approvals = [action.approval for action in actions]
    changed = next((action for action in actions if action.changed_to), None)
    return {
        "number": number if step.step is None else step.step,
        "title": " · ".join(_title(action) for action in actions),
        "kind": _text((step.final or {}).get("type")),
        "state": _state(step),
        "at": step.at,
        "before": [_text(between.words) for between in step.before if between.words],
        "marks": _marks(step.final_action, step.viewport) or _field(step.aim.aim.field, step.viewport),
        "proposed": None if changed is None else _marks(read_action(changed.target), step.viewport),
        "thought": _text(step.thought),
        "answers": [
            {"raw": _text(answer.raw), "failure": _text(answer.failure and answer.failure.message)}
            for answer in step.answers
        ],
        "call": _pretty([action.call and action.call.model_dump() for action in actions]),
        "model": _pretty([action.action for action in actions]),
        "grid": [int(side) for side in step.grid or ()],
        "screen": _pretty([action.target for action in actions]),
        "instead": _pretty([approval and approval.instead for approval in approvals]),
        "actions": [_action(action) for action in actions if action.target is not None],
        "detail": _text("; ".join(action.detail for action in actions if action.detail)),
        "error": _text(step.error or next((action.error for action in actions if action.error), None)),
        "changed": step.changed,
        "note": _text(step.note),
        **({"found": [_line(words) for words in step.how]} if step.how else {}),
        "reply": _text(step.reply),
        "tokens": {"image": step.image and step.image.tokens, **step.tokens.model_dump(include=_TOKENS)},
        **_times(step),
        **({"hit": _line("; ".join(hit))} if (hit := [action.hit for action in actions if action.hit]) else {}),
    }


def screenshot(bundle: Bundle, step: StepRecord) -> Path | None:
    """The step's screenshot; never a file outside of the bundle, whatever the line says."""
    if step.image is None or "\0" in step.image.file:
        return None
    try:
        file = (bundle.path / step.image.file).resolve()
        return file if file.is_relative_to(bundle.path.resolve()) and file.is_file() else None
    except (OSError, ValueError):
        return None


def _title(action: ActionRecord) -> str:
    if action.final_action is not None:
        return _line(action.words)
    return "no usable answer" if action.error else _line(action.words) or "no decision"


def _state(step: StepRecord) -> str:
    """The fate of a step: among those of its actions, the one that matters most to a person."""
    if step.error:
        return "failed"
    fates = [action.became for action in step.each_action]
    return next(fate for fate in _FIRST if fate in fates)


def _action(action: ActionRecord) -> Json:
    approval = action.approval
    return {
        "proposed": _line(action.proposed),
        "changed": _line(action.changed_to),
        "fate": action.became,
        "words": WORDS[action.became],
        "approval": None if approval is None else _approval(approval),
        "detail": _text(action.detail),
        "error": _text(action.error),
        "hit": _line(action.hit),
    }


def _approval(approval: ApprovalRecord) -> Json:
    return {
        "reason": _text(approval.reason),
        "answer": _text(approval.words),
        "changed_reason": _text(approval.instead_reason),
        "always": _text(approval.scope) if approval.always else "",
        "at": approval.at,
        "milliseconds": approval.milliseconds,
    }


def _times(step: StepRecord) -> Json:
    waited = sum(action.approval.milliseconds for action in step.each_action if action.approval)
    measured = step.milliseconds | ({"approval": waited} if waited else {})
    return {
        "times": [round(sum(measured.get(part, 0.0) for part in parts), 2) for _, parts in STAGES],
        "ttft": measured.get("ttft"),
    }


def _marks(action: Action[DesktopPoint] | None, viewport: ViewportRecord | None) -> Json | None:
    if viewport is None:
        return None

    def share(point: DesktopPoint) -> list[float]:
        x, y = (point.x - viewport.left) / viewport.width, (point.y - viewport.top) / viewport.height
        return [round(x, 5), round(y, 5)]

    points = [share(point) for point in points_of(action)] if action is not None else []
    match action:
        case Drag():
            return {"kind": "drag", "points": points}
        case Scroll(_, dx, dy):
            way = [(dx > 0) - (dx < 0), (dy > 0) - (dy < 0)]
            return {"kind": "scroll", "points": points or [[0.5, 0.5]], "way": way}
    return {"kind": "point", "points": points} if points else None


def _field(field: Region | None, viewport: ViewportRecord | None) -> Json | None:
    """The middle and the box of the field that got the typed text, as shares of the screenshot's sides."""
    if field is None or viewport is None:
        return None
    left, top = (field.left - viewport.left) / viewport.width, (field.top - viewport.top) / viewport.height
    width, height = field.width / viewport.width, field.height / viewport.height
    box = [round(share, 5) for share in (left, top, width, height)]
    return {"kind": "field", "points": [[round(left + width / 2, 5), round(top + height / 2, 5)]], "box": box}


def _pretty(values: list[Any]) -> str:
    """The values as indented JSON; a single value without a list around it."""
    if all(value is None for value in values):
        return ""
    return _text(json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False, indent=1, default=str))


def _line(value: str) -> str:
    """Foreign text on one line, with invisible and bidi characters spelled out."""
    return _text(" ".join(value.split()))


def _text(value: object) -> str:
    """Foreign text, cut, with invisible and bidi characters spelled out."""
    text = "" if value is None else str(value)
    if len(text) > _MOST_CHARS:
        return f"{harmless(text[:_MOST_CHARS])}… ({len(text) - _MOST_CHARS:,} more characters are in the bundle)"
    return harmless(text)
