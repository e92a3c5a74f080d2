"""`mai-agent report RUN`: one recorded run as a single HTML file, and as an animation."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from agent.commands.arguments import add_recorded_run, recorded_run
from agent.record.read import Bundle, mask_run, read_bundle
from agent.record.redactor import Redactor
from agent.record.report.page import write_report
from foundation.command_line import Parser
from foundation.printing import put, put_json, remark

#: What was written, in the form that --json prints.
Said: TypeAlias = dict[str, Any]


def _parser() -> Parser:
    parser = Parser(
        prog="mai-agent report",
        description="Write one recorded run as a single HTML file that can be kept, sent and opened anywhere.",
        epilog="Screenshots are shown as they were: --redact masks texts, not pictures.",
    )
    add_recorded_run(parser)
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help="the file to write (default: report.html in the run's folder)"
    )
    parser.add_argument(
        "--webp", metavar="FILE", nargs="?", type=Path, const=Path(),
        help="also write the run as an animation (default: run.webp beside the report)",
    )  # fmt: skip
    parser.add_argument(
        "--redact", metavar="TEXT", action="append", default=[],
        help="mask this text in what is written; can be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--redact-run", action="store_true",
        help="mask it in the run's own files too, and what the rules find there; this cannot be undone",
    )  # fmt: skip
    parser.add_argument("--open", action="store_true", help="open the report in the browser")
    parser.add_argument("--json", action="store_true", help="say what was written as one JSON object")
    return parser


def main(argv: Sequence[str]) -> int:
    """Write the report."""
    options = _parser().parse_args(argv)
    bundle = recorded_run(options)
    redactor = Redactor(secrets=options.redact) if options.redact else None
    changed = None
    if options.redact_run:
        changed = mask_run(bundle, redactor or Redactor())
        bundle = read_bundle(bundle.path)
    report = write_report(bundle, options.output, redactor)
    summary: Said = {
        "report": str(report.path), "bytes": report.bytes, "steps": len(bundle.steps), "pictures": report.pictures,
        "missing": report.missing, "reduced": report.reduced,
    }  # fmt: skip
    if changed is not None:
        summary["masked_lines"] = changed
    if options.webp is not None:
        summary |= _animation(options, bundle, report.path, redactor)
    _tell(summary, options)
    if options.open:
        import webbrowser

        if not webbrowser.open(report.path.resolve().as_uri()):
            remark("No browser could be started; open the file yourself.")
    return 0


def _animation(options: argparse.Namespace, bundle: Bundle, report: Path, redactor: Redactor | None) -> Said:
    from agent.record.animate import write_animation

    path = options.webp if options.webp.name else report.with_name("run.webp")
    animation = write_animation(bundle, path, redactor)
    return {"webp": str(animation.path), "webp_bytes": animation.bytes, "webp_frames": animation.frames}


def _tell(summary: Said, options: argparse.Namespace) -> None:
    if options.json:
        put_json(summary)
        return
    put(f"{summary['report']} ({_size(summary['bytes'])})")
    if "masked_lines" in summary:
        put(
            f"{summary['masked_lines']} of the run's lines were masked; its screenshots and its folder's name were not."
        )
    if summary["missing"]:
        put(f"{summary['missing']} of {summary['steps']} steps have no screenshot that can be shown.")
    if summary["reduced"]:
        put(f"{summary['reduced']} screenshots were made smaller to keep the file small.")
    if "webp" in summary:
        put(f"{summary['webp']} ({_size(summary['webp_bytes'])}, {summary['webp_frames']} frames)")


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.0f} kB"
