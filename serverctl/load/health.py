"""A server's numbers held against targets, each with a word on what to do where it misses one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from foundation.configs import load_config
from serverctl.hardware.facts import GIB
from serverctl.hardware.nvml import GpuUse
from serverctl.load.metrics import ServerMetrics


@dataclass(frozen=True, slots=True)
class Targets:
    """The numbers of `configs/targets.toml`; shares are from 0 to 1."""

    first_token_s: float
    tokens_per_s: float
    kv_usage: float
    prefix_hit_rate: float
    gpu_busy: float


@dataclass(frozen=True, slots=True)
class Judged:
    """One number of a server."""

    name: str  # what it is
    value: str  # as a person reads it; ? where it is not known
    good: bool | None  # whether it meets its target; None where it has none, or is not known
    target: str = ""  # in words
    advice: str = ""  # what to do; "" where nothing is to be done

    def __str__(self) -> str:
        if self.good is None:
            return self.value
        return f"{self.value} (good: {self.target})" if self.good else f"{self.value} (wanted: {self.target})"

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


@cache
def targets() -> Targets:
    """The shipped targets."""
    return Targets(**load_config("targets.toml"))


def judge(metrics: ServerMetrics, gpus: Sequence[GpuUse] = (), per_second: float | None = None) -> tuple[Judged, ...]:
    """Every number worth watching.

    Args:
        metrics: of a window of time, or since the server's start.
        gpus: the cards that it uses.
        per_second: tokens that all requests together got a second; None where nobody counted.
    """
    parts: tuple[Callable[[ServerMetrics, Targets], Judged], ...] = (
        _first_token, _each, _queue, _kv, _prefix, _images,
    )  # fmt: skip
    found = [part(metrics, targets()) for part in parts]
    if per_second is not None:
        found.insert(2, Judged("all requests", f"{per_second:.1f} tokens/s", None))
    return (*found, *_gpus(gpus, metrics, targets()))


def worst(found: Sequence[Judged]) -> Judged | None:
    """The first number that misses its target; None where all is well."""
    return next((each for each in found if each.good is False), None)


def _first_token(metrics: ServerMetrics, wanted: Targets) -> Judged:
    target = f"under {wanted.first_token_s:g} s"
    if metrics.ttft is None:
        return Judged("first token", "?", None, target)
    seconds = metrics.ttft.p50
    value = f"{seconds:.2f} s"
    if seconds <= wanted.first_token_s:
        return Judged("first token", value, True, target)
    waited = metrics.queue.p50 if metrics.queue is not None else 0.0
    if waited > seconds / 2:
        advice = "most of it is waiting for a slot: `mai-server tune` says how many the KV cache holds"
    elif (metrics.prefix_hit_rate or 0) < wanted.prefix_hit_rate and metrics.prefix_queries:
        advice = "much of the prompt is computed anew: keep the beginning of the history (the agent's --history block)"
    else:
        advice = "smaller screenshots (--set longest_edge=2097152) or a faster card (`mai-server plan --compare`)"
    return Judged("first token", value, False, target, advice)


def _each(metrics: ServerMetrics, wanted: Targets) -> Judged:
    target = f"over {wanted.tokens_per_s:g} tokens/s"
    if metrics.per_token is None or metrics.per_token.p50 <= 0:
        return Judged("each request", "?", None, target)
    speed = 1 / metrics.per_token.p50
    value = f"{speed:.1f} tokens/s"
    if speed >= wanted.tokens_per_s:
        return Judged("each request", value, True, target)
    if (metrics.running or 0) > 1:
        advice = "they share the card: fewer at a time (--set max_num_seqs) give each of them more"
    else:
        advice = "8-bit weights (--set quantization=fp8_per_channel) or memory with more bandwidth (`plan --compare`)"
    return Judged("each request", value, False, target, advice)


def _queue(metrics: ServerMetrics, wanted: Targets) -> Judged:
    if metrics.waiting is None:
        return Judged("queue", "?", None, "nobody waits")
    value = f"{metrics.waiting} waiting, {'?' if metrics.running is None else metrics.running} running"
    if not metrics.waiting:
        return Judged("queue", value, True, "nobody waits")
    full = metrics.kv_usage is not None and metrics.kv_usage > wanted.kv_usage
    advice = (
        "the KV cache is nearly full: shorter requests, 8-bit weights or more cards"
        if full
        else "the KV cache has room: more slots (`mai-server tune`), or another server (--preset throughput)"
    )
    return Judged("queue", value, False, "nobody waits", advice)


def _kv(metrics: ServerMetrics, wanted: Targets) -> Judged:
    target = f"under {wanted.kv_usage:.0%}"
    if metrics.kv_usage is None:
        return Judged("KV cache", "?", None, target)
    tokens = "" if metrics.kv_tokens is None else f" of {metrics.kv_tokens:,} tokens"
    good = metrics.kv_usage <= wanted.kv_usage
    advice = "" if good else "no danger, but who comes next waits: fewer slots, shorter histories or 8-bit weights"
    return Judged("KV cache", f"{metrics.kv_usage:.0%}{tokens}", good, target, advice)


def _prefix(metrics: ServerMetrics, wanted: Targets) -> Judged:
    target, found = f"over {wanted.prefix_hit_rate:.0%}", metrics.prefix_hit_rate
    if found is None:
        return Judged("prefix cache", "?", None, target)
    good = found >= wanted.prefix_hit_rate
    advice = "" if good else "histories change at their beginning (--history block), or agents change servers"
    return Judged("prefix cache", f"{found:.0%} of prompt tokens", good, target, advice)


def _images(metrics: ServerMetrics, _: Targets) -> Judged:
    found = metrics.image_hit_rate
    return Judged("image cache", "?" if found is None else f"{found:.0%} of images", None)


def _gpus(gpus: Sequence[GpuUse], metrics: ServerMetrics, wanted: Targets) -> Iterator[Judged]:
    """Cards that work for nobody are not judged."""
    for gpu in gpus:
        memory = ""
        if gpu.used_bytes is not None and gpu.total_bytes:
            memory = f", {gpu.used_bytes / GIB:.1f} of {gpu.total_bytes / GIB:.1f} GiB"
        name = f"GPU {gpu.index}"
        if gpu.busy is None:
            yield Judged(name, f"? busy{memory}", None)
            continue
        value, target = f"{gpu.busy:.0%} busy{memory}", f"over {wanted.gpu_busy:.0%}"
        if not metrics.running:
            yield Judged(name, value, None, target)
            continue
        good = gpu.busy >= wanted.gpu_busy
        advice = "" if good else "it waits for work: pictures on the way, a busy processor, or room for more requests"
        yield Judged(name, value, good, target, advice)
