"""`mai-agent undo RUN`: puts back what a recorded run changed; shows it first, and asks."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agent.commands.arguments import add_recorded_run, recorded_run
from foundation.command_line import Parser
from foundation.errors import ExitStatus, UsageError
from foundation.printing import ask_for, put, put_json

if TYPE_CHECKING:
    from agent.evidence.undo import Result
    from agent.evidence.undo_plan import Item
from agent.record.undo import RunUndo


def main(argv: Sequence[str]) -> int:
    """Show what can be undone; undo it."""
    parser = Parser(
        prog="mai-agent undo",
        description="Put back what a recorded run changed: settings, files that it made, moved, trashed or changed. "
        "What something else changed since stays as it is. Windows and applications are left alone.",
        epilog="Exit status: 0 everything is as it was; 1 something is not; 3 the desktop of that run is gone.",
    )
    add_recorded_run(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be undone")
    parser.add_argument("--json", action="store_true", help="one object with all items; needs --yes or --dry-run")
    options = parser.parse_args(argv)
    if options.json and not (options.yes or options.dry_run):
        raise UsageError("--json cannot ask.", "Add --yes to undo, or --dry-run to see what would be undone.")
    from agent.record.undo import RunUndo

    undoing = RunUndo(recorded_run(options))
    if not options.json:
        _show(undoing)
    if undoing.able and not options.dry_run and not options.yes and not _agreed(len(undoing.able)):
        put("Nothing was undone.")
        return ExitStatus.NOT_DONE
    results = [] if options.dry_run else undoing.carry_out()
    if options.json:
        put_json({"items": [_to_json(item, results) for item in undoing.items]})
    else:
        _tell(results)
    failed = undoing.leaves_something or any(not result.done for result in results)
    return ExitStatus.NOT_DONE if failed else ExitStatus.DONE


def _show(undoing: "RunUndo") -> None:
    if not undoing.items:
        put("This run changed nothing, as far as is known.")
    _lines("will be undone:", undoing.able)
    _lines("stays:", (item for item in undoing.items if item.verdict != "undo"))


def _lines(heading: str, items: "Iterable[Item]") -> None:
    for number, item in enumerate(items):
        if number == 0:
            put(heading)
        put(f"  {item.change}", f"    {item.words}")


def _tell(results: "Sequence[Result]") -> None:
    for result in results:
        told = f"{'' if result.done else 'not undone: '}{result.words}"
        put(f"{result.item.change.kind} {result.item.change.what}: {told}")


def _agreed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("Nobody is here to agree.", "Add --yes to undo it without a question.")
    ask_for(f"Undo {'this change' if count == 1 else f'these {count} changes'}? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _to_json(item: "Item", results: "Sequence[Result]") -> dict[str, object]:
    change = item.change
    told = {"kind": change.kind, "what": change.what, "before": change.before, "after": change.after}
    result = next(
        (one for one in results if (one.item.change.kind, one.item.change.what) == (change.kind, change.what)), None
    )
    done = None if result is None else result.done
    return told | {"verdict": item.verdict, "words": item.words if result is None else result.words, "done": done}
