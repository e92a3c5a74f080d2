"""`mai-agent eval`: a model measured on published samples or on tasks, in a folder that is resumed and judged again."""

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from agent.api.decision import Asker
from agent.commands.arguments import add_options, tell
from agent.commands.models import eval_make, eval_tasks
from agent.console.terminal import terminal_ask
from agent.evals.folder import AnswersFile, judge_all, read_answers, read_run, read_verdicts
from agent.evals.grounding import ask_all, part_of
from agent.evals.imported import import_answers
from agent.evals.samples import Benchmark, benchmark_names, read_benchmark
from agent.evals.summary import lines, summary
from agent.families.registry import detect_family
from agent.literal.client import literal_engine
from agent.model.asking import Patience
from agent.model.engines import Engine, choose_engine
from agent.options import RunOptions
from agent.run.models.roles import open_model
from agent.settings import load_settings
from foundation.command_line import Parser, plain_text, positive
from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError
from foundation.printing import remark
from foundation.stray_output import stray_output_kept

_EXAMPLES = """examples:
  mai-agent eval grounding screenspot-pro ~/data/ScreenSpot-Pro --out runs/mai-ui-8b --endpoint 127.0.0.1:8000
  mai-agent eval rescore runs/mai-ui-8b --baseline runs/qwen3-vl-8b
  mai-agent eval tasks --out runs/literal --engine literal --parallel 2

The same command resumes after Ctrl-C or a crash. See docs/evals.md."""


def main(argv: Sequence[str]) -> int:
    """Ask and judge, or judge again."""
    if argv[:1] == ["one-task"]:  # what `eval tasks` starts for each task
        return eval_tasks.one_task(argv[1:])
    parser = Parser(
        prog="mai-agent eval", description="Measure a model on published samples or on tasks.", epilog=_EXAMPLES
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    asking = kinds.add_parser("grounding", help="ask for the point of each sample")
    importing = kinds.add_parser("import", help="take over answers that others published, and judge them")
    tasking = kinds.add_parser("tasks", help="do tasks on throw-away desktops, and judge the desktops' state")
    eval_tasks.add_arguments(tasking)
    making = kinds.add_parser("make", help="make DeskBench: samples of throw-away desktops; nothing is downloaded")
    eval_make.add_arguments(making)
    rescoring = kinds.add_parser("rescore", help="judge kept answers again; nothing is asked")
    for each in (asking, importing):
        each.add_argument("benchmark", metavar="BENCHMARK", choices=benchmark_names(),
                          help=f"one of {', '.join(benchmark_names())}")  # fmt: skip
        each.add_argument("data", metavar="DATA", type=Path, help="the benchmark's folder, as its publisher has it")
        each.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder of answers and verdicts")
    asking.add_argument("--at-once", metavar="N", type=positive, default=8, help="requests at a time (default: 8)")
    asking.add_argument("--limit", metavar="N", type=positive, help="the first N samples only")
    asking.add_argument("--zoom", action="store_true", help="ask again in a crop around each point")
    asking.add_argument("--shard", metavar="I/N", type=_shard, default=(1, 1), help="the I-th of N parts only")
    importing.add_argument("file", metavar="FILE", type=Path, help="answers in ScreenSpot-Pro's form of results")
    importing.add_argument("--model", metavar="NAME", type=plain_text, required=True, help="the model that answered")
    importing.add_argument("--family", metavar="NAME", help="its family (default: found out from its name)")
    rescoring.add_argument("out", metavar="DIR", type=Path, help="the folder of answers or of runs of tasks")
    eval_tasks.add_osworld(rescoring)
    for each in (importing, rescoring):
        each.add_argument("--report", action="store_true", help="write report.html, with every miss (takes longer)")
    for each in (asking, importing, rescoring):
        each.add_argument("--inspect-log", metavar="FILE", type=Path, help="write all as a log of Inspect, too (JSON)")
    rescoring.add_argument("--data", metavar="DATA", type=Path, help="the folder of the benchmark, if it was moved")
    for each in (asking, importing, tasking, rescoring):
        each.add_argument("--baseline", metavar="DIR", type=Path, help="compare with the verdicts there (McNemar)")
        each.add_argument("--json", action="store_true", help="print the score as one JSON object")
    add_options(asking, "engine")
    asking.set_defaults(report=True)
    doing = {
        asking: _grounding,
        importing: _import,
        tasking: eval_tasks.run,
        making: eval_make.run,
        rescoring: _rescore,
    }
    for each, do in doing.items():
        each.set_defaults(do=do)
    given = parser.parse_args(argv)
    with stray_output_kept():
        done: int = given.do(given)
        return done


def _shard(text: str) -> tuple[int, int]:
    number, slash, count = plain_text(text).partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is no shard such as 1/4")
    return int(number), int(count)


def _grounding(given: argparse.Namespace) -> int:
    benchmark = read_benchmark(given.benchmark, given.data)
    if given.baseline is not None:
        read_verdicts(given.baseline)  # its errors come before hours of asking
    options = RunOptions.of(given, load_settings())
    engine = choose_engine(options.engine, literal_engine, remark, ask=terminal_ask())
    try:
        if engine.name == "literal":
            raise EnvironmentLacksError("The literal engine has no grounding mode.", "Name a model with --endpoint.")
        failed = asyncio.run(_asked(given, options, engine, benchmark))
    finally:
        engine.close()
    _put_score(given, benchmark)
    return ExitStatus.NOT_DONE if failed else ExitStatus.DONE


async def _asked(given: argparse.Namespace, options: RunOptions, engine: Engine, benchmark: Benchmark) -> int:
    async with AsyncExitStack() as opened:
        model = await open_model(engine, options.family, Patience.of(options.patience), opened)
        if not model.family.grounds:
            raise UsageError(
                f"The family {model.family.facts.name} cannot be asked for a point.", "Choose another one."
            )
        asker = Asker(model, options)
        run = {"benchmark": benchmark.name, "data": str(given.data.resolve()), **asker.named()}
        samples = part_of(benchmark.samples, given.limit, given.shard)
        with AnswersFile(given.out, run) as kept:
            return await ask_all(asker, samples, kept, given.at_once, remark, zoom=given.zoom)


def _import(given: argparse.Namespace) -> int:
    family = given.family or detect_family(given.model)
    if family is None:
        raise UsageError(f"The model {given.model!r} is of no known family.", "Name one with --family.")
    benchmark = read_benchmark(given.benchmark, given.data)
    run = {"benchmark": benchmark.name, "data": str(given.data.resolve()), "model": given.model, "family": family}
    import_answers(given.file, benchmark, {**run, "words": "imported"}, given.out)
    _put_score(given, benchmark)
    return ExitStatus.DONE


def _rescore(given: argparse.Namespace) -> int:
    run = read_run(given.out)
    if run["benchmark"] == eval_tasks.BENCHMARK:
        return eval_tasks.rescore(given)
    if run["benchmark"] not in benchmark_names():
        raise UsageError(f"{given.out} is of an unknown benchmark, {run['benchmark']}.", "Was eval.json changed?")
    _put_score(given, read_benchmark(run["benchmark"], given.data or Path(str(run.get("data")))))
    return ExitStatus.DONE


def _put_score(given: argparse.Namespace, benchmark: Benchmark) -> None:
    """Judge the answers in the folder, keep the verdicts, print the score, and write the report."""
    baseline = None if given.baseline is None else read_verdicts(given.baseline)
    answers = read_answers(given.out)
    verdicts = judge_all(given.out, benchmark, answers)
    if strangers := len(answers) - len(verdicts):
        remark(f"{strangers} answers are to samples that the benchmark does not have; they are left out.")
    told = summary(benchmark, read_run(given.out), verdicts, baseline)
    if given.report:
        from agent.evals.report import write_report

        report = write_report(given.out, benchmark, told, verdicts, answers)
        remark(f"The misses: {report}")
    if given.inspect_log is not None:
        from agent.evals.inspect_log import write_inspect_log

        write_inspect_log(given.inspect_log, benchmark, told, verdicts, answers)
    tell(given.json, told, *lines(told))
