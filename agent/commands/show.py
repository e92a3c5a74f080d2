"""`mai-agent show RUN`: one recorded run, step by step."""

import json
from collections.abc import Sequence

from agent.commands.arguments import add_recorded_run, recorded_run
from agent.record.schema import ActionRecord, ApprovalRecord, StepRecord
from foundation.arguments import Parser
from foundation.foreign_text import on_one_line
from foundation.printing import put, put_json


def main(argv: Sequence[str]) -> int:
    """Show it."""
    parser = Parser(prog="mai-agent show", description="Show one recorded run.")
    add_recorded_run(parser)
    parser.add_argument("--json", action="store_true", help="the whole bundle as one JSON object")
    options = parser.parse_args(argv)
    bundle = recorded_run(options)
    run = bundle.run
    if options.json:
        steps = [step.model_dump() for step in bundle.steps]
        put_json({"path": str(bundle.path), "run": run.model_dump(), "steps": steps})
        return 0
    mode = ", dry run" if run.dry_run else ""
    put(on_one_line(run.instruction), str(bundle.path))
    put(f"engine {run.engine} · model {run.model} · started {run.started}{mode}")
    for step in bundle.steps:
        _print_step(step)
    if run.receipt is not None:
        put("", "what changed:", *(f"  {on_one_line(line)}" for line in run.receipt.receipt.lines))
    if run.undone:
        put("", f"undone, {run.undone[-1].at}:")
        for one in run.undone:
            put(f"  {on_one_line(f'{one.kind} {one.what}')}: {'' if one.done else 'not undone: '}{one.words}")
    put(*(f"evidence: {on_one_line(evidence)}" for evidence in run.evidence))
    put(f"{bundle.outcome}: {on_one_line(run.message)}")
    return 0


def _print_step(step: StepRecord) -> None:
    shown = " ".join(image.file for image in step.images if image.file) or "no screenshot"
    put("", f"step {step.step}  {shown}  ({_milliseconds(step)})")
    _print_facts(thought=" ".join(step.thought.split()))
    for action in step.each_action:
        decided = json.dumps(action.target, ensure_ascii=False) if action.target else ""
        approval = _approval(action.approval)
        _print_facts(decided=decided, on=action.hit, approval=approval, result=_result(action))
    _print_facts(note=step.note, reply=step.reply)


def _print_facts(**facts: str | None) -> None:
    for label, value in facts.items():
        if value:
            put(f"  {label:9}{on_one_line(value)}")


def _approval(approval: ApprovalRecord | None) -> str:
    if approval is None:
        return ""
    by = f" by {approval.by}" if approval.by else ""
    return f"{approval.verdict}{by}: {approval.reason}"


def _result(action: ActionRecord) -> str:
    if action.error:
        return f"failed: {action.error}"
    word = "dry run" if action.dry_run else "done" if action.executed else ""
    return f"{word}: {action.detail}" if word and action.detail else word


def _milliseconds(step: StepRecord) -> str:
    times = step.milliseconds
    shown = [f"{name} {times[name]:.0f}" for name in ("capture", "encode", "model", "act", "settle") if name in times]
    return " ".join([*shown, "ms"])
