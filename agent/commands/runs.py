"""`mai-agent runs`: the recorded runs, newest first."""

from collections.abc import Sequence

from agent.commands.arguments import add_options
from agent.record.read import Bundle, list_bundles, runs_dir
from agent.settings import load_settings
from foundation.command_line import Parser, positive
from foundation.foreign_text import on_one_line
from foundation.printing import put, put_json


def main(argv: Sequence[str]) -> int:
    """List them."""
    parser = Parser(prog="mai-agent runs", description="List recorded runs, newest first.")
    parser.add_argument("--limit", metavar="N", type=positive, default=20, help="at most so many (default 20)")
    parser.add_argument("--json", action="store_true", help="one object per line")
    add_options(parser, "runs", titled=False)
    options = parser.parse_args(argv)
    folder = runs_dir(options.runs, load_settings())
    bundles = list_bundles(folder, options.limit)
    for bundle in bundles:
        if options.json:
            put_json(_summary(bundle))
        else:
            put(_line(bundle))
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
    steps = f"{bundle.step_count} steps"
    return f"{bundle.path.name:58} {bundle.outcome:13} {steps:>9}  {on_one_line(bundle.run.instruction[:60])}"
