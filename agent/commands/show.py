"""`mai-agent show RUN`: one recorded run, step by step."""

import json
from collections.abc import Sequence
from typing import Any

from agent.commands.arguments import add_runs
from agent.record.folders import runs_dir
from agent.record.read import find_bundle
from agent.settings import load_settings
from foundation.arguments import Parser


def main(argv: Sequence[str]) -> int:
    """Show it."""
    parser = Parser(prog="mai-agent show", description="Show one recorded run.")
    parser.add_argument("run", metavar="RUN", help='an id (or its beginning), a folder, or "last"')
    parser.add_argument("--json", action="store_true", help="the whole bundle as one JSON object")
    add_runs(parser)
    options = parser.parse_args(argv)
    bundle = find_bundle(runs_dir(options.runs, load_settings()), options.run)
    if options.json:
        print(json.dumps({"path": str(bundle.path), "run": bundle.meta, "steps": bundle.steps}))
        return 0
    meta = bundle.meta
    print(f"{meta.get('instruction', '')}\n{bundle.path}")
    mode = ", dry run" if meta.get("dry_run") else ""
    print(f"engine {meta.get('engine')} · model {meta.get('model')} · started {meta.get('started')}{mode}")
    for step in bundle.steps:
        _print_step(step)
    print(f"{bundle.outcome}: {meta.get('message', '')}")
    return 0


def _print_step(step: dict[str, Any]) -> None:
    image = step.get("image") or {}
    print(f"\nstep {step.get('step')}  {image.get('file', 'no screenshot')}  ({_milliseconds(step)})")
    for label, value in (
        ("thought", " ".join(str(step.get("thought") or "").split())),
        ("decided", json.dumps(step["target"], ensure_ascii=False) if step.get("target") else ""),
        ("approval", _approval(step.get("approval"))),
        ("result", _result(step)),
        ("note", step.get("note")),
        ("reply", step.get("reply")),
    ):
        if value:
            print(f"  {label:9}{value}")


def _approval(approval: dict[str, Any] | None) -> str:
    if not approval:
        return ""
    allowed = approval.get("allowed")
    verdict = "not decided" if allowed is None else "allowed" if allowed else "not allowed"
    by = f" by {approval['by']}" if approval.get("by") else ""
    return f"{verdict}{by}: {approval.get('reason')}"


def _result(step: dict[str, Any]) -> str:
    if step.get("error"):
        return f"failed: {step['error']}"
    word = "dry run" if step.get("dry_run") else "done" if step.get("executed") else ""
    return f"{word}: {step['detail']}" if word and step.get("detail") else word


def _milliseconds(step: dict[str, Any]) -> str:
    times = step.get("milliseconds") or {}
    shown = [f"{name} {times[name]:.0f}" for name in ("capture", "encode", "model", "act", "settle") if name in times]
    return " ".join([*shown, "ms"])
