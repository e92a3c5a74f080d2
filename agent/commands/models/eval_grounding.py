"""`mai-agent eval grounding`, `import` and `rescore`: ask a model for points, and judge them."""

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from agent.api.server import Asker
from agent.commands.arguments import NO_GROUNDING, chosen_engine, tell
from agent.commands.models import eval_tasks
from agent.evals.folder import (
    AnswersFile,
    baseline_of,
    import_answers,
    judge_all,
    read_answers,
    read_run,
    read_verdicts,
)
from agent.evals.grounding import ask_all, part_of
from agent.evals.hub import benchmark_folder
from agent.evals.judging import Verdict
from agent.evals.pace import Pace
from agent.evals.samples import Benchmark, benchmark_names, read_benchmark
from agent.evals.summary import lines, summary
from agent.families.registry import detect_family
from agent.model.asking import Patience
from agent.model.engines import Engine
from agent.options import RunOptions
from agent.run.models.roles import open_model
from agent.settings import load_settings
from foundation.errors import ExitStatus, UsageError
from foundation.printing import remark


def ask(arguments: argparse.Namespace) -> int:
    """Ask for the samples that have no answer yet, and judge."""
    arguments.data = benchmark_folder(arguments.data, remark)
    benchmark = read_benchmark(arguments.benchmark, arguments.data)
    _baseline(arguments, benchmark)  # its errors come before hours of asking
    options = RunOptions.of(arguments, load_settings())
    if options.system_prompt is not None:
        raise UsageError("--system-prompt is for runs: a request for a point has a prompt of its own.", "Leave it out.")
    failed = asyncio.run(_asked(arguments, options, chosen_engine(options, NO_GROUNDING), benchmark))
    _put_score(arguments, benchmark)
    return ExitStatus.NOT_DONE if failed else ExitStatus.DONE


async def _asked(arguments: argparse.Namespace, options: RunOptions, engine: Engine, benchmark: Benchmark) -> int:
    async with AsyncExitStack() as opened:
        model = await open_model(engine, options.family, Patience.of(options.patience), opened)
        if not model.family.grounds:
            raise UsageError(
                f"The family {model.family.facts.name} cannot be asked for a point.", "Choose another one."
            )
        asker = Asker(model, options)
        run = {"benchmark": benchmark.name, "data": str(arguments.data.resolve()), **asker.named()}
        samples = part_of(benchmark.samples, arguments.limit, arguments.shard)
        pace = Pace(arguments.at_once, asker.metrics)
        with AnswersFile(arguments.out, run) as kept:
            return await ask_all(asker, samples, kept, pace, remark, zoom=arguments.zoom)


def take_over(arguments: argparse.Namespace) -> int:
    """Take over published answers, and judge them."""
    family = arguments.family or detect_family(arguments.model)
    if family is None:
        raise UsageError(f"The model {arguments.model!r} is of no known family.", "Name one with --family.")
    arguments.data = benchmark_folder(arguments.data, remark)
    benchmark = read_benchmark(arguments.benchmark, arguments.data)
    run = {
        "benchmark": benchmark.name,
        "data": str(arguments.data.resolve()),
        "model": arguments.model,
        "family": family,
    }
    import_answers(arguments.file, benchmark, {**run, "words": "imported"}, arguments.out)
    _put_score(arguments, benchmark)
    return ExitStatus.DONE


def rescore(arguments: argparse.Namespace) -> int:
    """Judge the answers or the runs in a folder again."""
    run = read_run(arguments.out)
    if run["benchmark"] == eval_tasks.BENCHMARK:
        return eval_tasks.rescore(arguments)
    if run["benchmark"] not in benchmark_names():
        raise UsageError(f"{arguments.out} is of an unknown benchmark, {run['benchmark']}.", "Was eval.json changed?")
    _put_score(arguments, read_benchmark(run["benchmark"], arguments.data or Path(str(run.get("data")))))
    return ExitStatus.DONE


def _baseline(arguments: argparse.Namespace, benchmark: Benchmark) -> dict[str, dict[str, Any]] | None:
    """Return the verdicts of the baseline, if one is named. Raises UsageError: none, or of another benchmark."""
    if arguments.baseline is None:
        return None
    if (other := read_run(arguments.baseline)["benchmark"]) != benchmark.name:
        raise UsageError(f"{arguments.baseline} is of {other}, not of {benchmark.name}.", "Name another baseline.")
    return read_verdicts(arguments.baseline)


def _put_score(arguments: argparse.Namespace, benchmark: Benchmark) -> None:
    """Judge the answers in the folder, keep the verdicts, print the score, and write the report."""
    rows = _baseline(arguments, benchmark)
    answers = read_answers(arguments.out)
    verdicts = judge_all(arguments.out, benchmark, answers)
    run = read_run(arguments.out)
    notes = list(_notes(run, answers, verdicts))
    for note in notes:
        remark(note)
    score = summary(benchmark, run, verdicts, None if rows is None else baseline_of(verdicts, rows), notes)
    if arguments.report:
        from agent.evals.report import write_report

        report = write_report(arguments.out, benchmark, score, verdicts, answers)
        remark(f"The misses: {report}")
    if arguments.inspect_log is not None:
        from agent.evals.report import write_inspect_log

        write_inspect_log(arguments.inspect_log, benchmark, score, verdicts, answers)
    tell(arguments.json, score, *lines(score))


def _notes(
    run: Mapping[str, Any], answers: Mapping[str, Mapping[str, Any]], verdicts: Sequence[Verdict]
) -> Iterator[str]:
    """Yield what a reader of the score has to know."""
    if strangers := len(answers) - len(verdicts):
        yield f"{strangers} answers are to other samples than the benchmark's; they are left out."
    for key in ("model", "family", "words"):
        if others := sorted({str(line.get(key)) for line in answers.values()} - {str(run.get(key))}):
            yield f"Not all answers are of one {key}: there is {' and '.join(others)} beside {run.get(key)}."
    if count := sum(one.get("settings") not in (None, run.get("settings")) for one in answers.values()):
        yield f"{count} of {len(answers)} answers were asked for with other settings than the last ones."
    if count := sum("error" in answers[one.sample.id] for one in verdicts):
        yield f"{count} requests got no answer (refused, too long, endless); they count as wrong, and are asked again."
    stated = [(one.sample, one.sample.size) for one in verdicts if one.sample.size is not None]
    if other := [sample.id for sample, size in stated if answers[sample.id]["screen"] != [size.width, size.height]]:
        yield f"{len(other)} pictures have another size than the benchmark states ({other[0]}, ...)."
    if outside := [sample.id for sample, _ in stated if sample.leaves_picture]:
        yield f"{len(outside)} targets lie outside of their picture ({outside[0]}, ...): are the boxes of another form?"
