"""The /metrics of a running server as plain values. A missing metric is unknown, not zero.

Names are those of vLLM 0.19 to 0.33. Counters are since the server's start. NaN and infinity count as missing.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of a histogram, in seconds, and how many values it holds."""

    p50: float
    p95: float
    p99: float
    count: int


@dataclass(frozen=True, slots=True)
class ServerMetrics:
    """One reading. Counters are summed over engines, KV use is averaged; None is not reported."""

    kv_usage: float | None = None  # share of the KV cache in use, 0 to 1
    kv_tokens: int | None = None  # tokens that the KV cache holds, of all engines
    max_concurrency: float | None = None  # requests of the whole context at a time, of all engines
    running: int | None = None  # requests now
    waiting: int | None = None
    waiting_for_capacity: int | None = None  # of the waiting, those without a free slot or KV cache
    preemptions: int | None = None  # requests that lost their room in the KV cache
    prefix_queries: int | None = None  # tokens looked up in the prefix cache
    prefix_hits: int | None = None  # found there
    image_queries: int | None = None  # images looked up in the multimodal cache
    image_hits: int | None = None  # found there
    prompt_tokens: int | None = None  # tokens so far, in the next too
    generation_tokens: int | None = None
    requests: Mapping[str, int] | None = None  # finished, by reason
    ttft: Latency | None = None
    per_token: Latency | None = None
    end_to_end: Latency | None = None
    queue: Latency | None = None
    sleeping: bool | None = None  # whether the engine sleeps

    @property
    def prefix_hit_rate(self) -> float | None:
        """Share of prompt tokens that came from the prefix cache; None before the first request."""
        return rate(self.prefix_hits, self.prefix_queries)

    @property
    def image_hit_rate(self) -> float | None:
        """Share of images that were processed before; None before the first image."""
        return rate(self.image_hits, self.image_queries)

    @property
    def finished(self) -> int | None:
        """Finished requests."""
        return None if self.requests is None else sum(self.requests.values())

    def to_json(self) -> dict[str, Any]:
        """As JSON values, rates included."""
        return {
            **asdict(self),
            "prefix_hit_rate": self.prefix_hit_rate,
            "image_hit_rate": self.image_hit_rate,
            "finished": self.finished,
        }


def rate(part: float | None, whole: float | None) -> float | None:
    """A share; None if either number is unknown, or the whole is 0."""
    return None if part is None or not whole else part / whole


#: Metrics that are added up over engines, by field.
_COUNTS = {
    "running": "num_requests_running",
    "waiting": "num_requests_waiting",
    "preemptions": "num_preemptions_total",
    "prefix_queries": "prefix_cache_queries_total",
    "prefix_hits": "prefix_cache_hits_total",
    "image_queries": "mm_cache_queries_total",
    "image_hits": "mm_cache_hits_total",
    "prompt_tokens": "prompt_tokens_total",
    "generation_tokens": "generation_tokens_total",
}
#: Histograms by field.
_LATENCIES = {
    "ttft": "time_to_first_token_seconds",
    "per_token": "request_time_per_output_token_seconds",
    "end_to_end": "e2e_request_latency_seconds",
    "queue": "request_queue_time_seconds",
}

#: Suffixes of samples that never decrease.
_GROWING = ("_total", "_bucket", "_sum", "_count")
#: Samples by the name of their metric, without "vllm:": labels and value.
Samples: TypeAlias = dict[str, list[tuple[Mapping[str, str], float]]]


def parse_metrics(text: str) -> ServerMetrics:
    """Parse metrics in Prometheus' text format, and skip other lines."""
    return _read(read_samples(text))


def parse_window(before: str, after: str) -> ServerMetrics:
    """The metrics of the time between two readings: counters and histograms as they grew, the rest as it is now.

    A counter that decreased was reset, and counts from 0.
    """
    old = {
        (name, *sorted(labels.items())): value
        for name, all_of in read_samples(before).items()
        for labels, value in all_of
    }
    window: Samples = defaultdict(list)
    for name, all_of in read_samples(after).items():
        grows = name.endswith(_GROWING)
        for labels, value in all_of:
            earlier = old.get((name, *sorted(labels.items())), 0.0) if grows else 0.0
            window[name].append((labels, value - earlier if earlier <= value else value))
    return _read(window)


def _read(samples: Samples) -> ServerMetrics:
    def values(name: str, **labels: str) -> list[float]:
        return [value for found, value in samples[name] if labels.items() <= found.items()]

    info = [labels for labels, _ in samples["cache_config_info"]]
    usage = values("kv_cache_usage_perc")
    reasons: dict[str, int] = defaultdict(int)
    for labels, value in samples["request_success_total"]:
        reasons[labels.get("finished_reason", "other")] += round(value)
    awake = values("engine_sleep_state", sleep_state="awake")
    several: dict[str, Any] = {field: _whole(values(name)) for field, name in _COUNTS.items()}
    several |= {field: _latency(samples, name) for field, name in _LATENCIES.items()}
    return ServerMetrics(
        kv_usage=sum(usage) / len(usage) if usage else None,
        kv_tokens=_kv_tokens(info),
        max_concurrency=sum(_numbers(info, "kv_cache_max_concurrency")) or None,
        waiting_for_capacity=_whole(values("num_requests_waiting_by_reason", reason="capacity")),
        requests=dict(reasons) or None,
        sleeping=None if not awake else not any(awake),
        **several,
    )


def read_samples(text: str) -> Samples:
    """Parse the samples of a page one family at a time, so that an invalid line only loses its own family."""
    from prometheus_client.parser import text_string_to_metric_families

    kept = [line for line in text.splitlines() if line.startswith(("vllm:", "# TYPE vllm:"))]
    try:
        families = list(text_string_to_metric_families("\n".join(kept) + "\n"))
    except (ValueError, IndexError, KeyError):
        families = []
        for line in kept:
            with suppress(ValueError, IndexError, KeyError):
                families += text_string_to_metric_families(line + "\n")
    found: Samples = defaultdict(list)
    for sample in (sample for family in families for sample in family.samples):
        if math.isfinite(sample.value):
            found[sample.name.removeprefix("vllm:")].append((sample.labels, float(sample.value)))
    return found


def _numbers(info: list[Mapping[str, str]], label: str) -> list[float]:
    found = []
    for labels in info:
        with suppress(ValueError):
            found.append(float(labels.get(label, "")))
    return [number for number in found if math.isfinite(number)]


def _whole(values: list[float]) -> int | None:
    """Return the sum in whole numbers; None if there are no values or it overflows."""
    total = sum(values)
    return round(total) if values and math.isfinite(total) else None


def _kv_tokens(info: list[Mapping[str, str]]) -> int | None:
    """Return the tokens of all engines' caches, as reported or, in older versions, blocks times block size."""
    reported = _whole(_numbers(info, "kv_cache_size_tokens"))
    if reported is not None:
        return reported
    blocks = zip(_numbers(info, "num_gpu_blocks"), _numbers(info, "block_size"), strict=False)
    return _whole([count * size for count, size in blocks if count and size])


def histogram(samples: Samples, name: str) -> list[tuple[float, float]]:
    """Return a histogram's cumulative buckets (bound, count) over all engines; empty if it holds nothing."""
    buckets: dict[float, float] = defaultdict(float)
    for labels, count in samples[f"{name}_bucket"]:
        with suppress(ValueError):
            buckets[float(labels.get("le", ""))] += count
    ordered = sorted(buckets.items())
    usable = ordered and ordered[-1][1] > 0 and all(math.isfinite(count) for count in buckets.values())
    return ordered if usable and not any(map(math.isnan, buckets)) else []


def _latency(samples: Samples, name: str) -> Latency | None:
    if not (buckets := histogram(samples, name)):
        return None
    p50, p95, p99 = (quantile(buckets, share) for share in (0.5, 0.95, 0.99))
    return Latency(p50, p95, p99, round(buckets[-1][1]))


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """A quantile of cumulative buckets (bound, count), linear within a bucket as Prometheus' histogram_quantile."""
    rank = share * buckets[-1][1]
    bounds = pairwise([(0.0, 0.0), *buckets])
    (lower, below), (bound, count) = next(pair for pair in bounds if pair[1][1] >= rank)
    if bound == math.inf:
        return lower
    inside = count - below
    return lower + (bound - lower) * ((rank - below) / inside if inside else 1.0)
