"""`mai-agent eval tasks`: runs on throw-away desktops, judged by the desktops' own state."""

import argparse
import asyncio
import json
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from agent.commands.arguments import chosen_engine, tell
from agent.commands.fleet import carry_out, limited, runner_of
from agent.commands.run import read_arguments, with_event
from agent.evals.folder import read_run
from agent.evals.tasks import report, work
from agent.evals.tasks.looker import check_tools
from agent.evals.tasks.osworld_tree import write_tree
from agent.evals.tasks.report import JudgedLines
from agent.evals.tasks.task import EvalTask
from agent.evals.tasks.task_files import read_eval_tasks, shipped_tasks
from agent.evals.tasks.verifier import read_verifier
from agent.evals.tasks.verifier import verify as verify_runs
from agent.fleet.tasks import Result, Results, Task, option_words
from agent.model.clients import client_of
from agent.model.engines import Engine
from agent.options import RunOptions
from agent.sandbox.sessions import load_session
from agent.settings import load_settings
from foundation.command_line import Parser
from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError
from foundation.files import read_json_object, write_file
from foundation.printing import counted, put, remark

#: Replaces `mai-agent eval one-task` in the command line; empty to use that command.
PROGRAM: tuple[str, ...] = ()
BENCHMARK = "tasks"


def run(arguments: argparse.Namespace) -> int:
    """Carry out the tasks that have no verdict yet, and report on the folder."""
    files = [path.resolve() for path in arguments.files]
    read = read_eval_tasks(files or shipped_tasks(), arguments.filter, remark)
    found = {name: task for name, (_, task) in read.items()}
    if arguments.list:
        put(*(f"{task.cls:15} {name:36} {task.say}" for name, task in found.items()), f"{counted(len(found), 'task')}")
        return ExitStatus.DONE
    baseline = None if arguments.baseline is None else report.read_baseline(arguments.baseline)
    options = limited(arguments)
    size = options.pop("sandbox_size", None)
    for tried in {task.size for task in found.values()}:  # report errors before anything starts
        read_arguments([*option_words(options), "--sandbox", f"--sandbox-size={tried}", "--", "x"])
    if arguments.ray is None:
        check_tools()
    lost = [name for name, task in found.items() if arguments.ray is None and _lacks(task)]
    out = arguments.out or Path("tasks-proof" if arguments.prove else "tasks-eval")
    tasks = {
        name: [_fleet_task(task, epoch + 1, size) for epoch in range(arguments.epochs)] for name, task in found.items()
    }
    wanted = [task for epochs in zip(*tasks.values(), strict=True) for task in epochs]  # an epoch after the other
    common = options | {"eval_files": os.pathsep.join(map(str, files)) or None, "eval_undo": arguments.undo}
    common["eval_prove"] = arguments.prove
    with Results(out) as results, ExitStack() as opened:
        _check_same(out, {"prove": arguments.prove, **json.loads(json.dumps(options, default=str))})
        runner = runner_of(arguments.ray, out, common, opened, ("eval", "one-task"), PROGRAM)
        possible = [task for task in wanted if task.id.rpartition("#")[0] not in lost]
        waiting = results.still_to_do(possible, lambda result: not _judged(result, out))
        view = JudgedLines(_flaws if arguments.prove else _verdict, out, remark if arguments.json else put)
        carry_out(runner, results, waiting, arguments, view)
        if arguments.prove:
            return _report_proof([results.of[task.id] for task in possible], out, as_json=arguments.json)
    return _report(out, arguments, [task.id for task in wanted], baseline)


def _verdict(result: Result, out: Path) -> Iterator[str]:
    return report.told(report.verdict_of(result, out))


def _flaws(result: Result, out: Path) -> Iterator[str]:
    flaws = report.flaws_of(work.read_states(out / result.bundle) if result.bundle else None)
    yield f"{'FLAWED' if flaws else 'proven':16} {result.id} ({result.seconds:.1f} s)"
    yield from (f"    {flaw}" for flaw in flaws)


def _report_proof(results: Sequence[Result], out: Path, *, as_json: bool) -> int:
    """Print how many judges are proven. Return 1 if a judge is not proven."""
    flaws = {result.id.rpartition("#")[0]: report.flaws_of(work.read_states(out / result.bundle)) for result in results}
    flawed = {name: found for name, found in flaws.items() if found}
    proven = len(flaws) - len(flawed)
    data = {"tasks": len(flaws), "proven": proven, "flaws": flawed}
    tell(as_json, data, f"{proven} of {len(flaws)} judges are proven", *(f"  flawed: {name}" for name in flawed))
    return ExitStatus.NOT_DONE if flawed else ExitStatus.DONE


def rescore(arguments: argparse.Namespace) -> int:
    """Judge what is recorded in a folder again, and report on it."""
    if read_json_object(arguments.out / "eval.json").get("options", {}).get("prove"):
        raise UsageError(f"{arguments.out} holds proofs of judges, not runs.", "Name the folder of runs.")
    return _report(
        arguments.out, arguments, (), None if arguments.baseline is None else report.read_baseline(arguments.baseline)
    )


def verify(arguments: argparse.Namespace) -> int:
    """Ask a model about the recorded runs of a folder, and report on it."""
    if read_run(arguments.out)["benchmark"] != BENCHMARK:
        raise UsageError(f"{arguments.out} holds no runs of tasks.", "Name the folder of `mai-agent eval tasks`.")
    options = RunOptions.of(arguments, load_settings())
    engine = chosen_engine(options, ("The literal engine sees no pictures.", "Name a model with --endpoint."))
    failed = asyncio.run(_verified(engine, arguments.out))
    return rescore(arguments) or (ExitStatus.NOT_DONE if failed else ExitStatus.DONE)


async def _verified(engine: Engine, out: Path) -> int:
    client = engine.client or client_of(engine.endpoint)
    try:
        endpoint = await client.discover()
        verdicts = [report.verdict_of(result, out) for result in report.read_results(out)]
        return await verify_runs(client, endpoint.model or endpoint.host, verdicts, out, remark)
    finally:
        await client.aclose()


def _report(
    out: Path, arguments: argparse.Namespace, wanted: Iterable[str], baseline: Mapping[str, bool] | None
) -> int:
    """Judge what is recorded in a folder, write the verdicts, and print the report. Return 1 if runs lack a verdict."""
    options = read_json_object(out / "eval.json").get("options", {})
    verdicts = [report.verdict_of(result, out) for result in report.read_results(out)]
    report.write_verdicts(out, verdicts)
    tasks_report = report.report_on(verdicts, options, wanted, baseline, read_verifier(out), arguments.price)
    if arguments.osworld is not None:
        remark(f"{write_tree(verdicts, out, arguments.osworld)} runs are written to {arguments.osworld}")
    tell(arguments.json, tasks_report.model_dump(), *report.lines(tasks_report))
    return ExitStatus.NOT_DONE if tasks_report.left else ExitStatus.DONE


def one_task(argv: Sequence[str]) -> int:
    """Carry out one task in this process: what the fleet starts, with the options of a run."""
    return with_event(_one_task, argv)


def _one_task(argv: Sequence[str]) -> int:
    parser = Parser(prog="mai-agent eval one-task", add_help=False, allow_abbrev=False)
    for name in ("--eval-id", "--eval-digest"):
        parser.add_argument(name, required=True)
    parser.add_argument("--eval-files", type=lambda text: [Path(name) for name in text.split(os.pathsep)])
    for name in ("--eval-undo", "--eval-prove"):
        parser.add_argument(name, action="store_true")
    at = list(argv).index("--")
    arguments, words = parser.parse_known_args(argv[:at])
    options = RunOptions.of(read_arguments([*words, *argv[at:]]), load_settings())
    found = read_eval_tasks(arguments.eval_files or shipped_tasks())
    path, task = found.get(arguments.eval_id, (Path(), None))
    if task is None or task.digest != arguments.eval_digest:
        raise UsageError(f"The task {arguments.eval_id!r} was changed after the evaluation began.", "Start it again.")
    if arguments.eval_prove:
        return work.prove(task, path.parent, options)
    return work.carry_out(task, path.parent, options, undo=arguments.eval_undo)


def _lacks(task: EvalTask) -> bool:
    try:
        load_session(task.session).check_installed()
        programs = [shlex.split(command)[0] for command in task.open]
        lost = next((program for program in programs if shutil.which(program) is None), None)
    except EnvironmentLacksError as error:
        lost = error.what
    if lost is not None:
        remark(f"{task.id}: left out, missing: {lost}")
    return lost is not None


def _fleet_task(task: EvalTask, epoch: int, size: Any) -> Task:
    options = {
        "eval_id": task.id, "eval_digest": task.digest, "sandbox_size": str(size or task.size),
        "sandbox_session": task.session, "sandbox_locale": task.locale, "approve": task.approve,
    }  # fmt: skip
    return Task(
        f"{task.id}#{epoch}", task.say, tuple(sorted((name, value) for name, value in options.items() if value))
    )


def _judged(result: Result, out: Path) -> bool:
    return report.verdict_of(result, out).judged


def _check_same(out: Path, options: Mapping[str, Any]) -> None:
    """Store the options of the runs in the folder. Raises UsageError: the folder holds runs with other options."""
    path = out / "eval.json"
    kept = read_json_object(path).get("options", options)
    for name in sorted({*kept, *options}):
        if kept.get(name) != options.get(name):
            raise UsageError(
                f"{out} holds runs with another {name} ({kept.get(name)}, not {options.get(name)}).",
                "Name another folder with --out.",
            )
    write_file(path, json.dumps({"benchmark": BENCHMARK, "options": options}, indent=1) + "\n", 0o666)
