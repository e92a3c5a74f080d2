"""`mai-server status`: what a server is doing, in numbers of its own."""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from typing import Any

from foundation.command_line import Parser
from foundation.errors import ExitStatus
from foundation.printing import is_terminal, put, put_json
from serverctl.commands.endpoint_options import add_target, foreign_endpoint
from serverctl.load.metrics import Latency, ServerMetrics
from serverctl.process import control
from serverctl.process.state import LIVE, Folder, State
from serverctl.watch import Look, Watch


def main(arguments: list[str]) -> int:
    """Print the state of servers."""
    return show(make_parser("mai-server status").parse_args(arguments))


def watch_main(arguments: list[str]) -> int:
    """Show servers again every second until Ctrl-C: `status --watch` in one word."""
    options = make_parser("mai-server watch").parse_args(arguments)
    options.watch = True
    return show(options)


def make_parser(prog: str) -> Parser:
    """Return the parser of `status` and `watch`."""
    parser = Parser(
        prog,
        description="What servers are doing: stage, memory, load, cache hits, latency, the cards, and each number held "
        "against its target with a word on what to do. Unknown numbers are shown as ?.",
        epilog="exit status: 0 a server is ready, 1 none is (starting, failed or stopped)\n\n"
        "examples:\n  mai-server status\n"
        "  mai-server status --watch\n  mai-server status --json | python3 -m json.tool",
    )
    parser.add_argument("--name", default=None, help="only this server")
    add_target(parser, model=False)
    parser.add_argument("--watch", action="store_true", help="show it again every second until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="print JSON (with --watch: a line a second)")
    return parser


def show(options: argparse.Namespace) -> int:
    """Print the state of the servers that a command line means."""
    look_at = _looking(options)
    if options.watch and not options.json and is_terminal("output"):
        return _watch(look_at)
    while True:
        looks = look_at()
        if options.json:
            documents = [_look_json(look) for look in looks]
            document = documents[0] if len(documents) == 1 else documents
            put_json(document, indent=None if options.watch else 1)
        else:
            for number, look in enumerate(looks):
                put(*([""] if number else []), *lines_of(look))
        if not options.watch:
            ready = any(look.state.is_ready for look in looks)
            return ExitStatus.DONE if ready else ExitStatus.NOT_DONE
        time.sleep(1)


def _looking(options: argparse.Namespace) -> Callable[[], list[Look]]:
    """Return a function that looks at the named server or at all servers; if none exists, at the default name."""
    if options.endpoint is not None:
        watch = Watch(foreign_endpoint(options))
        return lambda: [watch.look()]
    watch_of = cache(Watch)
    return lambda: [
        watch_of(name).look()
        for name in ([options.name] if options.name else control.ordered_names() or [control.DEFAULT_NAME])
    ]


def _look_json(look: Look) -> dict[str, Any]:
    return {
        **to_json(look.state, look.metrics),
        "gpus": [asdict(gpu) for gpu in look.gpus],
        "judged": [asdict(each) for each in look.judged],
        "judged_window_s": look.window_s,
    }


#: The parts of a card's memory that vLLM reports, and their names.
_MEMORY = {"weights": "weights", "kv": "KV cache", "activations": "activations", "graphs": "graphs"}
#: Entries of a state that are shown unchanged.
_AS_THEY_ARE = (
    "name", "phase", "stage", "percent", "message", "model", "models", "source", "family", "vllm", "limits",
    "server_pid", "started", "attempt", "report", "plan", "failure", "events", "log",
)  # fmt: skip


def to_json(state: State, metrics: ServerMetrics | None) -> dict[str, Any]:
    """One server's status as JSON values. The key is included: the file it comes from is readable by its owner only."""
    live = state.phase in LIVE
    return {
        **{name: getattr(state, name) for name in _AS_THEY_ARE},
        "endpoint": state.url if live else None,
        "api_key": Folder(state.name).key() if live else "",
        "supervisor_pid": state.supervisor.pid if state.supervisor and live else None,
        "ready_after_s": None if state.ready_after is None else round(state.ready_after, 3),
        "uptime_s": round(time.time() - state.ready_at, 1) if state.ready_at is not None and live else None,
        "download": state.download and state.download.model_dump(),
        "heartbeat": state.heartbeat and state.heartbeat.model_dump(),
        "metrics": metrics and metrics.to_json(),
    }


def lines_of(look: Look) -> list[str]:
    """One server's status for a person."""
    state, metrics = look.state, look.metrics
    since = state.ready_at if state.phase == "ready" else state.since or state.started
    span = "" if since is None or state.phase not in LIVE else f" for {_span(time.time() - since)}"
    lines = [f"{state.name}: {state.phase}{span}"]
    if state.phase in LIVE:
        model = state.model
        if state.source and not state.source.endswith(state.model):
            model = f"{state.model} ({state.source})"
        lines.append(f"  model      {model}, vLLM {state.vllm}" if model else f"  {state.message}")
    if state.phase in LIVE and state.models:
        lines.append(f"  swaps      {', '.join(state.models)}")
    if state.is_ready:
        lines.append(f"  endpoint   {state.url}")
        limits = state.limits
        lines.append(
            f"  limits     {_or(limits.get('context'))} tokens, {_or(limits.get('images'))} images a request, "
            f"{_or(limits.get('max_pixels'))} pixels an image"
        )
        report = state.report
        memory = [
            f"{label} {float(report[name]) / 1024**3:.2f} GiB" for name, label in _MEMORY.items() if report.get(name)
        ]
        if memory:
            lines.append(f"  memory     {', '.join(memory)}")
        lines += [*_load(metrics), *_judged(look)] if metrics else ["  load       ? (no answer from /metrics)"]
        lines += _heartbeat(state)
    elif state.phase in LIVE and state.stage:
        lines.append(f"  stage      {state.stage}")
    if state.failure and state.phase in ("failed", "waiting", "restarting"):
        failure = state.failure
        lines.append(f"  {str(failure.get('title', '')).rstrip('.')}. {failure.get('cause', '')}".rstrip())
        if failure.get("evidence"):
            lines.append(f'  it said: "{str(failure["evidence"])[:300]}"')
        if failure.get("stopped_because") and failure.get("stopped_because") != failure.get("remedy"):
            lines.append(f"  {failure['stopped_because']}")
        lines.append(f"  what to do: {failure.get('remedy', '')}")
    if state.phase == "asleep":
        lines += [f"  endpoint   {state.url}", f"  {state.message}"]
    if state.phase == "stopped":
        again = ", `mai-server up --again` starts it as it was" if Folder(state.name).request_file.is_file() else ""
        lines += [f"  {state.message}"] if state.message else []
        lines.append(f"  `mai-server up` starts it{again}.")
    return lines


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _heartbeat(state: State) -> list[str]:
    """Return the line about the engine's last heartbeat; no line before the first heartbeat."""
    beat = state.heartbeat
    if beat is None or beat.at is None:
        return []
    how = "seen computing" if beat.seconds is None else f"a token in {beat.seconds:.2f} s"
    missed = f", {beat.missed} missed since" if beat.missed else ""
    return [f"  heartbeat  {_span(max(0.0, time.time() - beat.at))} ago ({how}){missed}"]


def _load(metrics: ServerMetrics) -> list[str]:
    return [
        f"  load       {_or(metrics.running)} running, {_or(metrics.waiting)} waiting, "
        f"{_or(metrics.finished)} finished, "
        f"{_or(metrics.preemptions)} preempted",
        f"  latency    first token {_seconds(metrics.ttft)}, per token {_seconds(metrics.per_token)}, "
        f"whole {_seconds(metrics.end_to_end)}  (p50 / p95 / p99)",
    ]


def _judged(look: Look) -> Iterator[str]:
    """Yield each number with its target, and advice below a number that misses it."""
    if not look.judged:
        yield "  judged     nothing yet: nobody has asked anything"
        return
    since = "since its start" if look.window_s is None else f"the last {look.window_s:.0f} s"
    yield f"  judged     {since}, for one person's agent"
    for each in look.judged:
        yield f"    {each.name:<14}{each}"
        if each.advice:
            yield f"    {'':<14}-> {each.advice}"


def _or(value: object) -> str:
    if value is None:
        return "?"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _seconds(latency: Latency | None) -> str:
    if latency is None:
        return "?"
    values = (latency.p50, latency.p95, latency.p99)
    return " / ".join(f"{value:.{2 if value >= 0.1 else 3}f}" for value in values) + " s"


def _watch(look_at: Callable[[], list[Look]]) -> int:
    from rich.live import Live
    from rich.text import Text

    from foundation.rich_console import GatedConsole

    with Live(Text(""), console=GatedConsole(), refresh_per_second=4, screen=False) as live:
        while True:
            live.update(Text("\n\n".join("\n".join(lines_of(look)) for look in look_at())))
            time.sleep(1)
