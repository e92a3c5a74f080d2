"""Compares a server's numbers with targets, and gives advice for each number that misses its target."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from foundation.configs import load_config
from serverctl.hardware.facts import GIB
from serverctl.hardware.nvidia import GpuUse
from serverctl.load.metrics import ServerMetrics
from serverctl.plan.memory import KvUse, judge_kv


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
    value: str  # for people; ? if it is not known
    good: bool | None  # whether it meets its target; None if it has none, or is not known
    target: str = ""  # in words
    advice: str = ""  # what to do; "" if nothing is to be done

    def __str__(self) -> str:
        if self.good is None:
            return self.value
        return f"{self.value} (good: {self.target})" if self.good else f"{self.value} (wanted: {self.target})"


@cache
def targets() -> Targets:
    """The shipped targets."""
    return Targets(**load_config("targets.toml"))


def judge(metrics: ServerMetrics, gpus: Sequence[GpuUse] = (), per_second: float | None = None) -> tuple[Judged, ...]:
    """Compare the numbers of a time window, or since the start, with their targets.

    `per_second` is the total rate of all requests in tokens/s; None if it was not measured.
    """
    found = [_first_token(metrics), _each_request(metrics)]
    if per_second is not None:
        found.append(Judged("all requests", f"{per_second:.1f} tokens/s", None))
    images = "?" if metrics.image_hit_rate is None else f"{metrics.image_hit_rate:.0%} of images"
    found += [*_slots_and_caches(metrics), Judged("image cache", images, None)]
    return (*found, *(_gpu(gpu, metrics) for gpu in gpus))


def worst(found: Sequence[Judged]) -> Judged | None:
    """The first number that misses its target; None if all is well."""
    return next((each for each in found if each.good is False), None)


def _judged(name: str, value: str | None, target: str, good: bool, advice: str) -> Judged:
    """Compare one number with its target; `value` is None if it is unknown."""
    if value is None:
        return Judged(name, "?", None, target)
    return Judged(name, value, good, target, "" if good else advice)


def _first_token(metrics: ServerMetrics) -> Judged:
    seconds, wanted = 0.0 if metrics.ttft is None else metrics.ttft.p50, targets()
    waited = metrics.queue.p50 if metrics.queue is not None else 0.0
    if waited > seconds / 2:
        advice = "most of it is waiting for a slot: `mai-server tune` says how many the KV cache holds"
    elif (metrics.prefix_hit_rate or 0) < wanted.prefix_hit_rate and metrics.prefix_queries:
        advice = "much of the prompt is computed anew: keep the beginning of the history (the agent's --history block)"
    else:
        advice = "smaller screenshots (--set longest_edge=2097152) or a faster card (`mai-server plan --compare`)"
    value = None if metrics.ttft is None else f"{seconds:.2f} s"
    target = f"under {wanted.first_token_s:g} s"
    return _judged("first token", value, target, seconds <= wanted.first_token_s, advice)


def _each_request(metrics: ServerMetrics) -> Judged:
    wanted = targets().tokens_per_s
    speed = 1 / metrics.per_token.p50 if metrics.per_token is not None and metrics.per_token.p50 > 0 else None
    if (metrics.running or 0) > 1:
        advice = "they share the card: fewer at a time (--set max_num_seqs) give each of them more"
    else:
        advice = "8-bit weights (--set quantization=fp8_per_channel) or memory with more bandwidth (`plan --compare`)"
    value = None if speed is None else f"{speed:.1f} tokens/s"
    return _judged("each request", value, f"over {wanted:g} tokens/s", (speed or 0) >= wanted, advice)


def _slots_and_caches(metrics: ServerMetrics) -> list[Judged]:
    wanted, used, hits, waiting, running = (
        targets(), metrics.kv_usage, metrics.prefix_hit_rate, metrics.waiting, metrics.running,
    )  # fmt: skip
    advice = ""  # by requests and KV cache together
    if running is not None and waiting is not None and used is not None:
        verdict = judge_kv(KvUse(round(running), round(waiting), used))
        advice = f"{verdict.what} {verdict.remedy}" if verdict is not None else ""
    tokens = "" if metrics.kv_tokens is None else f" of {metrics.kv_tokens:,} tokens"
    cache = _judged(
        "KV cache", None if used is None else f"{used:.0%}{tokens}",
        f"under {wanted.kv_usage:.0%}", (used or 0) <= wanted.kv_usage,
        "no danger, but the next request waits: fewer slots, shorter histories or 8-bit weights",
    )  # fmt: skip
    return [
        _judged(
            "queue", None if waiting is None else f"{waiting} waiting, {'?' if running is None else running} running",
            "nobody waits", not waiting,
            advice or "more slots (`mai-server tune`), or another server (--preset throughput)",
        ),
        replace(cache, advice=advice) if advice and not waiting else cache,
        _judged(
            "prefix cache", None if hits is None else f"{hits:.0%} of prompt tokens",
            f"over {wanted.prefix_hit_rate:.0%}", (hits or 0) >= wanted.prefix_hit_rate,
            "histories change at their beginning (--history block), or agents change servers",
        ),
    ]  # fmt: skip


def _gpu(gpu: GpuUse, metrics: ServerMetrics) -> Judged:
    """Compare a card's use with its target. An idle server's card is not judged."""
    memory, wanted = "", targets().gpu_busy
    if gpu.used_bytes is not None and gpu.total_bytes:
        memory = f", {gpu.used_bytes / GIB:.1f} of {gpu.total_bytes / GIB:.1f} GiB"
    name = f"GPU {gpu.index}"
    if gpu.busy is None:
        return Judged(name, f"? busy{memory}", None)
    value, target = f"{gpu.busy:.0%} busy{memory}", f"over {wanted:.0%}"
    if not metrics.running:
        return Judged(name, value, None, target)
    advice = "it waits for work: pictures on the way, a busy processor, or room for more requests"
    return _judged(name, value, target, gpu.busy >= wanted, advice)
