"""`mai-agent runs`, `show`, `undo` and `replay`: list, show and undo recorded runs, and decide them again (dry run)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.commands.arguments import add_options, add_recorded_run, recorded_run, tell
from agent.core.actions import TOUCHING, describe, shorten
from agent.core.actions import to_json as action_json
from agent.events.fates import WORDS
from agent.record.read import Bundle, list_bundles
from agent.record.run_record import ReceiptRecord
from agent.record.step_record import ActionRecord, StepRecord
from agent.settings import load_settings, runs_dir
from foundation.command_line import Parser, positive
from foundation.errors import ExitStatus, UsageError
from foundation.foreign_text import on_one_line
from foundation.printing import counted, put, put_json
from foundation.stray_output import LOG_NAME, stray_output_kept

if TYPE_CHECKING:
    from agent.evidence.undo import Item, Result
    from agent.record.replay import ReplayedStep
    from agent.record.undo_run import RunUndo


def main(argv: Sequence[str]) -> int:
    """List the recorded runs."""
    parser = Parser(prog="mai-agent runs", description="List recorded runs, newest first.")
    parser.add_argument("--limit", metavar="N", type=positive, default=20, help="maximum number of runs (default 20)")
    parser.add_argument("--json", action="store_true", help="one object per line")
    add_options(parser, "runs", titled=False)
    options = parser.parse_args(argv)
    folder = runs_dir(options.runs, load_settings())
    bundles = list_bundles(folder, options.limit)
    for bundle in bundles:
        tell(options.json, _summary(bundle), _line(bundle))
    if not bundles and not options.json:
        put(f"There are no runs in {folder}.")
    return 0


def _summary(bundle: Bundle) -> dict[str, object]:
    run = bundle.run
    return {
        "id": bundle.path.name, "path": str(bundle.path), "instruction": run.instruction,
        "started": run.started or None, "outcome": bundle.outcome, "status": run.status,
        "steps": bundle.step_count, "engine": run.engine,
    }  # fmt: skip


def _line(bundle: Bundle) -> str:
    steps = counted(bundle.step_count, "step")
    return f"{bundle.path.name:58} {bundle.outcome:13} {steps:>9}  {on_one_line(bundle.run.instruction[:60])}"


def show_main(argv: Sequence[str]) -> int:
    """Show a recorded run."""
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
        _print_step(step, noted=bool(answered) and answered[-1] > number)
    put("", *receipt_lines(run.receipt))
    if run.undone:
        put("", f"undone, {run.undone[-1].at}:")
        for one in run.undone:
            put(f"  {on_one_line(f'{one.kind} {one.what}')}: {'' if one.done else 'not undone: '}{one.words}")
    if (bundle.path / LOG_NAME).is_file():
        put(f"what libraries printed: {bundle.path / LOG_NAME}")
    put(*(f"evidence: {on_one_line(evidence)}" for evidence in run.evidence))
    put(f"{bundle.outcome}: {on_one_line(run.message) or 'no end recorded; its process is gone or running'}")
    return 0


def receipt_lines(receipt: ReceiptRecord | None, heading: str = "what changed") -> list[str]:
    """Return what a run changed, as lines; or a line that says that it was not recorded."""
    if receipt is None:
        return [f"{heading}: not recorded"]
    return [f"{heading}:", *(f"  {on_one_line(line)}" for line in receipt.receipt.lines)]


def _print_step(step: StepRecord, *, noted: bool) -> None:
    """Print a step; `noted` says whether the model was asked again, and so got the step's note."""
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
    _print_facts(**{"told" if noted else "not told": step.note})


def _print_action(action: ActionRecord) -> None:
    approval = action.approval
    _print_facts(proposed=action.proposed, whole=_whole(action.target))
    if approval is not None and approval.instead is None:
        _print_facts(asked=approval.reason, answer=approval.words)
    elif approval is not None:
        _print_facts(asked=approval.reason, answer=f"{approval.words} to: {action.changed_to}")
        _print_facts(whole=_whole(approval.instead))
        _print_facts(**{"for that": approval.instead_reason and f"would be asked about too: {approval.instead_reason}"})
    _print_facts(on=action.hit, result=_result(action))


def _whole(data: dict[str, Any] | None) -> str:
    """Return an action's texts as JSON if its description shortens or changes them."""
    texts = [text for text in (data or {}).values() if isinstance(text, str)]
    return "; ".join(json.dumps(text, ensure_ascii=False) for text in texts if shorten(text) != f"“{text}”")


def _print_facts(**facts: str | None) -> None:
    for label, value in facts.items():
        if value:
            put(f"  {label:9}{on_one_line(value)}")


def _result(action: ActionRecord) -> str:
    word = WORDS[action.became]
    detail = (
        action.error if action.became == "failed" else action.detail if action.became in ("done", "dry run") else ""
    )
    return f"{word}: {detail}" if detail else word


def _milliseconds(step: StepRecord) -> str:
    times = step.milliseconds
    shown = [f"{name} {times[name]:.0f}" for name in ("capture", "encode", "model", "act", "settle") if name in times]
    return " ".join([*shown, "ms"])


def undo_main(argv: Sequence[str]) -> int:
    """Show which changes of a run can be undone, and undo them."""
    parser = Parser(
        prog="mai-agent undo",
        description="Put back what a recorded run changed: settings, files that it made, moved, trashed or changed. "
        "What was changed again since stays as it is. Windows and applications are left alone.",
        epilog="Exit status: 0 everything is as it was; 1 something is not; 3 the desktop of that run is gone.",
    )
    add_recorded_run(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be undone")
    parser.add_argument("--json", action="store_true", help="one object with all items; needs --yes or --dry-run")
    options = parser.parse_args(argv)
    if options.json and not (options.yes or options.dry_run):
        raise UsageError("--json cannot ask.", "Add --yes to undo, or --dry-run to see what would be undone.")
    from agent.console.terminal import agreed
    from agent.record.undo_run import RunUndo

    undoing = RunUndo(recorded_run(options))
    if not options.json:
        _show(undoing)
    if undoing.able and not options.dry_run and not options.yes:
        changes = "this change" if len(undoing.able) == 1 else f"these {len(undoing.able)} changes"
        if not agreed(f"Undo {changes}?", "Add --yes to undo it without a question."):
            put("Nothing was undone.")
            return ExitStatus.NOT_DONE
    results = [] if options.dry_run else undoing.carry_out()
    if options.json:
        put_json({"items": [_to_json(item, results) for item in undoing.items]})
    else:
        put(*map(_result_line, results))
    unknown = not undoing.is_known and not undoing.items
    failed = unknown or undoing.leaves_something or any(not result.done for result in results)
    return ExitStatus.NOT_DONE if failed else ExitStatus.DONE


def _show(undoing: "RunUndo") -> None:
    if not undoing.items:
        put(
            "This run changed nothing, as far as is known."
            if undoing.is_known
            else "It is not known what this run changed, so nothing can be undone."
        )
    _lines("will be undone:", undoing.able)
    _lines("stays:", (item for item in undoing.items if item.verdict != "undo"))


def _lines(heading: str, items: "Iterable[Item]") -> None:
    for number, item in enumerate(items):
        if number == 0:
            put(heading)
        put(f"  {item.change}", f"    {item.words}")


def _result_line(result: "Result") -> str:
    change = result.item.change
    return f"{change.kind} {change.what}: {'' if result.done else 'not undone: '}{result.words}"


def _to_json(item: "Item", results: "Sequence[Result]") -> dict[str, object]:
    change = item.change
    data = {"kind": change.kind, "what": change.what, "before": change.before, "after": change.after}
    # Compare whole changes, because two changes of one file share a name. `undo` may differ if a folder was moved back.
    result = next((one for one in results if replace(one.item.change, undo=change.undo) == change), None)
    done = None if result is None else result.done
    return data | {"verdict": item.verdict, "words": item.words if result is None else result.words, "done": done}


@stray_output_kept()
def replay_main(argv: Sequence[str]) -> int:
    """Replay it; status 1 when a decision differs from the recording."""
    parser = Parser(
        prog="mai-agent replay",
        description="Run the decisions of a recorded run through parser, map and policy again, without a model.",
    )
    add_recorded_run(parser)
    parser.add_argument("--json", action="store_true", help="one object per line")
    options = parser.parse_args(argv)
    from agent.record.replay import replay_as_recorded

    bundle = recorded_run(options)
    same = True
    for step in replay_as_recorded(bundle):
        same = same and step.same
        tell(options.json, _replay_json(step), _replay_line(step))
    if not options.json:
        put(*receipt_lines(bundle.run.receipt, "what the recorded run changed"))
    return ExitStatus.DONE if same else ExitStatus.NOT_DONE


def _replay_line(step: "ReplayedStep") -> str:
    action = step.failure if step.target is None else describe(step.target)
    parts = [f"step {step.step}: {action}"]
    if step.reason_to_ask:
        parts.append(f"would ask: {step.reason_to_ask}")
    if step.changed is not None:
        parts.append(f"you changed it to: {step.changed_words}")
    if step.changed_reason:
        parts.append(f"would ask about that too: {step.changed_reason}")
    if step.target is not None and step.fate not in ("done", "dry run", "said"):
        parts.append(WORDS[step.fate])
    if step.hit:
        parts.append(f"was on {step.hit}")
    if not step.same:
        parts.append("differs from the recorded action")
    return " · ".join(parts)


def _replay_json(step: "ReplayedStep") -> dict[str, object]:
    data: dict[str, object] = {
        name: getattr(step, name)
        for name in ("step", "thought", "target", "changed", "failure", "reason_to_ask", "same", "fate", "hit")
    }
    data["target"] = None if step.target is None else action_json(step.target)
    data["changed"] = None if step.changed is None else action_json(step.changed)
    action = step.changed or step.target  # what was carried out, if the person changed it
    return data | {"detail": f"would {describe(action)}" if isinstance(action, TOUCHING) else ""}
