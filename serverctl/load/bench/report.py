"""The results of a bench as data: samples and their summaries for each setting, and what limits their meaning."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from statistics import fmean
from typing import Any, Literal

from foundation.errors import EnvironmentLacksError
from foundation.printing import counted
from serverctl.load.bench.workload import Load, Setting
from serverctl.load.client import Failure
from serverctl.load.window import Snapshot, Window

#: The latencies of a sample, in milliseconds, and their names for people.
LATENCIES: dict[str, str] = {
    "ttft_ms": "time to first token",
    "tpot_ms": "time per output token",
    "total_ms": "end to end",
}

#: Numbers that exist once in a setting, and their names for people.
RATES: dict[str, str] = {
    "requests_per_s": "requests/s",
    "output_tokens_per_s": "output tokens/s",
    "prompt_tokens_per_s": "prompt tokens/s",
}

#: How percentiles are computed, for people.
PERCENTILES = "linear interpolation between the two nearest ranks (numpy's default)"

#: A note is added if more than the first share of cold prompts, or less than the second share of warm prompts, was
#: cached. The chat format's first words alone are under 2 % of a cold prompt.
_COLD_ENOUGH, _WARM_ENOUGH = 0.02, 0.5


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of some values, in their own unit. With a small `n`, p95 and p99 mean little."""

    n: int
    mean: float
    p50: float
    p95: float
    p99: float
    min: float
    max: float

    def to_json(self) -> dict[str, float]:
        """The summary as a JSON object."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


def summarize(values: Sequence[float]) -> Summary | None:
    """Return statistics of the values; None if empty."""
    import numpy as np

    if not values:
        return None
    p50, p95, p99 = (float(found) for found in np.percentile(values, (50, 95, 99)))
    return Summary(len(values), fmean(values), p50, p95, p99, min(values), max(values))


@dataclass(frozen=True, slots=True)
class Sample:
    """What one request took. Times are in milliseconds; None if the server did not report it, or it did not happen."""

    sent_ms: float  # from the beginning of its setting
    ttft_ms: float | None  # from sending to the first piece with text
    total_ms: float  # from sending to the end of the answer, or to the failure
    prompt_tokens: int | None = None  # as the server counts them, image tokens included
    completion_tokens: int | None = None
    cached_tokens: int | None = None  # prompt tokens from the prefix cache
    failure: Failure | None = None  # why there is no answer
    number: int = 0  # of the request in its setting

    @property
    def tpot_ms(self) -> float | None:
        """Time per output token after the first, in milliseconds: (total - first) / (tokens - 1)."""
        if self.ttft_ms is None or self.completion_tokens is None or self.completion_tokens < 2:
            return None
        return (self.total_ms - self.ttft_ms) / (self.completion_tokens - 1)

    def to_json(self) -> dict[str, Any]:
        """The sample as a JSON object."""
        document = asdict(self) | {"tpot_ms": self.tpot_ms}
        return {key: round(value, 3) if isinstance(value, float) else value for key, value in document.items()}


@dataclass(frozen=True, slots=True)
class ServerSide:
    """What the server counted during one setting; None is unknown."""

    prefix_hit_rate: float | None = None  # 0 to 1, of the prompt tokens looked up in the prefix cache
    mm_hit_rate: float | None = None  # 0 to 1, of the images looked up in the multimodal cache
    preemptions: float | None = None  # requests that were preempted: thrown out of the KV cache and recomputed
    queue_ms: float | None = None  # mean time that a request waited to be scheduled, in milliseconds
    requests: float | None = None  # finished requests, those of other clients included


def server_side(before: Snapshot | None, after: Snapshot | None) -> ServerSide:
    """The difference of two readings. A counter that decreased was reset: its difference is unknown."""
    if before is None or after is None:
        return ServerSide()
    window = Window((before, after))
    waited = window.ratio("queue_s", "queued")
    return ServerSide(
        window.prefix_hits, window.image_hits, window.grown("preemptions"),
        None if waited is None else waited * 1000, window.grown("finished"),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cut:
    """Why a bench ended early."""

    kind: Literal["stopped", "time", "server"]
    message: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """One setting as measured."""

    setting: Setting
    samples: tuple[Sample, ...]  # its requests, in the order in which they ended
    seconds: float  # from the first request sent to the last answer
    server: ServerSide  # what the server counted meanwhile
    asked: int  # answer length that was asked for, in tokens
    complete: bool = True  # False if the bench was cut off in it

    @property
    def good(self) -> tuple[Sample, ...]:
        """The requests that were answered."""
        return tuple(sample for sample in self.samples if sample.failure is None)

    def values(self, latency: str) -> list[float]:
        """One latency of every answered request, in milliseconds; `latency` is a key of LATENCIES."""
        return [value for sample in self.good if (value := getattr(sample, latency)) is not None]

    def by_number(self, latency: str) -> list[float | None]:
        """One latency of every request by its number, in milliseconds; None without an answer."""
        found: dict[int, float | None] = {one.number: getattr(one, latency) for one in self.good}
        return [found.get(number) for number in range(max((one.number + 1 for one in self.samples), default=0))]

    @property
    def errors(self) -> dict[str, int]:
        """Requests without an answer, by kind."""
        return dict(Counter(sample.failure.kind for sample in self.samples if sample.failure is not None))

    def summary(self, latency: str) -> Summary | None:
        """One latency in short, in milliseconds."""
        return summarize(self.values(latency))

    def tokens(self, kind: str) -> int | None:
        """The sum of a sample's "prompt_tokens" (and the like) over the answered requests; None if any is unknown."""
        counts = [getattr(sample, kind) for sample in self.good]
        return None if None in counts or not counts else sum(counts)

    @property
    def cached_ratio(self) -> float | None:
        """The share of the prompts from the prefix cache, 0 to 1: by the answers' usage, else by /metrics."""
        cached, prompt = self.tokens("cached_tokens"), self.tokens("prompt_tokens")
        return cached / prompt if cached is not None and prompt else self.server.prefix_hit_rate

    @property
    def rates(self) -> dict[str, float | None]:
        """A number for each of RATES."""
        amounts = (len(self.good), self.tokens("completion_tokens"), self.tokens("prompt_tokens"))
        rates = [None if amount is None or self.seconds <= 0 else amount / self.seconds for amount in amounts]
        return dict(zip(RATES, rates, strict=True))

    def notes(self) -> list[str]:
        """What a reader must know before believing the numbers."""
        found: list[str] = []
        cached, kind = self.cached_ratio, self.setting.cache
        if cached is not None and kind == "cold" and cached > _COLD_ENOUGH:
            found.append(f"cold was not cold: {cached:.0%} of the prompts came from the cache.")
        if cached is not None and kind == "warm" and cached < _WARM_ENOUGH:
            found.append(f"warm was not warm: only {cached:.0%} of the prompts came from the cache.")
        short = sum((sample.completion_tokens or self.asked) < self.asked for sample in self.good)
        if short:
            found.append(f"{short} of {len(self.good)} answers are shorter than {self.asked} tokens.")
        others = (self.server.requests or 0) - len(self.samples)
        if others > 0 and self.complete:
            found.append(f"the server answered {counted(round(others), 'request')} of others at the same time.")
        if self.server.preemptions:
            found.append(f"the KV cache was too small: {self.server.preemptions:.0f} preemptions.")
        return [f"{self.setting}: {note}" for note in found]

    def to_json(self) -> dict[str, Any]:
        """The measurement as a JSON object; milliseconds and tokens, null for what is unknown."""
        summaries = {latency: self.summary(latency) for latency in LATENCIES}
        ratios = {**self.rates, "cached_ratio": self.cached_ratio}
        return {
            "setting": asdict(self.setting),
            "complete": self.complete,
            "requests": len(self.samples),
            "answered": len(self.good),
            "errors": self.errors,
            "seconds": round(self.seconds, 3),
            **{name: None if one is None else one.to_json() for name, one in summaries.items()},
            **{name: None if value is None else round(value, 4) for name, value in ratios.items()},
            "prompt_tokens": self.tokens("prompt_tokens"),
            "completion_tokens": self.tokens("completion_tokens"),
            "server": asdict(self.server),
            "samples": [sample.to_json() for sample in self.samples],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A whole bench of one server."""

    name: str  # of the server among others, for example the preset it runs with
    model: str  # as the server calls it
    base_url: str  # of the API
    workload: Load  # what was sent
    run: str  # the run's name, which makes its cold requests new to the server
    measurements: tuple[Measurement, ...]  # one for each setting, in order
    notes: tuple[str, ...] = ()  # for all of them
    cut: Cut | None = None  # why it ended early

    @property
    def all_notes(self) -> list[str]:
        """The notes of the run and of every setting."""
        return [*self.notes, *(note for measurement in self.measurements for note in measurement.notes())]

    @property
    def failed(self) -> int:
        """Requests without an answer."""
        return sum(sum(measurement.errors.values()) for measurement in self.measurements)

    @property
    def measured(self) -> int:
        """Requests that ended, with or without an answer."""
        return sum(len(measurement.samples) for measurement in self.measurements)

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object; units are in the names."""
        return {
            "name": self.name,
            "model": self.model,
            "base_url": self.base_url,
            "workload": self.workload.to_json(),
            "run": self.run,
            "definitions": {
                "ttft_ms": "from sending to the first piece with text",
                "tpot_ms": "(end to end - first token) / (output tokens - 1)",
                "total_ms": "from sending to the end of the answer",
                "percentiles": PERCENTILES,
            },
            "measurements": [measurement.to_json() for measurement in self.measurements],
            "notes": self.all_notes,
            "cut": None if self.cut is None else asdict(self.cut),
        }


class ServerDiedError(EnvironmentLacksError):
    """The server died while it was measured; `report` holds what was measured until then."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message, "`mai-server logs` says why; its numbers until then are kept.")
        self.report = report


def merged(reports: Sequence[Report]) -> Report:
    """Join the blocks of one server: each setting once, with the requests of all blocks."""
    measured: dict[Setting, list[Measurement]] = {}
    for report in reports:
        for one in report.measurements:
            measured.setdefault(one.setting, []).append(one)
    notes = tuple(dict.fromkeys(note for report in reports for note in report.notes))
    cut = next((report.cut for report in reports if report.cut is not None), None)
    return replace(reports[0], measurements=tuple(map(_joined, measured.values())), notes=notes, cut=cut)


def _joined(blocks: Sequence[Measurement]) -> Measurement:
    counts: dict[str, float | None] = {}
    for field in fields(ServerSide):
        values = [getattr(block.server, field.name) for block in blocks]
        join = sum if field.name in ("preemptions", "requests") else fmean
        counts[field.name] = None if None in values else join(values)
    return replace(
        blocks[0],
        samples=tuple(sample for block in blocks for sample in block.samples),
        seconds=sum(block.seconds for block in blocks),
        server=ServerSide(**counts),
        complete=all(block.complete for block in blocks),
    )
