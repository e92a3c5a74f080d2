"""`mai-server bench`: measure a server with screenshots, or several presets against each other."""

import argparse
import asyncio
import json
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from foundation.arguments import Parser, positive_seconds
from foundation.errors import ExitStatus, MaiError, UsageError
from foundation.printing import is_terminal, put_json, remark
from serverctl.bench.workload import Workload
from serverctl.chat import Endpoint
from serverctl.commands.endpoint_options import add_target, chosen_target
from serverctl.commands.options import parse_screen

if TYPE_CHECKING:
    from serverctl.bench.report import Report
    from serverctl.bench.run import OnProgress, Progress

_DESCRIPTION = """Measure what a GUI agent feels: how long until a model starts to answer a screenshot, how fast it
goes on, and how many requests a server answers at once. Screenshots are synthetic; no desktop is looked at.

A cold request is new to the server from its first word on, so no cache helps; warm requests are all the same, so
every cache helps. An agent's steps lie between: the history is warm, the newest screenshot is cold."""

_EXAMPLES = """examples:
  mai-server bench                                         the running server, 1920x1080, one request at a time
  mai-server bench --concurrency 1,4,16 --requests 64      how it scales
  mai-server bench --size 1280x720,3840x2160 --images 3    small and large screens, three screenshots a request
  mai-server bench --compare latency,balanced              start each preset in turn, and compare them
  mai-server bench --endpoint 127.0.0.1:8000 --json        any OpenAI-compatible server; all numbers as JSON

Ctrl-C ends it and prints what was measured. Exit status: 0 measured, 1 requests failed, 2 usage, 3 no server (or it
died; what was measured is printed), 130 stopped."""

#: Options that are fields of a workload as they are.
_AS_GIVEN = ("images", "requests", "max_tokens", "text_tokens", "cache", "seed")


def main(arguments: list[str]) -> int:
    """Measure, print, and say by the exit status whether all requests were answered."""
    parser = _parser()
    options = parser.parse_args(arguments)
    workload = Workload(
        sizes=tuple(parse_screen(text) for text in options.size.split(",")),
        concurrency=_numbers(options.concurrency),
        **{name: getattr(options, name) for name in _AS_GIVEN},
    )
    presets = _presets(options)
    if not presets:
        return _show({"server": lambda: nullcontext(chosen_target(options))}, workload, options)
    return _show({preset: _starter(preset, options.model) for preset in presets}, workload, options)


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
    add = parser.add_argument_group("the run").add_argument
    add("--compare", metavar="PRESET,PRESET", help="start each preset in turn, the first is the measure")
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


def _presets(options: argparse.Namespace) -> list[str]:
    """The presets to compare, each of them known; nothing is started for a typing mistake in the last one."""
    if options.compare is None:
        return []
    from serverctl.planning import load_presets

    if options.endpoint is not None or options.api_key is not None:
        raise UsageError("--compare starts its own servers, so there is no --endpoint.", "Leave one of them out.")
    presets = [name.strip() for name in options.compare.split(",") if name.strip()]
    for preset in presets:
        load_presets().get(preset)
    if len(presets) < 2 or len(set(presets)) < len(presets):
        raise UsageError("A comparison needs two different presets.", "For example --compare latency,balanced.")
    return presets


def _starter(preset: str, model: str | None) -> Callable[[], AbstractContextManager[Endpoint]]:
    """What starts a server with a preset, and stops it afterwards."""

    @contextmanager
    def start() -> Iterator[Endpoint]:
        from serverctl.endpoint import served

        with served(preset, model, _say) as target:
            yield Endpoint(target.base_url, target.api_key, target.model)

    return start


def _show(
    starts: Mapping[str, Callable[[], AbstractContextManager[Endpoint]]],
    workload: Workload,
    options: argparse.Namespace,
) -> int:
    """Measure every server in turn and print what there is, also when the run ends early."""
    from serverctl.bench.compare import Comparison
    from serverctl.bench.report import ServerDiedError

    reports: list[Report] = []
    status = ExitStatus.DONE
    for name, start in starts.items():
        try:
            with start() as target:
                reports.append(_measured(name, target, workload, options))
        except (MaiError, KeyboardInterrupt) as error:
            if isinstance(error, ServerDiedError):
                reports.append(error.report)
            if not reports:
                raise
            status = ExitStatus.STOPPED
            if isinstance(error, MaiError):
                remark(f"mai-server: {error}")
                status = error.exit_status
            break
        cut = reports[-1].cut
        if cut is not None and cut.kind == "stopped":
            status = ExitStatus.STOPPED
            break
        if reports[-1].failed:
            status = ExitStatus.NOT_DONE
    comparison = Comparison(tuple(reports)) if options.compare is not None else None
    document = reports[0].to_json() if comparison is None else comparison.to_json()
    if options.out is not None:
        options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if options.json:
        put_json(document, indent=1)
        return status
    from foundation.rich_console import GatedConsole
    from serverctl.bench.render import print_comparison, print_report

    console = GatedConsole(highlight=False, markup=False, width=None if is_terminal("output") else 120)
    for report in reports:
        print_report(report, console)
    if comparison is not None and len(reports) > 1:
        print_comparison(comparison, console)
    return status


def _measured(name: str, target: Endpoint, workload: Workload, options: argparse.Namespace) -> "Report":
    """Measure one server; Ctrl-C ends the run, a second one ends it without a report."""
    from serverctl.bench.run import measure

    async def run(progress: "OnProgress") -> "Report":
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            stop.set()
            loop.remove_signal_handler(signal.SIGINT)

        loop.add_signal_handler(signal.SIGINT, interrupt)
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        return await measure(
            target, workload, name=name, progress=progress, stop=stop,
            max_seconds=options.max_seconds, allow_remote=options.allow_remote,
        )  # fmt: skip

    with _progress(name) as progress:
        return asyncio.run(run(progress))


@contextmanager
def _progress(name: str) -> "Iterator[OnProgress]":
    """A bar on a terminal's standard error; elsewhere one line a setting."""
    if not is_terminal("error"):
        seen: set[object] = set()

        def line(progress: "Progress") -> None:
            if progress.setting not in seen:
                seen.add(progress.setting)
                done = f"{progress.done} of {progress.total} done"
                remark(f"{name}: {progress.setting} ({done})")

        yield line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from foundation.rich_console import GatedConsole

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=GatedConsole(stderr=True), transient=True) as bar:
        task = bar.add_task(name)

        def show(progress: "Progress") -> None:
            text = f"{name}: {progress.phase} {progress.setting}"
            bar.update(task, description=text, completed=progress.done, total=progress.total)

        yield show


def _say(sentence: str) -> None:
    remark(f"mai-server: {sentence}")
