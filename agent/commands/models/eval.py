"""`mai-agent eval`: measures a model on published samples or on tasks, in a folder that can be resumed and rescored."""

import argparse
import math
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from agent.commands.arguments import add_options, sandbox_size
from agent.commands.fleet import add_fleet_options
from agent.evals.samples import benchmark_names
from foundation.command_line import Parser, plain_text, positive
from foundation.errors import ExitStatus
from foundation.printing import put, remark
from foundation.stray_output import stray_output_kept


def _add_making(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the contents of the benchmark, and for its folder."""
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a new folder for DeskBench.json and its pictures")
    parser.add_argument("--number", metavar="N", type=positive, default=100, help="how many samples (default: 100)")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="equal seeds give equal sets (default: 1)")
    parser.add_argument("--sizes", metavar="WxH,...", type=_listed(sandbox_size), default="1280x800,1920x1080",
                        help="sizes of the desktops (default: 1280x800,1920x1080)")  # fmt: skip
    parser.add_argument("--themes", metavar="NAME,...", type=_listed(_theme), default="light,dark",
                        help="some of light, dark, contrast (default: light,dark)")  # fmt: skip
    parser.add_argument("--locales", metavar="NAME,...", type=_listed(plain_text), default="en_US",
                        help="languages, such as de_DE,fr_FR (default: en_US)")  # fmt: skip


def _listed(kind: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(map(kind, text.split(",")))


def _theme(name: str) -> str:
    from agent.evals.making import themes

    if name not in themes():
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(themes())}")
    return name


def make_run(options: argparse.Namespace) -> int:
    """Make the benchmark."""
    from agent.evals.making import BenchmarkOptions, make

    made = make(
        options.folder,
        BenchmarkOptions(options.number, options.seed, options.sizes, options.themes, options.locales),
        remark,
    )
    put(f"{options.folder}: {made} samples. Ask a model: mai-agent eval grounding deskbench {options.folder} --out DIR")
    return ExitStatus.DONE


_EXAMPLES = """examples:
  mai-agent eval grounding screenspot-pro ~/data/ScreenSpot-Pro --out runs/mai-ui-8b --endpoint 127.0.0.1:8000
  mai-agent eval rescore runs/mai-ui-8b --baseline runs/qwen3-vl-8b
  mai-agent eval tasks --out runs/literal --engine literal --parallel 2

The same command resumes after Ctrl-C or a crash. See docs/evals.md."""


def main(argv: Sequence[str]) -> int:
    """Ask and judge, or judge again."""
    if argv[:1] == ["one-task"]:  # what `eval tasks` starts for each task
        from agent.commands.models.eval_tasks import one_task

        return one_task(argv[1:])
    parser = Parser(
        prog="mai-agent eval", description="Measure a model on published samples or on tasks.", epilog=_EXAMPLES
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    asking = kinds.add_parser("grounding", help="ask for the point of each sample")
    importing = kinds.add_parser("import", help="take over answers that others published, and judge them")
    tasking = kinds.add_parser("tasks", help="do tasks on throw-away desktops, and judge the desktops' state")
    _add_tasks(tasking)
    making = kinds.add_parser("make", help="make DeskBench: samples of throw-away desktops; nothing is downloaded")
    _add_making(making)
    verifying = kinds.add_parser("verify", help="ask a model whether recorded runs did their tasks")
    rescoring = kinds.add_parser("rescore", help="judge kept answers again; nothing is asked")
    for each in (asking, importing):
        each.add_argument("benchmark", metavar="BENCHMARK", choices=benchmark_names(),
                          help=f"one of {', '.join(benchmark_names())}")  # fmt: skip
        each.add_argument(
            "data", metavar="DATA", type=Path, help="its folder, as its publisher has it, or its name on the hub"
        )
        each.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder of answers and verdicts")
    asking.add_argument("--at-once", metavar="N", type=positive,
                        help="requests at a time (default: 8, or as many as a vLLM computes)")  # fmt: skip
    asking.add_argument("--limit", metavar="N", type=positive, help="the first N samples only")
    asking.add_argument("--zoom", action="store_true", help="ask again in a crop around each point")
    asking.add_argument("--shard", metavar="I/N", type=_shard, default=(1, 1), help="the I-th of N parts only")
    importing.add_argument("file", metavar="FILE", type=Path, help="answers in ScreenSpot-Pro's form of results")
    importing.add_argument("--model", metavar="NAME", type=plain_text, required=True, help="the model that answered")
    importing.add_argument("--family", metavar="NAME", help="its family (default: found out from its name)")
    rescoring.add_argument("out", metavar="DIR", type=Path, help="the folder of answers or of runs of tasks")
    verifying.add_argument("out", metavar="DIR", type=Path, help="the folder of runs of tasks")
    for each in (rescoring, verifying):
        _add_report_options(each)
    for each in (importing, rescoring):
        each.add_argument("--report", action="store_true", help="write report.html, with every miss (takes longer)")
    for each in (asking, importing, rescoring):
        each.add_argument("--inspect-log", metavar="FILE", type=Path, help="write all as a log of Inspect, too (JSON)")
    rescoring.add_argument("--data", metavar="DATA", type=Path, help="the folder of the benchmark, if it was moved")
    for each in (asking, importing, tasking, rescoring, verifying):
        each.add_argument("--baseline", metavar="DIR", type=Path, help="compare with the verdicts there (McNemar)")
        each.add_argument("--json", action="store_true", help="print the score as one JSON object")
    for each in (asking, verifying):
        add_options(each, "engine")
    asking.set_defaults(report=True)
    doing = {
        asking: "eval_grounding.ask", importing: "eval_grounding.take_over", rescoring: "eval_grounding.rescore",
        tasking: "eval_tasks.run", verifying: "eval_tasks.verify", making: "eval.make_run",
    }  # fmt: skip
    for each, do in doing.items():
        each.set_defaults(do=do)
    arguments = parser.parse_args(argv)
    module, function = arguments.do.split(".")
    with stray_output_kept():
        done: int = getattr(import_module(f"agent.commands.models.{module}"), function)(arguments)
        return done


def _add_tasks(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select the tasks, and how they are done."""
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        type=Path,
        help="tasks in TOML, or OSWorld's JSON (default: the shipped ones)",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="the folder of runs and verdicts (default: tasks-eval)")
    parser.add_argument("--filter", metavar="REGEX", default="", help="only tasks whose class, id or sentence it finds")
    parser.add_argument("--epochs", metavar="N", type=positive, default=1, help="do every task N times (default: 1)")
    parser.add_argument("--undo", action="store_true", help="undo every run, and see whether anything is left of it")
    parser.add_argument("--prove", action="store_true",
                        help="no agent: make each task's change by commands, to test its judge")  # fmt: skip
    _add_report_options(parser)
    parser.add_argument("--list", action="store_true", help="print the tasks")
    parser.add_argument("--sandbox-size", metavar="WxH", type=sandbox_size, help="size of all desktops, for all tasks")
    parser.add_argument("--sandbox-network", choices=("none", "host"), help="network of the sandboxes")
    add_fleet_options(parser)
    for group in ("policy", "engine", "two models", "limits, history and traces"):
        add_options(parser, group, without=("approve",))


def _add_report_options(parser: argparse.ArgumentParser) -> None:
    """The arguments for the report on runs of tasks."""
    parser.add_argument("--osworld", metavar="DIR", type=Path, help="write the runs as OSWorld's tree of results, too")
    parser.add_argument("--price", metavar="IN,OUT", type=_prices,
                        help="prices of a million prompt and answer tokens: print the cost")  # fmt: skip


def _prices(text: str) -> tuple[float, float]:
    try:
        prompts, answers = map(float, plain_text(text).split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not two prices such as 0.5,1.5") from None
    if not (0 <= prompts < math.inf and 0 <= answers < math.inf):
        raise argparse.ArgumentTypeError(f"{text!r} is not two prices such as 0.5,1.5")
    return prompts, answers


def _shard(text: str) -> tuple[int, int]:
    number, slash, count = plain_text(text).partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is no shard such as 1/4")
    return int(number), int(count)
