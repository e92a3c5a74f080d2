"""`mai-agent show RUN`: one recorded run, step by step."""

import json
from collections.abc import Sequence
from typing import Any

from agent.commands.arguments import add_recorded_run, recorded_run
from agent.core.actions import shorten
from agent.events.fates import WORDS
from agent.record.run_record import ReceiptRecord
from agent.record.step_record import ActionRecord, StepRecord
from foundation.command_line import Parser
from foundation.foreign_text import on_one_line
from foundation.printing import put, put_json
from foundation.stray_output import LOG_NAME


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
    answered = [number for number, step in enumerate(bundle.steps) if step.answers]
    for number, step in enumerate(bundle.steps):
        _print_step(step, told=bool(answered) and answered[-1] > number)
    put("", *receipt_lines(run.receipt))
    if run.undone:
        put("", f"undone, {run.undone[-1].at}:")
        for one in run.undone:
            put(f"  {on_one_line(f'{one.kind} {one.what}')}: {'' if one.done else 'not undone: '}{one.words}")
    if (bundle.path / LOG_NAME).is_file():
        put(f"what libraries printed: {bundle.path / LOG_NAME}")
    put(*(f"evidence: {on_one_line(evidence)}" for evidence in run.evidence))
    put(f"{bundle.outcome}: {on_one_line(run.message)}")
    return 0


def receipt_lines(receipt: ReceiptRecord | None, heading: str = "what changed") -> list[str]:
    """What a run changed, as lines; also where that is not known."""
    if receipt is None:
        return [f"{heading}: not recorded"]
    return [f"{heading}:", *(f"  {on_one_line(line)}" for line in receipt.receipt.lines)]


def _print_step(step: StepRecord, *, told: bool) -> None:
    """One step; `told` says whether the model was asked again after it, and so got what was noted for it."""
    put("", *(on_one_line(between.words) for between in step.before if between.words))
    shown = " ".join(image.file for image in step.images if image.file) or "no screenshot"
    put(f"step {step.step}  {shown}  ({_milliseconds(step)})")
    for answer in step.answers:
        _print_facts(unusable=answer.failure.message if answer.failure else None)
    _print_facts(thought=step.thought, by="" if step.by == "actor" else f"the {step.by}")
    for words in step.found:
        _print_facts(found=words)
    for action in step.actions:
        _print_action(action)
    _print_facts(reply=step.reply)
    _print_facts(**{"told" if told else "not told": step.note})


def _print_action(action: ActionRecord) -> None:
    """One action: what the model proposed with the reasons to ask, what the person made of it, what became of it."""
    asked = action.approval
    _print_facts(proposed=action.proposed, whole=_whole(action.target))
    if asked is not None and asked.instead is None:
        _print_facts(asked=asked.reason, answer=asked.words)
    elif asked is not None:
        _print_facts(asked=asked.reason, answer=f"{asked.words} to: {action.changed_to}")
        _print_facts(whole=_whole(asked.instead))
        _print_facts(**{"for that": asked.instead_reason and f"would be asked about too: {asked.instead_reason}"})
    _print_facts(on=action.hit, result=_result(action))


def _whole(told: dict[str, Any] | None) -> str:
    """The texts of an action as JSON, where its words leave something of them out, be it only a line end; else ""."""
    texts = [text for text in (told or {}).values() if isinstance(text, str)]
    return "; ".join(json.dumps(text, ensure_ascii=False) for text in texts if shorten(text) != f"“{text}”")


def _print_facts(**facts: str | None) -> None:
    for label, value in facts.items():
        if value:
            put(f"  {label:9}{on_one_line(value)}")


def _result(action: ActionRecord) -> str:
    word = WORDS[action.became]
    said = action.error if action.became == "failed" else action.detail if action.became in ("done", "dry run") else ""
    return f"{word}: {said}" if said else word


def _milliseconds(step: StepRecord) -> str:
    times = step.milliseconds
    shown = [f"{name} {times[name]:.0f}" for name in ("capture", "encode", "model", "act", "settle") if name in times]
    return " ".join([*shown, "ms"])
