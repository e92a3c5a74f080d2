"""What a running server really has and does: its /metrics as plain values. Missing means unknown, not zero.

Names are those of vLLM 0.33; earlier ones are tried where they changed. Counters are since the server's start. What is
no number (NaN, infinity) is as good as missing.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of a histogram, in seconds, and how many values it holds."""

    p50: float
    p95: float
    p99: float
    count: int


@dataclass(frozen=True, slots=True)
class ServerMetrics:
    """One reading. Several engines are added up (counters) or averaged (KV use); None where not reported.

    Args:
        kv_usage: share of the KV cache in use, 0 to 1.
        kv_tokens: tokens that the KV cache holds, of all engines.
        max_concurrency: requests of the whole context at a time, of all engines.
        running, waiting: requests now.
        waiting_for_capacity: of the waiting, those that wait for room in the KV cache.
        preemptions: requests that had to give their room back.
        prefix_queries, prefix_hits: tokens looked up in the prefix cache, and found.
        image_queries, image_hits: images looked up in the multimodal cache, and found.
        prompt_tokens, generation_tokens: processed so far.
        requests: finished, by reason.
        ttft, per_token, end_to_end, queue: latencies.
        sleeping: whether the engine sleeps.
    """

    kv_usage: float | None = None
    kv_tokens: int | None = None
    max_concurrency: float | None = None
    running: int | None = None
    waiting: int | None = None
    waiting_for_capacity: int | None = None
    preemptions: int | None = None
    prefix_queries: int | None = None
    prefix_hits: int | None = None
    image_queries: int | None = None
    image_hits: int | None = None
    prompt_tokens: int | None = None
    generation_tokens: int | None = None
    requests: Mapping[str, int] | None = None
    ttft: Latency | None = None
    per_token: Latency | None = None
    end_to_end: Latency | None = None
    queue: Latency | None = None
    sleeping: bool | None = None

    @property
    def prefix_hit_rate(self) -> float | None:
        """Share of prompt tokens that the prefix cache gave; None before the first request."""
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
    """A share, None where either is unknown or there is nothing to share."""
    return None if part is None or not whole else part / whole


@dataclass(frozen=True, slots=True)
class _Sample:
    name: str
    labels: Mapping[str, str]
    value: float


def parse_metrics(text: str) -> ServerMetrics:
    """Metrics from Prometheus' text format. Lines that are none are skipped."""
    samples = list(_samples(text))

    def total(*names: str) -> float | None:
        for name in names:
            values = [sample.value for sample in samples if sample.name == name]
            if values:
                return _sum(values)
        return None

    def whole(*names: str) -> int | None:
        found = total(*names)
        return None if found is None else round(found)

    usage = [s.value for s in samples if s.name in ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")]
    info = [s.labels for s in samples if s.name == "vllm:cache_config_info"]
    reasons = {s.labels.get("finished_reason", "other"): 0 for s in samples if s.name == "vllm:request_success_total"}
    for sample in samples:
        if sample.name == "vllm:request_success_total":
            reasons[sample.labels.get("finished_reason", "other")] += round(sample.value)
    capacity = [
        s.value
        for s in samples
        if s.name == "vllm:num_requests_waiting_by_reason" and s.labels.get("reason") == "capacity"
    ]
    awake = [s.value for s in samples if s.name == "vllm:engine_sleep_state" and s.labels.get("sleep_state") == "awake"]
    return ServerMetrics(
        kv_usage=None if (used := _sum(usage)) is None else used / len(usage),
        kv_tokens=_kv_tokens(info),
        max_concurrency=_info_sum(info, "kv_cache_max_concurrency"),
        running=whole("vllm:num_requests_running"),
        waiting=whole("vllm:num_requests_waiting"),
        waiting_for_capacity=None if (short := _sum(capacity)) is None else round(short),
        preemptions=whole("vllm:num_preemptions_total"),
        prefix_queries=whole("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
        prefix_hits=whole("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
        image_queries=whole("vllm:mm_cache_queries_total"),
        image_hits=whole("vllm:mm_cache_hits_total"),
        prompt_tokens=whole("vllm:prompt_tokens_total"),
        generation_tokens=whole("vllm:generation_tokens_total"),
        requests=reasons or None,
        ttft=_latency(samples, "vllm:time_to_first_token_seconds"),
        per_token=_latency(samples, "vllm:request_time_per_output_token_seconds")
        or _latency(samples, "vllm:inter_token_latency_seconds")
        or _latency(samples, "vllm:time_per_output_token_seconds"),
        end_to_end=_latency(samples, "vllm:e2e_request_latency_seconds"),
        queue=_latency(samples, "vllm:request_queue_time_seconds"),
        sleeping=None if not awake else not any(awake),
    )


def _samples(text: str) -> Iterable[_Sample]:
    """Samples one family at a time; a line that Prometheus' parser refuses costs only its own family."""
    from prometheus_client.parser import text_string_to_metric_families

    kept = "\n".join(line for line in text.splitlines() if line.startswith(("vllm:", "# TYPE vllm:"))) + "\n"
    try:
        families = list(text_string_to_metric_families(kept))
    except (ValueError, IndexError, KeyError):
        families = []
        for line in kept.splitlines():
            try:
                families += list(text_string_to_metric_families(line + "\n"))
            except (ValueError, IndexError, KeyError):
                continue
    for family in families:
        for sample in family.samples:
            value = _number(str(sample.value))
            if value is not None:
                yield _Sample(sample.name, sample.labels, value)


def _number(text: str | None) -> float | None:
    try:
        found = float(text) if text else None
    except ValueError:
        return None
    return found if found is not None and math.isfinite(found) else None


def _info_sum(info: list[Mapping[str, str]], label: str) -> float | None:
    values = [number for labels in info if (number := _number(labels.get(label))) is not None]
    return _sum(values)


def _sum(values: list[float]) -> float | None:
    """The sum; None of nothing, and where it is beyond every number."""
    whole = sum(values)
    return whole if values and math.isfinite(whole) else None


def _kv_tokens(info: list[Mapping[str, str]]) -> int | None:
    """Tokens of all engines' caches: said outright, or blocks times their size (older versions)."""
    said = _info_sum(info, "kv_cache_size_tokens")
    if said is not None:
        return round(said)
    blocks = [(_number(labels.get("num_gpu_blocks")), _number(labels.get("block_size"))) for labels in info]
    tokens = _sum([count * size for count, size in blocks if count and size])
    return None if tokens is None else round(tokens)


def _latency(samples: list[_Sample], name: str) -> Latency | None:
    """Percentiles of a histogram over all engines, linear within a bucket as Prometheus' histogram_quantile."""
    buckets: dict[float, float] = {}
    for sample in samples:
        if sample.name == f"{name}_bucket":
            le = sample.labels.get("le")
            bound = math.inf if le == "+Inf" else _number(le)
            if bound is not None:
                buckets[bound] = buckets.get(bound, 0.0) + sample.value
    ordered = sorted(buckets.items())
    if not ordered or ordered[-1][1] <= 0 or not all(math.isfinite(count) for _, count in ordered):
        return None
    p50, p95, p99 = (_quantile(ordered, share) for share in (0.5, 0.95, 0.99))
    return Latency(p50, p95, p99, round(ordered[-1][1]))


def _quantile(buckets: list[tuple[float, float]], share: float) -> float:
    rank = share * buckets[-1][1]
    below, bound_below = 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            if bound == float("inf"):
                return bound_below
            inside = count - below
            return bound_below + (bound - bound_below) * ((rank - below) / inside if inside else 1.0)
        below, bound_below = count, bound
    return bound_below
