"""Computes a server's load in a time window from snapshots of its counters.

Metrics since the start say little about the current load: they include the readiness probe, a slow first request and
idle time. Snapshots are small enough to keep many, and any two of them define a window.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from serverctl.load.client import Endpoint
from serverctl.load.metrics import rate, read_samples

#: Our names of counters, and the metrics of vLLM 0.32 and 0.33, summed over engines and labels. Seconds and counts.
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
#: Current values. The use of the KV cache is that of the fullest engine, 0 to 1.
_GAUGES = {"running": "num_requests_running", "waiting": "num_requests_waiting"}
_KV_USE = "kv_cache_usage_perc"
#: Seconds without a request that one load may contain: an agent thinks, a client prepares.
_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counters and loads at one moment. Names are missing if the server does not report them."""

    at: float  # seconds since the epoch
    counters: Mapping[str, float] = field(default_factory=dict)  # by the names above
    loads: Mapping[str, float] = field(default_factory=dict)  # running, waiting, kv_use

    def to_json(self) -> dict[str, Any]:
        """The snapshot as JSON values."""
        return {**asdict(self), "at": round(self.at, 3)}

    @classmethod
    def from_json(cls, document: Any) -> "Snapshot | None":
        """Read a snapshot; None if a part of it is missing."""
        try:
            return cls(document["at"], document["counters"], document["loads"])
        except (TypeError, KeyError):
            return None

    @property
    def busy(self) -> bool:
        """Whether a request ran or waited at this moment."""
        return any(self.loads.get(name, 0) > 0 for name in _GAUGES)


def take_snapshot(text: str, at: float) -> Snapshot:
    """Make a snapshot of a /metrics page (Prometheus' text format) that was read at a time, seconds since the epoch."""
    samples = read_samples(text)

    def added(names: Mapping[str, str]) -> dict[str, float]:
        return {ours: sum(value for _, value in samples[name]) for ours, name in names.items() if name in samples}

    loads = added(_GAUGES)
    if _KV_USE in samples:
        loads["kv_use"] = max(value for _, value in samples[_KV_USE])
    return Snapshot(at, added(_COUNTERS), loads)


def snapshot_of(server: Endpoint) -> Snapshot | None:
    """Make a snapshot of a server now; None if it has no /metrics."""
    page = server.metrics_page()
    return None if page is None else take_snapshot(page, time.time())


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a mean request's time, in seconds. Their sum is the whole time."""

    images: float  # before the engine gets the request: decoding and scaling images, tokenising, on the CPU
    queue: float  # waiting to be scheduled
    prefill: float  # from there to the first token: vision tower and prompt
    decode: float  # from the first token to the last

    @property
    def whole(self) -> float:
        """The whole time."""
        return self.images + self.queue + self.prefill + self.decode

    def share(self, part: str) -> float:
        """The share of one part, 0 to 1."""
        found: float = getattr(self, part)
        return found / self.whole if self.whole > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Window:
    """Snapshots of one start of a server, in order of time. Everything is about the time from the first to the last."""

    snapshots: tuple[Snapshot, ...]
    unseen_images: float | None = None  # images of a mean request, if the server has no cache that counts them
    since_start: bool = False  # whether the first snapshot is an empty one: the time of the load is unknown then

    def grown(self, counter: str) -> float | None:
        """Return the increase of a counter; None if it is not reported or the server was restarted."""
        first, last = self.snapshots[0].counters, self.snapshots[-1].counters
        if counter not in last:
            return None
        grown = last[counter] - first.get(counter, 0.0)
        return grown if grown >= 0 else None

    def ratio(self, part: str, whole: str) -> float | None:
        """Return the ratio of two counters' increases; None if either is unknown or the second did not increase."""
        return rate(self.grown(part), self.grown(whole))

    @property
    def seconds(self) -> float | None:
        """How long the window is; None if it began with the server."""
        return None if self.since_start else self.snapshots[-1].at - self.snapshots[0].at

    @property
    def finished(self) -> int:
        """Requests that ended in it."""
        return round(self.grown("finished") or 0)

    @property
    def parts(self) -> Parts | None:
        """The time of a mean request; None if it is not reported, or nothing ended."""
        first_token, queue = self.ratio("first_token_s", "first_tokens"), self.ratio("queue_s", "queued")
        prefill, decode = self.ratio("prefill_s", "queued"), self.ratio("decode_s", "queued")
        if first_token is None or queue is None or prefill is None or decode is None:
            return None
        # The first token's time includes image preparation; the queue time starts when the engine gets the request.
        return Parts(max(0.0, first_token - queue - prefill), queue, prefill, decode)

    @property
    def at_once(self) -> float | None:
        """The mean number of requests in the server (Little's law); None if the time is unknown."""
        request_seconds, seconds = self.grown("whole_s"), self.seconds
        return None if request_seconds is None or not seconds else request_seconds / seconds

    @property
    def beside_prefills(self) -> float:
        """The share of the decode time during which other prompts were computed, 0 to 1; 0 if unknown.

        vLLM computes both in the same steps, and a step lasts as long as its prompts take. The number of prefills at
        once is the rate at which they begin times the seconds of each; all but the request's own are others'.
        """
        parts, at_once, seconds = self.parts, self.at_once, self.seconds
        if parts is None or not at_once or not seconds:
            return 0.0
        # In the engine: a server with one slot never has more than one request there.
        served = at_once * (parts.share("prefill") + parts.share("decode"))
        prefills = min(1.0, self.finished / seconds * parts.prefill)
        return prefills * max(0.0, 1 - 1 / served) if served > 0 else 0.0

    def most(self, *loads: str) -> float | None:
        """The highest sum of some loads at a moment; None if no snapshot was taken under load."""
        seen = [sum(one.loads.get(load, 0.0) for load in loads) for one in self.snapshots if one.busy]
        return max(seen, default=None)

    @property
    def kv_use_while_waiting(self) -> float | None:
        """The highest use of the KV cache while a request waited, 0 to 1; None if none waited."""
        loads = [one.loads for one in self.snapshots if one.loads.get("waiting", 0) > 0]
        return max((load["kv_use"] for load in loads if "kv_use" in load), default=None)

    @property
    def clients(self) -> int:
        """The highest number of requests at once, as far as is known; at least 1."""
        parts, waited = self.parts, 1.0
        if parts is not None and (served := parts.prefill + parts.decode) > 0:
            # With one slot, requests are served in turn: count those before this one, and this one.
            waited = (parts.queue + served) / served
        seen = self.most("running", "waiting") or 0
        missed = not self.most("waiting")  # a load of a few seconds may fall between two snapshots
        return max(1, round(seen), round(waited) if missed else 1, round(self.at_once or 0))

    @property
    def prompt_tokens(self) -> float | None:
        """Prompt tokens of a mean request."""
        return self.ratio("prompt_tokens", "queued")

    @property
    def answer_tokens(self) -> float | None:
        """Output tokens of a mean request."""
        return self.ratio("answer_tokens", "queued")

    @property
    def images(self) -> float | None:
        """Images of a mean request."""
        return self.ratio("image_queries", "queued") or self.unseen_images

    @property
    def prefix_hits(self) -> float | None:
        """The share of prompt tokens from the prefix cache, 0 to 1; None if that is off."""
        return self.ratio("prefix_hits", "prefix_queries")

    @property
    def image_hits(self) -> float | None:
        """The share of images that had been processed before; None without images or without that cache."""
        return self.ratio("image_hits", "image_queries")

    @property
    def request_tokens(self) -> int | None:
        """Prompt and output tokens of a mean request."""
        prompt, answer = self.prompt_tokens, self.answer_tokens
        return None if prompt is None or answer is None else round(prompt + answer)

    def to_json(self) -> dict[str, Any]:
        """Everything known as JSON values; seconds and tokens."""
        parts = self.parts
        shown = ("images", "queue", "prefill", "decode", "whole")
        return {
            "seconds": self.seconds,
            "ended": self.snapshots[-1].at,
            "finished": self.finished,
            "snapshots": len(self.snapshots),
            "mean_request_s": None if parts is None else {name: round(getattr(parts, name), 4) for name in shown},
            "most_running": self.most("running"),
            "most_waiting": self.most("waiting"),
            "preemptions": self.grown("preemptions"),
            **{name: getattr(self, name) for name in _SHOWN},
        }


#: Properties of a window that its JSON has under their own names.
_SHOWN = (
    "kv_use_while_waiting", "clients", "prompt_tokens", "answer_tokens", "images", "prefix_hits", "image_hits",
)  # fmt: skip


def last_load(snapshots: Sequence[Snapshot]) -> Window | None:
    """The last stretch of time in which requests ended; None if none did.

    Snapshots of an earlier start are left out: their counters are higher than those that follow.
    """
    done = [one.counters.get("finished", 0.0) for one in snapshots]
    begin = max((place + 1 for place, (one, after) in enumerate(pairwise(done)) if after < one), default=0)
    own, done = list(snapshots[begin:]), done[begin:]
    worked = [place + 1 for place, (one, after) in enumerate(pairwise(done)) if after > one]
    if not worked:
        return None
    last = worked[-1]
    first = last - 1
    for place in reversed(worked[:-1]):
        if own[first].at - own[place].at > _PAUSE_S:
            break
        first = place - 1
    # Include the time before the first request ended: without it, long requests would look like many at once.
    while first > 0 and own[first].busy and own[first].at - own[first - 1].at <= _PAUSE_S:
        first -= 1
    return Window(tuple(own[first : last + 1]))


def since_start(now: Snapshot) -> Window:
    """Return the window since the server's start, for a server without an earlier snapshot."""
    return Window((Snapshot(now.at), now), since_start=True)
