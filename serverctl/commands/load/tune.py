"""`mai-server tune`: what limits a server under its load, and what helps, proven by a trial."""

import argparse
import asyncio
import os
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from foundation.command_line import Parser, positive_seconds
from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError
from foundation.printing import counted, put, put_json, remark
from serverctl.commands.endpoint_options import add_target, foreign_endpoint
from serverctl.commands.progress import StartProgress
from serverctl.load.client import find_endpoint
from serverctl.load.metrics import parse_metrics, read_samples
from serverctl.load.tune.advice import Advice, Reading, advise, changes
from serverctl.load.tune.bottleneck import NAMES, find_bottleneck, unseen_images, vision_share
from serverctl.load.window import Window
from serverctl.plan.user_flags import absorbed
from serverctl.process import control, probe
from serverctl.process.request import ServerRequest, prepare, read_request
from serverctl.process.state import Folder, State, current_state
from serverctl.tuning import Change, Tried, observe, try_changes

if TYPE_CHECKING:
    from serverctl.load.bench.report import Measurement

_DESCRIPTION = """Find what limits a server under its load (slots, the KV cache, prefill, decode, image processing, or
the clients), and what would help. Judges the current load, or else the last recorded one."""

_EPILOG = """examples:
  mai-server tune                  name the bottleneck, and what would help
  mai-server tune --load 8         make a load of 8 requests at once first
  mai-server tune --endpoint 10.0.0.7:8000     a server that somebody else started, by its own counters
  mai-server tune --apply          try what would help: wait until no request runs, measure, restart with the change,
                                   measure again; what is not better is taken back

Your own settings are left alone unless --also-own is given. While the server restarts, new requests wait. Exit status:
0 said or applied, 1 nothing that was tried is better, 3 no server."""


def main(arguments: list[str]) -> int:
    """Name the bottleneck and what helps, and with --apply try it."""
    options = _parser().parse_args(arguments)
    if options.load is not None and not 1 <= options.load <= 64:
        raise UsageError(f"--load cannot be {options.load}.", "It takes 1 to 64 requests at once.")
    if options.endpoint is not None:
        if options.apply:
            raise UsageError(
                "--apply restarts a server, and this one is not ours.", "Restart it yourself with the advised settings."
            )
        reading, request = _read_foreign(options), None
    else:
        reading, request = _read_ours(options)
    found = advise(reading)
    fixed = frozenset[str]() if options.also_own else reading.fixed
    wanted = [] if request is None else changes(found, fixed)
    result: dict[str, Any] = document(reading, found, wanted)
    if not options.json:
        show(reading, found, wanted)
    status = ExitStatus.DONE
    if options.apply and wanted and request is not None and reading.window is not None:
        with StartProgress(quiet=options.json) as progress:
            change = Change(options.name, request, options.wait, options.force, progress.say, progress.update)
            tried = try_changes(change, reading, wanted)
        applied = tried[-1].verdict.better
        result |= {"applied": applied, "tried": [one.to_json() for one in tried]}
        result["endpoint"] = current_state(Folder(options.name)).url
        status = ExitStatus.DONE if applied else ExitStatus.NOT_DONE
        if not options.json:
            _show_tried(tried)
    elif options.apply and not options.json:
        put("Nothing to apply.")
    if options.json:
        put_json(result, indent=1)
    return status


def _read_ours(options: argparse.Namespace) -> tuple[Reading, ServerRequest]:
    """Observe our own server. Return the input of the advice and the server's request. Raises EnvironmentLacksError."""
    folder = Folder(options.name)
    state = current_state(folder)
    if not state.is_ready:
        raise EnvironmentLacksError(f"No server named {options.name!r} is ready.", "`mai-server up` starts one.")
    request = read_request(folder.request_file)
    request = replace(request, goal=absorbed(request.goal))  # vLLM's own flags count as the user's settings

    def say(text: str) -> None:
        if not options.json:
            remark(f"mai-server: {text}")

    server = control.endpoint_of(state)
    window = observe(server, options.load, options.seconds, say, request.goal.screen, state)
    return read(state, request, window), request


def _read_foreign(options: argparse.Namespace) -> Reading:
    """Observe a server that somebody else runs, by its counters alone. Raises EnvironmentLacksError or UsageError."""
    named = foreign_endpoint(options)
    endpoint = asyncio.run(find_endpoint(named.base_url, named.api_key, None))
    window = observe(endpoint, options.load, options.seconds)
    page = endpoint.metrics_page()
    if window is None or page is None:
        raise EnvironmentLacksError(f"{named.base_url} has no /metrics.", "Only vLLM's own are read.")
    metrics, info = parse_metrics(page), read_samples(page)["cache_config_info"]
    labels = info[0][0] if info else {}
    settings: dict[str, Any] = {}
    if labels.get("enable_prefix_caching") in ("True", "False"):
        settings["enable_prefix_caching"] = labels["enable_prefix_caching"] == "True"
    return Reading(find_bottleneck(window, None, metrics.kv_tokens), window, metrics, settings)


def _parser() -> Parser:
    parser = Parser("mai-server tune", description=_DESCRIPTION, epilog=_EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--name", default=control.DEFAULT_NAME, help="which server")
    add_target(parser, model=False)
    add("--load", type=int, metavar="N", help="make a load of N requests at once, and judge that")
    add("--seconds", type=positive_seconds, default=10.0, metavar="S", help="time to watch the current load (10)")
    add("--apply", action="store_true", help="try the changes, and keep what is better")
    add("--also-own", action="store_true", help="with --apply: change also settings that you gave yourself")
    add("--wait", type=positive_seconds, default=300.0, metavar="S", help="with --apply: for running requests (300)")
    add("--force", action="store_true", help="with --apply: do not wait; requests that run are broken off")
    add("--json", action="store_true", help="print JSON")
    return parser


def read(state: State, request: ServerRequest, window: Window | None) -> Reading:
    """Read the input of a judgement. Raises EnvironmentLacksError if the server does not answer /metrics."""
    server = control.endpoint_of(state)
    metrics = probe.read_metrics(server)
    if metrics is None:
        raise EnvironmentLacksError("The server does not answer /metrics.", "`mai-server status` says how it is.")
    settings = state.plan.get("settings", {})
    vision, edge = 0.0, settings.get("longest_edge")
    if window is not None and window.prompt_tokens:
        model = prepare(request, request.goal).plan.model
        if settings.get("mm_processor_cache_gb") == 0:  # without this cache, no images are counted
            window = replace(window, unseen_images=unseen_images(window, model, request.goal.screen, settings))
    if window is not None and window.images and window.prompt_tokens:
        vision = vision_share(model, request.goal.screen, edge, window.images, window.prompt_tokens)
    return Reading(
        bottleneck=find_bottleneck(window, settings.get("max_num_seqs"), metrics.kv_tokens, vision),
        window=window,
        metrics=metrics,
        settings=settings,
        context=probe.served_context(server) or state.limits.get("context"),
        fixed=frozenset(request.goal.overrides),
        processor=request.processor,
        cores=len(os.sched_getaffinity(0)),
    )


def document(reading: Reading, found: list[Advice], wanted: list[Advice]) -> dict[str, Any]:
    """The judgement as JSON values."""
    return {
        "bottleneck": reading.bottleneck.to_json(),
        "window": None if reading.window is None else reading.window.to_json(),
        "advice": [asdict(one) for one in found],
        "would_apply": {one.setting: one.value for one in wanted},
        "own_settings": sorted(reading.fixed),
        "context": reading.context,
        "metrics": reading.metrics.to_json(),
    }


def show(reading: Reading, found: list[Advice], wanted: list[Advice]) -> None:
    """The judgement for a person."""
    window, bottleneck = reading.window, reading.bottleneck
    if window is not None and window.finished:
        seconds = "since its start" if window.seconds is None else f"in {window.seconds:.0f} s"
        ago = (time.time() - window.snapshots[-1].at) / 60
        when = f", {ago:.0f} minutes ago" if ago >= 2 else ""
        put(f"{window.finished:,} requests {seconds}{when}, up to {window.clients} at once.")
    if window is not None and (parts := window.parts) is not None:
        put(
            f"A request takes {parts.whole:.2f} s in the mean: {parts.images:.2f} before the model (images), "
            f"{parts.queue:.2f} waiting, {parts.prefill:.2f} prefill, {parts.decode:.2f} decode."
        )
    if bottleneck.kind == "unknown":
        put(
            f"There is nothing to judge: {bottleneck.because}.",
            "`mai-server tune --load 8` makes a load of 8 requests at once and judges that.",
        )
    else:
        put(f"Bottleneck: {NAMES[bottleneck.kind]}: {bottleneck.because}.")
    for one in found:
        if not one.setting:
            put(f"- {one.because}.")
            continue
        mine = (
            ""
            if one in wanted or one.setting not in reading.fixed
            else "  (your own setting: --also-own lets --apply change it)"
        )
        now = "vLLM's default" if one.now is None else one.now
        put(f"- {one.setting}: {now} -> {one.value}{mine}", f"    because {one.because}.")
    if wanted:
        put("`mai-server tune --apply` tries this, and keeps it if requests get shorter.")


def _show_tried(tried: list[Tried]) -> None:
    for one in tried:
        kept = "kept" if one.verdict.better else "taken back"
        put(f"{one.advice.setting} = {one.advice.value}: {one.verdict.because}; {kept}.")
        for when, half in (("before", one.before), ("after", one.after)):
            if half is not None:
                put(*(f"    {when + ':':<7} {_figures(measured)}" for measured in half.measurements))


def _figures(measured: "Measurement") -> str:
    total, first = measured.summary("total_ms"), measured.summary("ttft_ms")
    if total is None or first is None:
        return "no request was answered"
    rate = measured.rates["requests_per_s"]
    often = "" if rate is None else f", {rate:.2f} requests a second"
    return (
        f"{total.mean / 1000:.2f} s a request (half of them under {total.p50 / 1000:.2f}), first token after "
        f"{first.mean / 1000:.2f} s{often} ({counted(total.n, 'request')}: {measured.setting})"
    )
