"""A stretch of a server's time: what it counted between two moments, and what was seen in between."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from serverctl.load.metrics import rate
from serverctl.load.snapshots import Snapshot

#: Moments without a request that a load may have in it, seconds: an agent thinks, a client prepares.
_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the time of a mean request goes, in seconds. Together they are its whole time."""

    images: float  # before the engine has it: decoding and scaling images, tokenising, on the processor
    queue: float  # waiting to be scheduled
    prefill: float  # from there to the first token: vision tower and prompt
    decode: float  # from the first token to the last

    @property
    def whole(self) -> float:
        """The whole time."""
        return self.images + self.queue + self.prefill + self.decode

    def share(self, part: str) -> float:
        """0 to 1: one part of the whole, by its name."""
        found: float = getattr(self, part)
        return found / self.whole if self.whole > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Window:
    """Snapshots of one start of a server, in order of time. All is of the time between the first and the last."""

    snapshots: tuple[Snapshot, ...]
    unseen_images: float | None = None  # of a mean request, where the server has no cache that would count them
    since_start: bool = False  # whether the first is an empty one: the time of the load itself is unknown then

    def grown(self, counter: str) -> float | None:
        """How much a counter has grown; None where it is not reported, or the server was started anew."""
        first, last = self.snapshots[0].counters, self.snapshots[-1].counters
        if counter not in last:
            return None
        grown = last[counter] - first.get(counter, 0.0)
        return grown if grown >= 0 else None

    def _mean(self, seconds: str, count: str) -> float | None:
        return rate(self.grown(seconds), self.grown(count))

    @property
    def seconds(self) -> float | None:
        """How long it is; None where it began with the server."""
        return None if self.since_start else self.snapshots[-1].at - self.snapshots[0].at

    @property
    def finished(self) -> int:
        """Requests that ended in it."""
        return round(self.grown("finished") or 0)

    @property
    def parts(self) -> Parts | None:
        """Where the time of a mean request went; None where that is not reported, or nothing ended."""
        first_token, queue = self._mean("first_token_s", "first_tokens"), self._mean("queue_s", "queued")
        prefill, decode = self._mean("prefill_s", "queued"), self._mean("decode_s", "queued")
        if first_token is None or queue is None or prefill is None or decode is None:
            return None
        # vLLM's clock of a request starts before its images are processed, the queue's when the engine has it.
        return Parts(max(0.0, first_token - queue - prefill), queue, prefill, decode)

    @property
    def at_once(self) -> float | None:
        """Requests in the server at once, in the mean (Little's law); None where the time is unknown."""
        whole, seconds = self.grown("whole_s"), self.seconds
        return None if whole is None or not seconds else whole / seconds

    @property
    def beside_prefills(self) -> float:
        """0 to 1: for how much of the time of writing an answer prompts of others were computed; 0 where not known.

        vLLM computes both in the same steps, and a step lasts as long as its prompts take. So many prefills are under
        way at once: those that begin in a second times the seconds that each takes; all but its own are others'.
        """
        parts, at_once, seconds = self.parts, self.at_once, self.seconds
        if parts is None or not at_once or not seconds:
            return 0.0
        served = at_once * (
            parts.share("prefill") + parts.share("decode")
        )  # in the engine; one slot is never more than 1
        prefills = min(1.0, self.finished / seconds * parts.prefill)
        return prefills * max(0.0, 1 - 1 / served) if served > 0 else 0.0

    def most(self, *loads: str) -> float | None:
        """The highest sum of some loads at a moment in between; None where nothing was seen under load."""
        seen = [sum(one.loads.get(load, 0.0) for load in loads) for one in self.snapshots if one.busy]
        return max(seen) if seen else None

    def most_while_waiting(self, load: str) -> float | None:
        """The highest load of the moments at which a request waited; None where none was seen to."""
        seen = [one.loads[load] for one in self.snapshots if one.loads.get("waiting", 0) > 0 and load in one.loads]
        return max(seen) if seen else None

    @property
    def clients(self) -> int:
        """How many requests there were at once at the most, as far as is known; at least 1."""
        parts = self.parts
        # A server with one slot serves one at a time: those that waited meanwhile, and this one.
        waited = (parts.queue + parts.prefill + parts.decode) / (parts.prefill + parts.decode) if (
            parts is not None and parts.prefill + parts.decode > 0
        ) else 1.0  # fmt: skip
        seen = self.most("running", "waiting") or 0
        missed = not self.most("waiting")  # a load of a few seconds may fall between two snapshots
        return max(1, round(seen), round(waited) if missed else 1, round(self.at_once or 0))

    @property
    def prompt_tokens(self) -> float | None:
        """Of a mean request."""
        return rate(self.grown("prompt_tokens"), self.grown("queued"))

    @property
    def answer_tokens(self) -> float | None:
        """Of a mean request."""
        return rate(self.grown("answer_tokens"), self.grown("queued"))

    @property
    def images(self) -> float | None:
        """Of a mean request."""
        return rate(self.grown("image_queries"), self.grown("queued")) or self.unseen_images

    @property
    def prefix_hits(self) -> float | None:
        """0 to 1: the part of the prompts' tokens that came from the prefix cache; None where that is off."""
        return rate(self.grown("prefix_hits"), self.grown("prefix_queries"))

    @property
    def image_hits(self) -> float | None:
        """0 to 1: the part of the images that had been processed before; None without images or without that cache."""
        return rate(self.grown("image_hits"), self.grown("image_queries"))

    @property
    def request_tokens(self) -> int | None:
        """Prompt and answer of a mean request."""
        prompt, answer = self.prompt_tokens, self.answer_tokens
        return None if prompt is None or answer is None else round(prompt + answer)

    def queue_quantile(self, share: float) -> float | None:
        """The time in seconds that such a share (0 to 1) of the requests waited at the most, linear in a bucket."""
        last, first = self.snapshots[-1].queue, self.snapshots[0].queue
        grown = sorted((_bound(name), count - first.get(name, 0.0)) for name, count in last.items())
        if not grown or grown[-1][1] <= 0:
            return None
        wanted = share * grown[-1][1]
        for (lower, below), (upper, count) in pairwise([(0.0, 0.0), *grown]):
            if count >= wanted:
                inside = (wanted - below) / (count - below) if count > below else 1.0
                return lower if math.isinf(upper) else lower + (upper - lower) * inside
        return None

    def to_json(self) -> dict[str, Any]:
        """What is known of it, as JSON values; seconds and tokens."""
        parts = self.parts
        p50, p95 = self.queue_quantile(0.5), self.queue_quantile(0.95)
        return {
            "seconds": self.seconds,
            "ended": self.snapshots[-1].at,
            "finished": self.finished,
            "snapshots": len(self.snapshots),
            "mean_request_s": None if parts is None else {
                name: round(getattr(parts, name), 4) for name in ("images", "queue", "prefill", "decode", "whole")
            },
            "queue_p50_s": p50,
            "queue_p95_s": p95,
            "clients": self.clients,
            "most_running": self.most("running"),
            "most_waiting": self.most("waiting"),
            "kv_use_while_waiting": self.most_while_waiting("kv_use"),
            "preemptions": self.grown("preemptions"),
            "prompt_tokens": self.prompt_tokens,
            "answer_tokens": self.answer_tokens,
            "images": self.images,
            "prefix_hits": self.prefix_hits,
            "image_hits": self.image_hits,
        }  # fmt: skip


def _bound(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return math.inf


def last_load(snapshots: Sequence[Snapshot]) -> Window | None:
    """The last stretch of a server's time in which requests ended; None where none did.

    Snapshots of an earlier start are left out: their counters are higher than those that follow.
    """
    begin = max((place + 1 for place, (one, next_one) in enumerate(pairwise(snapshots))
                 if _finished(next_one) < _finished(one)), default=0)  # fmt: skip
    own = list(snapshots[begin:])
    worked = [place for place in range(1, len(own)) if _finished(own[place]) > _finished(own[place - 1])]
    if not worked:
        return None
    last = worked[-1]
    first = last - 1
    for place in reversed(worked[:-1]):
        if own[first].at - own[place].at > _PAUSE_S:
            break
        first = place - 1
    # Work begins before the first request ends: without that time, long requests would seem to have been many at once.
    while first > 0 and own[first].busy and own[first].at - own[first - 1].at <= _PAUSE_S:
        first -= 1
    return Window(tuple(own[first : last + 1]))


def _finished(snapshot: Snapshot) -> float:
    return snapshot.counters.get("finished", 0.0)


def since_start(now: Snapshot) -> Window:
    """All that a server has counted: the window where nothing was looked at before."""
    return Window((Snapshot(now.at), now), since_start=True)
