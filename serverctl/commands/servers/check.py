"""`mai-server check`: the checklist of a server that goes into production, answered by the server itself.

Any OpenAI-compatible server can be asked; vLLM's counters and our own state answer more points.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from foundation.command_line import Parser
from foundation.errors import ExitStatus
from foundation.printing import put, put_json
from serverctl.commands.endpoint_options import add_target, chosen_target
from serverctl.diagnose.classify import classify_log
from serverctl.diagnose.failures import Kind
from serverctl.hardware.facts import GIB
from serverctl.hardware.nvidia import gpu_use
from serverctl.load.client import Endpoint
from serverctl.load.health import targets
from serverctl.load.metrics import histogram, parse_window, quantile, read_samples
from serverctl.process import control, probe
from serverctl.process.state import Folder, State

#: How each point is marked.
_MARKS = {True: "ok   ", False: "WRONG", None: "?    "}
#: Tokens of the answer whose speed is measured.
_TOKENS = 33
#: Share of the context that the longest usual prompt should reach. A longer context costs slots and cache.
_LEAST_USED = 0.25
_ASK_SECONDS = 120.0
_FEWER_BITS = "`mai-server plan` says what fewer bits would give"


def main(arguments: list[str]) -> int:
    """Check a server."""
    parser = Parser(
        "mai-server check",
        description="Answer the checklist of a server that goes into production, point by point: health, a question "
        "about a picture, tokens a second, the key, prefix caching, memory, context, attention, cards, supervisor, "
        "errors. Points that a foreign server does not report are marked ?.",
        epilog="exit status: 0 nothing is wrong, 1 something is, 3 no server answers\n\n"
        "examples:\n  mai-server check\n  mai-server check --endpoint 10.0.0.7:8000 --json",
    )
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    endpoint = chosen_target(options)
    ours = (state for state in control.live_servers() if state.is_ready and state.url == endpoint.base_url)
    found = points(endpoint, next(ours, None))
    wrong = False
    kept = []
    for point in found:
        wrong |= point.ok is False
        kept.append(asdict(point))
        if not options.json:
            put(f"{_MARKS[point.ok]}  {point.name:<15}{point.found}")
            if point.ok is False and point.advice:
                put(f"       {'':<15}-> {point.advice}")
    if options.json:
        put_json({"endpoint": endpoint.base_url, "model": endpoint.model, "ok": not wrong, "points": kept}, indent=1)
    return ExitStatus.NOT_DONE if wrong else ExitStatus.DONE


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the checklist."""

    name: str
    ok: bool | None  # None if the server does not report it
    found: str  # the value, or why it is unknown
    advice: str = ""  # what to do if it is not ok


def points(server: Endpoint, state: State | None) -> Iterator[Point]:
    """Yield all points, those that the others depend on first. Asks the model one question.

    Our own server has a `state`, a foreign server has none.
    """
    health = server.ask("/health", seconds=_ASK_SECONDS)
    status = "answers 200" if health.ok else f"HTTP {health.status}" if health.status else health.body
    yield Point("health", health.ok, status, "its health check must answer 200: `mai-server logs`, or its own log")
    before = server.metrics_page(_ASK_SECONDS)
    answered, seconds = _question(server)
    after = server.metrics_page(_ASK_SECONDS)
    yield answered
    yield _speed(before, after, seconds if answered.ok else None)
    yield _closed(server)
    page = read_samples(after or "")
    info = page["cache_config_info"][0][0] if page["cache_config_info"] else {}
    yield from _configured(info)
    yield _context(server, page)
    precision = state.plan.get("precision") if state else None
    weights = "the server does not tell" if precision is None else f"{precision}: {_FEWER_BITS}"
    yield Point("weights", None if precision is None else True, weights)
    backend = state.report.get("attention") if state else None
    yield Point("attention", None if backend is None else True, str(backend or "only its log tells"))
    yield from _cards(server)
    yield _supervised(state)
    yield _trouble(state, page)


def _question(server: Endpoint) -> tuple[Point, float]:
    """Ask for some tokens about a picture, and return how long they took."""
    messages = probe.question(True, True)
    payload = {"model": server.model, "messages": messages, "max_tokens": _TOKENS, "temperature": 0}
    for extra in ({"ignore_eos": True}, {}):  # other servers may reject `ignore_eos`
        began = time.monotonic()
        answer = server.ask("/v1/chat/completions", payload | extra, _ASK_SECONDS)
        took = time.monotonic() - began
        if answer.ok:
            return Point("picture", True, f"a question about a picture is answered in {took:.2f} s"), took
        if answer.status != 400:
            break
    reason = f"HTTP {answer.status}: {answer.body[:200]}" if answer.status else answer.body
    return Point("picture", False, reason, "the model must take pictures, and the key be right"), took


def _speed(before: str | None, after: str | None, seconds: float | None) -> Point:
    wanted = targets().tokens_per_s
    each = parse_window(before, after).per_token if before and after else None
    if each is not None and each.p50 > 0:
        speed = 1 / each.p50
    elif seconds:
        speed = _TOKENS / seconds  # includes the wait for the first token: the true speed is higher
    else:
        return Point("speed", None, "no answer was measured")
    advice = "8-bit weights, fewer requests at a time, or a card with more bandwidth (`mai-server plan --compare`)"
    return Point("speed", speed >= wanted, f"{speed:.1f} tokens/s of one request (wanted: {wanted:g})", advice)


def _closed(server: Endpoint) -> Point:
    answer = replace(server, api_key="").ask("/v1/models", seconds=_ASK_SECONDS)
    advice = "start it with a key (VLLM_API_KEY), or keep its port to this machine"
    closed = answer.status in (401, 403)
    found = "refuses requests without the key" if closed else "answers anybody who reaches it"
    return Point("key", closed or (None if server.is_local else False), found, "" if closed else advice)


def _configured(info: Any) -> Iterator[Point]:
    """Yield the points on the cache and the memory share, from the configuration in vLLM's metrics."""
    prefix = {"True": True, "False": False}.get(info.get("enable_prefix_caching", ""))
    found = "on" if prefix else "the server does not tell" if prefix is None else "off"
    yield Point("prefix caching", prefix, found, "--enable-prefix-caching: histories are computed anew without it")
    share: float | None = None
    with suppress(ValueError):
        share = float(info.get("gpu_memory_utilization", ""))
    if share is None:
        yield Point("memory share", None, "the server does not tell")
        return
    advice = "use 0.85 to 0.95, which leaves memory for the driver (--gpu-memory-utilization)"
    good = 0.85 <= share <= 0.95 or bool(info.get("kv_cache_memory_bytes", "None") != "None")
    yield Point("memory share", good, f"{share:.2f}", advice)


def _context(server: Endpoint, page: Any) -> Point:
    context = probe.served_context(server)
    if context is None:
        return Point("context", None, "the server does not tell")
    if (grid := os.environ.get("GRID_MAX_CONTEXT_LENGTH")) and grid != str(context):
        return Point("context", False, f"{context:,}, and GRID_MAX_CONTEXT_LENGTH is {grid}", "make them the same")
    seen = histogram(page, "request_prompt_tokens")
    if not seen or seen[-1][1] < 20:
        return Point("context", None, f"{context:,} tokens; too few requests to say whether that suits them")
    longest = quantile(seen, 0.99)
    found = f"{context:,} tokens; 99 of 100 prompts have at most {longest:,.0f}"
    advice = "a shorter --max-model-len leaves room for more requests at a time"
    return Point("context", longest >= _LEAST_USED * context, found, advice)


def _cards(server: Endpoint) -> Iterator[Point]:
    """Yield the memory and the utilisation of this machine's cards, if the server is on this machine."""
    cards = gpu_use(()) if server.is_local else ()
    for card in cards:
        if card.used_bytes is not None and card.total_bytes:
            found = f"{card.used_bytes / GIB:.1f} of {card.total_bytes / GIB:.1f} GiB"
            full = card.used_bytes / card.total_bytes
            yield Point(f"GPU {card.index} memory", full < 0.97, found, "less than 3 % is free: lower the memory share")
        found = "?" if card.busy is None else f"{card.busy:.0%}; judged under load: `mai-server status --watch`"
        yield Point(f"GPU {card.index} busy", None, found)
    if not cards:
        yield Point("GPU", None, "no card can be looked at from here")


def _supervised(state: State | None) -> Point:
    """Find the supervisor that restarts the server after a crash."""
    if state is None:
        return Point("supervisor", None, "who starts it again after a crash cannot be seen from here")
    return Point("supervisor", True, "mai-server watches it and starts it again")


def _trouble(state: State | None, page: Any) -> Point:
    """Report errors since the start: from the log of our own server, otherwise from the counters."""
    preempted = round(sum(value for _, value in page["num_preemptions_total"]))
    if state is not None:
        with suppress(OSError):
            with Folder(state.name).log_file.open(encoding="utf-8", errors="replace") as lines:
                failure = classify_log(lines)
            if failure.kind is not Kind.NONE:
                found = f"{failure.words.title}: {failure.evidence[:120]}"
                return Point("errors", False, found, failure.words.remedy)
    if not page:
        return Point("errors", None, "only its log tells")
    found = f"{preempted} requests were thrown out of the KV cache" if preempted else "none in its log and counters"
    if state is None and not preempted:
        found = "no request was thrown out of the KV cache; its log tells the rest (`mai-server diagnose LOG`)"
    return Point("errors", not preempted, found, "fewer slots or a larger cache: `mai-server tune`")
