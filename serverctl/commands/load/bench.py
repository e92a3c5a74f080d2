"""`mai-server bench`: measure a server with screenshots or recorded runs, or several servers against each other."""

import argparse
import asyncio
import json
import re
import secrets
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foundation.command_line import Parser, positive_seconds
from foundation.endpoints import normalize_url
from foundation.errors import ExitStatus, MaiError, UsageError
from foundation.printing import is_terminal, put_json, remark
from serverctl.commands.endpoint_options import add_target, chosen_target
from serverctl.commands.options import parse_screen
from serverctl.commands.progress import BarProgress
from serverctl.load.bench.workload import AGAIN, Workload
from serverctl.load.client import Endpoint
from serverctl.plan.settings import parse_assignments
from serverctl.planning import load_presets

if TYPE_CHECKING:
    from serverctl.load.bench.measure import OnProgress, Progress
    from serverctl.load.bench.report import Report
    from serverctl.load.bench.workload import Load


#: Names our running server in a comparison.
RUNNING = "running"

_DESCRIPTION = """Measure what a GUI agent feels: how long until a model starts to answer a screenshot, how fast it
goes on, and how many requests a server answers at once. Screenshots are synthetic; no desktop is looked at.

A cold request is new to the server from its first word on, so no cache helps; warm requests are all the same, so
every cache helps. An agent's steps lie between: the history is warm, the newest screenshot is cold."""

_EXAMPLES = """examples:
  mai-server bench                                         the running server, 1920x1080, one request at a time
  mai-server bench --concurrency 1,4,16 --requests 64      how it scales
  mai-server bench --size 1280x720,3840x2160 --images 3    small and large screens, three screenshots a request
  mai-server bench --compare latency balanced              start each preset in turn, and compare them
  mai-server bench --compare latency latency+max_num_seqs=4   a preset with another setting against it
  mai-server bench --compare latency latency         a test of the comparison: nothing must be better
  mai-server bench --compare running http://127.0.0.1:8001    servers that run: the same requests to each
  mai-server bench --replay RUN --compare latency speculative  by a recorded run of mai-agent: its screenshots,
                                                           histories, answers' lengths and pauses
  mai-server bench --endpoint 127.0.0.1:8000 --json        any OpenAI-compatible server; all numbers as JSON

Ctrl-C ends it and prints what was measured. Exit status: 0 measured, 1 requests failed, 2 usage, 3 no server (or it
died; what was measured is printed), 130 stopped."""

#: Options that are fields of a workload as they are.
_AS_GIVEN = ("images", "requests", "max_tokens", "text_tokens", "cache", "seed")


@dataclass(frozen=True, slots=True)
class Contender:
    """One side of a comparison."""

    name: str  # as written; a second side of the same name gets a suffix
    url: str | None = None  # of a running server
    preset: str | None = None  # of a server to start; None for the default
    overrides: dict[str, Any] = field(default_factory=dict)  # settings that override the preset's

    @property
    def runs(self) -> bool:
        """Whether the server already runs."""
        return self.url is not None or self.name.startswith(RUNNING)


def main(arguments: list[str]) -> int:
    """Measure, print, and say by the exit status whether all requests were answered."""
    options = _parser().parse_args(arguments)
    if options.out is not None and not options.out.parent.is_dir():
        raise UsageError(f"There is no folder {options.out.parent} for --out.", "Make it first.")
    workload = _workload(options)
    if options.compare is None:
        target = chosen_target(options)
        return _show((_measured("server", target, workload, options) for _ in range(1)), options)
    sides = parse_contenders(options.compare)
    if options.endpoint is not None:
        raise UsageError("--compare names its own servers, so there is no --endpoint.", "Name it with --compare, too.")
    if options.rounds < 1 or options.rounds > 20:
        raise UsageError(f"{options.rounds} rounds make no sense.", "Use --rounds 1 to 20.")
    if options.api_key is not None and not any(side.url for side in sides):
        raise UsageError("--api-key is for a named endpoint.", "Leave it out.")
    return _show(_in_blocks(sides, workload, options), options)


def _workload(options: argparse.Namespace) -> "Load":
    """The load to send. Raises UsageError if it makes no sense."""
    if options.replay is None:
        return Workload(
            sizes=tuple(parse_screen(text) for text in options.size.split(",")),
            concurrency=_numbers(options.concurrency),
            **{name: getattr(options, name) for name in _AS_GIVEN},
        )
    from serverctl.load.bench.replay import Replay, read_run

    return Replay(
        runs=tuple(map(read_run, options.replay)),
        requests=options.requests,
        concurrency=_numbers(options.concurrency),
        images=max(options.images, 3),
        text_tokens=options.text_tokens,
        pause_s=options.pause,
        seed=options.seed,
    )


def _running(side: Contender, options: argparse.Namespace) -> Endpoint:
    own = {"endpoint": side.url, "api_key": options.api_key if side.url is not None else None}
    return chosen_target(argparse.Namespace(**{**vars(options), **own}))


def _parser() -> Parser:
    parser = Parser("mai-server bench", description=_DESCRIPTION, epilog=_EXAMPLES)
    parser.set_defaults(**{name: getattr(Workload(), name) for name in _AS_GIVEN})
    add = parser.add_argument_group("what is sent").add_argument
    add("--size", metavar="WxH[,WxH]", default="1920x1080", help="screenshots, in pixels (default 1920x1080)")
    add("--images", metavar="N", type=int, help="screenshots in a request (default %(default)s)")
    add("--requests", metavar="N", type=int, help="measured requests of each setting (default %(default)s)")
    add("--concurrency", metavar="N[,N]", default="1", help="requests under way at once (default 1)")
    add("--max-tokens", metavar="N", type=int, help="length of every answer (default %(default)s)")
    add("--text-tokens", metavar="N", type=int, help="length of the prompt's text, roughly (default %(default)s)")
    add("--cache", choices=("cold", "warm", "both"), help="what to measure (default %(default)s)")
    add("--seed", metavar="N", type=int, help="of screenshots and texts (default %(default)s)")
    add("--replay", metavar="RUN", nargs="+", type=Path, help="send recorded runs of mai-agent (their folders) instead")
    add("--pause", metavar="S", type=float, default=5.0, help="longest pause between their steps (default 5; 0: none)")
    add = parser.add_argument_group("the run").add_argument
    add("--compare", metavar="SIDE", nargs="+", help="presets, settings or addresses; the first is the baseline")
    add("--rounds", metavar="N", type=int, default=2, help="blocks of each side (default 2: A B B A)")
    add("--max-seconds", metavar="S", type=positive_seconds, default=1800.0, help="of one server's run (default 1800)")
    add("--allow-remote", action="store_true", help="measure also a server on another machine")
    add("--out", metavar="FILE", type=Path, help="write the JSON into a file too")
    add("--json", action="store_true", help="print JSON instead of tables, every request in it")
    add_target(parser)
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(f"{text!r} are no numbers.", "Write them as 1,4,16.") from error


def parse_contenders(words: Sequence[str]) -> list[Contender]:
    """The sides of a comparison, all checked before anything is started. Raises UsageError."""
    if len(words) == 1 and "=" not in words[0] and "://" not in words[0]:
        words = words[0].split(",")
    names = [word.strip() for word in words if word.strip()]
    found = [_contender(name) for name in names]
    if len(found) < 2:
        raise UsageError("A comparison needs two sides.", "For example --compare latency balanced.")
    counts = [names[:place].count(name) for place, name in enumerate(names)]
    return [replace(side, name=side.name + AGAIN * count) for side, count in zip(found, counts, strict=True)]


def _contender(name: str) -> Contender:
    if name == RUNNING:
        return Contender(name)
    if "://" in name or re.fullmatch(r"[\w.\-\[\]:]+:\d+(/\S*)?", name):
        return Contender(name, url=normalize_url(name))
    preset, *settings = name.split("+")
    if "=" in preset:
        return Contender(name, overrides=parse_assignments([preset, *settings]))
    load_presets().get(preset)
    return Contender(name, preset=preset, overrides=parse_assignments(settings))


@contextmanager
def started(contender: Contender, model: str | None) -> Iterator[Endpoint]:
    """Start a contender's server for the time of a block."""
    from serverctl.endpoint import served

    with served(contender.preset, model, lambda text: remark(f"mai-server: {text}"), contender.overrides) as target:
        yield Endpoint(target.base_url, target.api_key, target.model)


def _in_blocks(sides: Sequence[Contender], workload: "Load", options: argparse.Namespace) -> "Iterator[Report]":
    """Measure servers in blocks: A B, then B A, and so on; a server that comes twice in a row keeps running."""
    run_name = secrets.token_hex(8)
    running = {side.name: _running(side, options) for side in sides if side.runs}
    parts = range(options.rounds)
    order = [(part, side) for part in parts for side in (sides if part % 2 == 0 else sides[::-1])]
    with ExitStack() as stack:
        last, target = None, None
        for place, (part, side) in enumerate(order):
            if side is not last or target is None:
                stack.close()
                own = nullcontext(running[side.name]) if side.runs else started(side, options.model)
                target, last = stack.enter_context(own), side
            yield _measured(side.name, target, workload, options, (part, options.rounds), run_name)
            if place + 1 < len(order) and order[place + 1][1] is not side:
                stack.close()


def _show(measured: "Iterator[Report]", options: argparse.Namespace) -> int:
    """Measure everything and print the results, also those of a run that ends early."""
    from serverctl.load.bench.compare import comparison_json
    from serverctl.load.bench.report import ServerDiedError, merged

    blocks: dict[str, list[Report]] = {}
    status = ExitStatus.DONE
    try:
        for report in measured:
            blocks.setdefault(report.name, []).append(report)
            if report.cut is not None and report.cut.kind == "stopped":
                status = ExitStatus.STOPPED
                break
    except (MaiError, KeyboardInterrupt) as error:
        if isinstance(error, ServerDiedError):
            blocks.setdefault(error.report.name, []).append(error.report)
        if not blocks:
            raise
        status = ExitStatus.STOPPED
        if isinstance(error, MaiError):
            remark(f"mai-server: {error}")
            status = error.exit_status
    reports = [merged(some) for some in blocks.values()]
    if status == ExitStatus.DONE and any(report.failed for report in reports):
        status = ExitStatus.NOT_DONE
    document = reports[0].to_json() if options.compare is None else comparison_json(reports)
    if options.out is not None:
        try:
            options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        except OSError as error:  # the results are still printed
            remark(f"mai-server: {options.out} cannot be written: {error.strerror or error}.")
            status = ExitStatus.ENVIRONMENT
    if options.json:
        put_json(document, indent=1)
        return status
    from foundation.rich_console import GatedConsole
    from serverctl.load.bench.render import print_comparison, print_report

    console = GatedConsole(highlight=False, markup=False, width=None if is_terminal("output") else 120)
    for report in reports:
        print_report(report, console)
    if len(reports) > 1:
        print_comparison(reports, console)
    return status


def _measured(
    name: str,
    target: Endpoint,
    workload: "Load",
    options: argparse.Namespace,
    part: tuple[int, int] = (0, 1),
    run_name: str | None = None,
) -> "Report":
    """Measure a server; Ctrl-C ends the run, a second Ctrl-C ends it without a report."""
    from serverctl.load.bench.measure import measure

    async def run(progress: "OnProgress") -> "Report":
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            stop.set()
            loop.remove_signal_handler(signal.SIGINT)

        loop.add_signal_handler(signal.SIGINT, interrupt)
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        return await measure(
            name, target, workload, progress=progress, stop=stop, max_seconds=options.max_seconds,
            allow_remote=options.allow_remote, part=part, run_name=run_name,
        )  # fmt: skip

    with BarProgress() as bar:

        def show(now: "Progress") -> None:
            line = f"{name}: {now.setting} ({now.done} of {now.total} done)"
            bar.show(str(now.setting), f"{name}: {now.phase} {now.setting}", now.done, now.total, line)

        return asyncio.run(run(show))
