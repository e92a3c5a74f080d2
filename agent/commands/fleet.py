"""`mai-agent fleet TASKS.jsonl --parallel N`: many tasks, each in a throw-away desktop of its own."""

import argparse
import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from agent.commands.arguments import add_options
from agent.commands.run import read_arguments
from agent.fleet.fleet import Carry, Events, Fleet, Lines, Table
from agent.fleet.process import Runner
from agent.fleet.tasks import ALLOWED, Results, Task, option_words, read_tasks
from agent.settings import load_settings
from foundation.command_line import Parser, plain_text, port_number, positive
from foundation.errors import ExitStatus, StoppedError, UsageError
from foundation.printing import is_terminal, put_text

#: The command line of a run; empty for this program's own.
PROGRAM: tuple[str, ...] = ()

_EPILOG = """\
A line of TASKS is {"id": "a", "instruction": "open settings and enable dark mode"} and may set options of the run by
name: "max_steps": 20, "sandbox_size": "1280x800", ... They win over the command line.

exit status:
  0 all tasks are done   1 some are not   2 wrong usage   3 the machine lacks something   130 you stopped it

Ctrl-C stops all runs. Started again, the fleet goes on with the tasks that have no result yet."""


def main(argv: Sequence[str]) -> int:
    """Carry out the tasks; status 0 only if all are done."""
    parser = Parser(
        prog="mai-agent fleet",
        description="Carry out many tasks, each in a throw-away desktop and a process of its own.",
        epilog=_EPILOG,
    )
    parser.add_argument("tasks", metavar="TASKS", type=Path, help="file of tasks, one JSON object per line")
    parser.add_argument("--out", metavar="DIR", type=Path,
                        help="output folder: results.jsonl, runs (default: TASKS-fleet)")  # fmt: skip
    parser.add_argument("--copy-to", metavar="FOLDER", type=plain_text,
                        help="copy results and records as they come, such as s3://bucket/fleet")  # fmt: skip
    parser.add_argument("--again", choices=("failed",), help="repeat the tasks that were not done")
    parser.add_argument("--kuberay", metavar="IMAGE", type=plain_text,
                        help="print the manifest of this fleet for Kubernetes (KubeRay); start nothing")  # fmt: skip
    add_fleet_options(parser)
    parser.add_argument("--json", action="store_true", help="print the events of all runs as JSON, one per line")
    for group in ("policy", "engine", "two models", "sandbox", "limits, history and traces"):
        add_options(parser, group, without=("sandbox", "keep", "approve"))
    return _run(parser.parse_args(argv))


def add_fleet_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of all commands whose tasks a fleet carries out."""
    parser.add_argument("--parallel", metavar="N", type=positive, default=2, help="tasks at once (default: 2)")
    parser.add_argument("--retries", metavar="N", type=int, choices=range(11), default=1,
                        help="retries of a task if the environment fails (status 3; default: 1)")  # fmt: skip
    parser.add_argument("--ray", metavar="ADDRESS", type=plain_text,
                        help="run on the Ray cluster with this head node (HOST:PORT)")  # fmt: skip
    parser.add_argument("--metrics", metavar="PORT", type=port_number,
                        help="serve numbers of the runs for Prometheus, at 127.0.0.1:PORT/metrics")  # fmt: skip


def runner_of(
    ray: str | None,
    out: Path,
    common: Mapping[str, Any],
    opened: ExitStack,
    command: Sequence[str] = ("run",),
    program: Sequence[str] = (),
) -> Carry:
    """Return the runner that carries out tasks: in processes of this machine, or in actors on a Ray cluster.

    `command` is the subcommand of mai-agent; `program`, if given, replaces mai-agent and this subcommand.
    """
    if ray is not None:
        from agent.fleet.cluster import ClusterRunner
        from foundation.stray_output import stray_output_kept

        opened.enter_context(stray_output_kept())  # Ray prints what happens to its nodes on standard output
        return opened.enter_context(ClusterRunner(out, common, command, program, ray))
    runner = Runner(out, common, command, program)
    runner.end_leftovers()
    return runner


def carry_out(
    carry: Carry, results: Results, tasks: Sequence[Task], arguments: argparse.Namespace, view: Lines
) -> None:
    """Carry out tasks until all are finished, as the options say.

    Raises:
        StoppedError: a signal stopped it.
        EnvironmentLacksError: see `Fleet.run` and `Metrics`.
    """
    if arguments.metrics is not None:
        from agent.fleet.metrics import Metrics

        view = Metrics(view, arguments.metrics, len(tasks))
    fleet = Fleet(carry, results, view, parallel=arguments.parallel, retries=arguments.retries)

    async def work() -> None:
        carrying = asyncio.current_task()
        assert carrying is not None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, carrying.cancel)
        await fleet.run(tasks)

    try:
        with view.shown():
            asyncio.run(work())
    except asyncio.CancelledError as error:
        raise StoppedError("Stopped.", "The same command goes on with the rest.") from error


def limited(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the given options of all runs, with a time limit."""
    common = {name: value for name, value in vars(arguments).items() if name in ALLOWED}
    common["max_seconds"] = arguments.max_seconds or load_settings().get("max_seconds") or 1800.0
    return common


def _run(arguments: argparse.Namespace) -> int:
    common = limited(arguments)
    tasks = read_tasks(arguments.tasks, lambda words: read_arguments([*option_words(common), *words, "--sandbox"]))
    if arguments.kuberay is not None:
        if arguments.ray is not None:
            raise UsageError("--kuberay makes a cluster of its own.", "Leave out --ray.")
        from agent.fleet.kuberay import manifest

        of_the_fleet = {name: vars(arguments)[name] for name in ("copy_to", "retries", "again", "metrics", "json")}
        put_text(manifest(arguments.tasks, tasks, arguments.kuberay, arguments.parallel, common | of_the_fleet))
        return ExitStatus.DONE
    out = arguments.out or arguments.tasks.with_name(f"{arguments.tasks.stem}-fleet")
    with Results(out) as results, ExitStack() as opened:
        runner = runner_of(arguments.ray, out, common, opened, program=PROGRAM)
        waiting = results.still_to_do(tasks, lambda result: arguments.again == "failed" and not result.done)
        drawn = not arguments.json and is_terminal("output") and os.environ.get("TERM") != "dumb"
        view = Events() if arguments.json else Table(len(tasks), len(tasks) - len(waiting)) if drawn else Lines()
        if arguments.copy_to is not None:
            from agent.fleet.copies import Copies

            view = Copies(view, results, arguments.copy_to)
        try:
            carry_out(runner, results, waiting, arguments, view)
        finally:
            counts = results.summary(tasks)
            view.summary(counts)
    return ExitStatus.DONE if counts["done"] == len(tasks) else ExitStatus.NOT_DONE
