"""What the server itself counted while it was measured, from its /metrics before and after.

A metric that is missing is unknown, never 0: vLLM renames metrics (gpu_cache_usage_perc became kv_cache_usage_perc),
and whoever reads the old name as 0 sees an idle cache.
"""

import urllib.request
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException

from serverctl.load.client import Endpoint
from serverctl.load.metrics import rate

_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class ServerSide:
    """What the server counted during one setting; None is unknown."""

    prefix_hit_rate: float | None = None  # 0 to 1, of the prompt tokens looked up in the prefix cache
    mm_hit_rate: float | None = None  # 0 to 1, of the images looked up in the multimodal cache
    preemptions: float | None = None  # requests that were thrown out of the KV cache and computed again
    queue_ms: float | None = None  # mean time that a request waited to be scheduled, in milliseconds
    requests: float | None = None  # requests that the server finished, those of others included


def server_side(before: Mapping[str, float] | None, after: Mapping[str, float] | None) -> ServerSide:
    """The difference of two readings. A counter that went down was started anew: unknown."""
    if before is None or after is None:
        return ServerSide()

    def grown(name: str) -> float | None:
        if name not in before or name not in after or after[name] < before[name]:
            return None
        return after[name] - before[name]

    waited = rate(grown("vllm:request_queue_time_seconds_sum"), grown("vllm:request_queue_time_seconds_count"))
    return ServerSide(
        prefix_hit_rate=rate(grown("vllm:prefix_cache_hits_total"), grown("vllm:prefix_cache_queries_total")),
        mm_hit_rate=rate(grown("vllm:mm_cache_hits_total"), grown("vllm:mm_cache_queries_total")),
        preemptions=grown("vllm:num_preemptions_total"),
        queue_ms=None if waited is None else waited * 1000,
        requests=grown("vllm:request_success_total"),
    )


def read_counters(endpoint: Endpoint) -> Mapping[str, float] | None:
    """The server's own /metrics by name, summed over their labels (models, engines); None where there are none."""
    # Neither a proxy of the environment nor a redirection has a part in this, as with the requests themselves.
    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.HTTPHandler())
    opener.add_handler(urllib.request.HTTPSHandler())
    try:
        with opener.open(f"{endpoint.root_url}/metrics", timeout=_TIMEOUT_S) as response:
            if response is None or response.status != 200:
                return None
            return parse_counters(response.read().decode("utf-8", "replace"))
    except (OSError, ValueError, HTTPException):
        return None


def parse_counters(text: str) -> dict[str, float]:
    """Every sample of a Prometheus page by its name, summed over its labels. Raises ValueError."""
    from prometheus_client.parser import text_string_to_metric_families

    sums: dict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            sums[sample.name] += sample.value
    return sums
