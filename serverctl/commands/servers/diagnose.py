"""`mai-server diagnose`: explain a vLLM log."""

import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foundation.command_line import Parser
from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError
from foundation.printing import put, put_json
from serverctl.diagnose.classify import Failure, classify_log
from serverctl.diagnose.failures import Kind
from serverctl.diagnose.stages import Stage
from serverctl.plan.memory import KvVerdict, judge_kv
from serverctl.process import control
from serverctl.process.logs import all_lines, log_files
from serverctl.process.state import Folder


def main(arguments: list[str]) -> int:
    """Explain a log."""
    parser = Parser(
        "mai-server diagnose",
        description="Explain a vLLM log: how far the start came, what failed, the line that says so, and what to do.",
        epilog="exit status: 0 a failure was explained, or there is none; 1 there is one of no known "
        "class\n\nexamples:\n"
        "  mai-server diagnose                   the last server of mai-server\n  mai-server diagnose vllm.log\n"
        "  some-command 2>&1 | mai-server diagnose -",
    )
    add = parser.add_argument
    add("log", nargs="?", help="a log file; - for standard input; default: the server's own log")
    add("--exit-status", type=int, metavar="N", help="of the process, where known (negative for a signal)")
    add("--name", default=control.DEFAULT_NAME, help="which server's log")
    add("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    failure = classify_log(_lines(options.log, options.name), options.exit_status)
    if not options.json and _of_something_else(failure):
        raise UsageError("Nothing in it was printed by vLLM.", "Name the log of a vLLM server.")
    if options.json:
        put_json(to_json(failure), indent=1)
    else:
        put(*lines_of(failure))
    return ExitStatus.NOT_DONE if failure.kind is Kind.EXITED else ExitStatus.DONE


def _of_something_else(failure: Failure) -> bool:
    """Whether no line of a log is vLLM's."""
    return failure.kind is Kind.NONE and failure.stage is Stage.LAUNCHED and failure.report.version is None


def _lines(name: str | None, server: str) -> Iterable[str]:
    if name == "-":
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        return sys.stdin
    if name is None:
        folder = Folder(server)
        if not log_files(folder.log_file):
            raise EnvironmentLacksError(
                f"There is no log of a server named {server!r}.", "Name a file: mai-server diagnose vllm.log."
            )
        return all_lines(folder.log_file)
    try:
        return Path(name).expanduser().open(encoding="utf-8", errors="replace")  # a log may be gigabytes
    except OSError as error:
        raise UsageError(
            f"{name} cannot be read: {error.strerror}.", "Name a log file, or - for standard input."
        ) from error


def to_json(failure: Failure) -> dict[str, Any]:
    """A diagnosis as JSON values: class, title, cause, remedy, evidence, stage, numbers, and the start's report."""
    return {
        **failure.to_json(),
        "failed": failure.kind is not Kind.NONE,
        "of_vllm": not _of_something_else(failure),
        "stage_words": failure.stage.words,
        "report": failure.report.to_json(),
        "slots": None if (verdict := _of_load(failure)) is None else asdict(verdict),
    }


def _of_load(failure: Failure) -> KvVerdict | None:
    """Judge the slots by the moment of the highest load; None if nothing is wrong or no load was logged."""
    load = failure.report.load
    return None if load is None else judge_kv(load)


def lines_of(failure: Failure) -> list[str]:
    """A diagnosis for a person."""
    words = failure.words
    report = failure.report
    lines = []
    if failure.kind is Kind.NONE:
        lines.append(f"No failure: the log ends at the stage “{failure.stage.words}”.")
        if (verdict := _of_load(failure)) is not None:
            lines += [f"  but         {verdict.what}", f"  what to do  {verdict.remedy}"]
        if failure.stage < Stage.SERVING:
            lines.append("  It was not ready yet. If its process is gone, something from outside ended it here.")
    else:
        lines.append(f"{words.title}  [{failure.kind.name}, while {failure.stage.words}]")
        lines.append(f"  why         {words.cause}")
        if failure.evidence:
            lines.append(f"  it said     {failure.evidence}")
        if failure.numbers:
            lines.append("  numbers     " + ", ".join(f"{name} {value}" for name, value in failure.numbers.items()))
        lines.append(f"  what to do  {words.remedy}")
    if report.kv_tokens is not None:
        each = f": {report.concurrency:g} requests of {report.max_model_len:,} tokens" if report.concurrency else ""
        engines = "" if report.engines < 2 else f", in each of {report.engines} engines"
        lines.append(f"  KV cache    {report.kv_tokens:,} tokens{each}{engines}")
    if report.version:
        lines.append(f"  vLLM        {report.version}")
    return lines
