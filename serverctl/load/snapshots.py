"""What a server had counted at a moment: small enough to keep many, so that any two make a window of time.

Metrics since the start say little of the load of now: a readiness probe, a first slow request and a calm night are all
in them. What was counted between two moments is the load of that time, and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from serverctl.load.metrics import read_samples

#: Counters by our names: the metrics of vLLM 0.32 and 0.33, of all engines and labels together. Seconds and numbers.
_COUNTERS = {
    "finished": "request_success_total",
    "first_token_s": "time_to_first_token_seconds_sum",
    "first_tokens": "time_to_first_token_seconds_count",
    "queue_s": "request_queue_time_seconds_sum",
    "queued": "request_queue_time_seconds_count",
    "prefill_s": "request_prefill_time_seconds_sum",
    "decode_s": "request_decode_time_seconds_sum",
    "whole_s": "e2e_request_latency_seconds_sum",
    "prompt_tokens": "prompt_tokens_total",
    "answer_tokens": "generation_tokens_total",
    "engine_steps": "iteration_tokens_total_count",
    "preemptions": "num_preemptions_total",
    "prefix_queries": "prefix_cache_queries_total",
    "prefix_hits": "prefix_cache_hits_total",
    "image_queries": "mm_cache_queries_total",
    "image_hits": "mm_cache_hits_total",
}
#: What is so at the moment. The KV cache's use is a share, 0 to 1: the fullest engine's.
_GAUGES = {"running": "num_requests_running", "waiting": "num_requests_waiting"}
_KV_USE = "kv_cache_usage_perc"
_QUEUE_BUCKET = "request_queue_time_seconds_bucket"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counters and loads at a moment. What the server does not report is not in it: unknown, not zero."""

    at: float  # seconds since the epoch
    counters: Mapping[str, float] = field(default_factory=dict)  # by the names above
    loads: Mapping[str, float] = field(default_factory=dict)  # running, waiting, kv_use
    #: requests by the longest time that they waited, in seconds ("+Inf" for the last): cumulative, as Prometheus has it
    queue: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {"at": round(self.at, 3), "counters": dict(self.counters), "loads": dict(self.loads),
                "queue": dict(self.queue)}  # fmt: skip

    @classmethod
    def from_json(cls, document: Any) -> "Snapshot | None":
        """From JSON values; None where they are none of ours: a file may have been cut off or edited."""
        if not isinstance(document, dict) or not isinstance(document.get("at"), int | float):
            return None
        counters, loads, queue = (_numbers(document.get(name)) for name in ("counters", "loads", "queue"))
        if counters is None or loads is None or queue is None:
            return None
        return cls(float(document["at"]), counters, loads, queue)

    @property
    def busy(self) -> bool:
        """Whether a request ran or waited at this moment."""
        return any(self.loads.get(name, 0) > 0 for name in _GAUGES)


def _numbers(part: object) -> dict[str, float] | None:
    if not isinstance(part, dict) or not all(type(value) in (int, float) for value in part.values()):
        return None
    return part


def take_snapshot(text: str, at: float) -> Snapshot:
    """A snapshot of a /metrics page (Prometheus' text format), read at so many seconds since the epoch."""
    samples = read_samples(text)

    def added(names: Mapping[str, str]) -> dict[str, float]:
        return {ours: sum(value for _, value in samples[name]) for ours, name in names.items() if name in samples}

    queue: dict[str, float] = {}
    for labels, value in samples.get(_QUEUE_BUCKET, ()):
        bound = labels.get("le", "")
        queue[bound] = queue.get(bound, 0.0) + value
    loads = added(_GAUGES)
    if _KV_USE in samples:
        loads["kv_use"] = max(value for _, value in samples[_KV_USE])
    return Snapshot(at, added(_COUNTERS), loads, queue)
