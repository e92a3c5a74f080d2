"""What was measured, as data: samples and their summaries for each setting, and what limits their meaning."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Literal

from foundation.errors import EnvironmentLacksError
from serverctl.load.bench.counters import ServerSide
from serverctl.load.bench.sample import Sample
from serverctl.load.bench.stats import PERCENTILES, Summary, summarize
from serverctl.load.bench.workload import Load, Setting

#: The latencies of a sample, in milliseconds, and how people call them.
LATENCIES: dict[str, str] = {
    "ttft_ms": "time to first token",
    "tpot_ms": "time per output token",
    "total_ms": "end to end",
}

#: Numbers that exist once in a setting, and how people call them.
RATES: dict[str, str] = {
    "requests_per_s": "requests/s",
    "output_tokens_per_s": "output tokens/s",
    "prompt_tokens_per_s": "prompt tokens/s",
}

#: More of a cold prompt than this from a cache is not the chat format's first words any more, less of a warm one no
#: cache at work.
_COLD_ENOUGH, _WARM_ENOUGH = 0.02, 0.5
#: Writing a request with a screenshot takes the program 10 to 20 ms, several of them at once that many times as much.
#: So it counts as a disturbance from so many milliseconds and such a part of the mean latency on.
_MUCH_LAG_MS, _MUCH_OF_LATENCY = 50.0, 0.1


@dataclass(frozen=True, slots=True)
class Cut:
    """Why a bench ended before its end."""

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
    lag_ms: float = 0.0  # longest time that the measuring program itself was held up, in milliseconds
    complete: bool = True  # False where the bench was cut off in it

    @property
    def good(self) -> tuple[Sample, ...]:
        """The requests that were answered."""
        return tuple(sample for sample in self.samples if sample.failure is None)

    def values(self, latency: str) -> list[float]:
        """One latency of every answered request, in milliseconds; `latency` is a key of LATENCIES."""
        return [value for sample in self.good if (value := getattr(sample, latency)) is not None]

    def by_number(self, latency: str) -> list[float | None]:
        """One latency of every request by its number, in milliseconds; None where it has no answer."""
        found: dict[int, float | None] = {one.number: getattr(one, latency) for one in self.good}
        return [found.get(number) for number in range(max((one.number + 1 for one in self.samples), default=0))]

    @property
    def errors(self) -> dict[str, int]:
        """Requests without an answer, by kind."""
        return dict(Counter(sample.failure.kind for sample in self.samples if sample.failure is not None))

    def summary(self, latency: str) -> Summary | None:
        """One latency in short, in milliseconds."""
        return summarize(self.values(latency))

    def gaps(self) -> Summary | None:
        """The times between pieces of text of all answers together, in milliseconds."""
        return summarize([gap for sample in self.good for gap in sample.gaps_ms])

    @property
    def disturbed(self) -> bool:
        """Whether the measuring program was held up so long that the latencies are not the server's alone."""
        total = self.summary("total_ms")
        return total is not None and self.lag_ms > max(_MUCH_LAG_MS, _MUCH_OF_LATENCY * total.mean)

    def _total(self, tokens: str) -> int | None:
        """A sum of tokens over the answered requests; None as soon as the server did not tell one of them."""
        counts = [getattr(sample, tokens) for sample in self.good]
        return None if None in counts or not counts else sum(counts)

    @property
    def prompt_tokens(self) -> int | None:
        """Prompt tokens of all answered requests."""
        return self._total("prompt_tokens")

    @property
    def completion_tokens(self) -> int | None:
        """Output tokens of all answered requests."""
        return self._total("completion_tokens")

    @property
    def cached_ratio(self) -> float | None:
        """0 to 1: the part of the prompts that came from the prefix cache, by the answers' usage, else by /metrics."""
        cached, prompt = self._total("cached_tokens"), self.prompt_tokens
        return cached / prompt if cached is not None and prompt else self.server.prefix_hit_rate

    def per_second(self, amount: int | None) -> float | None:
        """An amount by the seconds that the setting took."""
        return None if amount is None or self.seconds <= 0 else amount / self.seconds

    @property
    def rates(self) -> dict[str, float | None]:
        """A number for each of RATES."""
        amounts = (len(self.good), self.completion_tokens, self.prompt_tokens)
        return dict(zip(RATES, map(self.per_second, amounts), strict=True))

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
            found.append(f"the server answered {others:.0f} requests of others at the same time.")
        if self.server.preemptions:
            found.append(f"the KV cache was too small: {self.server.preemptions:.0f} preemptions.")
        if self.disturbed:
            found.append(
                f"this program itself was held up for up to {self.lag_ms:.0f} ms, by other work on this machine or by "
                "its own sending: times may be too long by that."
            )
        return [f"{self.setting}: {note}" for note in found]

    def to_json(self) -> dict[str, Any]:
        """As a JSON object; milliseconds and tokens, null for what is unknown."""

        def short(summary: Summary | None) -> dict[str, float] | None:
            return None if summary is None else summary.to_json()

        def rounded(value: float | None) -> float | None:
            return None if value is None else round(value, 4)

        return {
            "setting": asdict(self.setting),
            "complete": self.complete,
            "requests": len(self.samples),
            "answered": len(self.good),
            "errors": self.errors,
            "seconds": round(self.seconds, 3),
            **{latency: short(self.summary(latency)) for latency in LATENCIES},
            "inter_token_ms": short(self.gaps()),
            **{name: rounded(rate) for name, rate in self.rates.items()},
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cached_ratio": rounded(self.cached_ratio),
            "server": asdict(self.server),
            "lag_ms": round(self.lag_ms, 1),
            "samples": [_sample_json(sample) for sample in self.samples],
        }


def _sample_json(sample: Sample) -> dict[str, Any]:
    document = asdict(sample) | {"tpot_ms": sample.tpot_ms}
    document["gaps_ms"] = [round(gap, 2) for gap in sample.gaps_ms]
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in document.items()}


@dataclass(frozen=True, slots=True)
class Report:
    """A whole bench of one server."""

    name: str  # of the server among others, for example the preset it runs with
    model: str  # as the server calls it
    base_url: str  # where it was asked
    workload: Load  # what was sent
    run: str  # the name of this run that made its cold requests new
    measurements: tuple[Measurement, ...]  # one for each setting, in order
    notes: tuple[str, ...] = ()  # what holds for all of them
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
        """As a JSON object; units are in the names."""
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

    def __init__(self, report: Report, reports: Sequence[Report] = ()) -> None:
        assert report.cut is not None, "a report of a server that died says so"
        super().__init__(report.cut.message, "`mai-server logs` says why; its numbers until then are kept.")
        self.report = report
        self.reports = tuple(reports) or (report,)  # of all that were measured in turn, this one included


def merged(reports: Sequence[Report]) -> Report:
    """Blocks of the same server's run as one report: each setting once, with the requests of all blocks."""
    first = reports[0]
    measured: dict[Setting, list[Measurement]] = {}
    for report in reports:
        for one in report.measurements:
            measured.setdefault(one.setting, []).append(one)
    notes = tuple(dict.fromkeys(note for report in reports for note in report.notes))
    cut = next((report.cut for report in reports if report.cut is not None), None)
    return replace(first, measurements=tuple(map(_joined, measured.values())), notes=notes, cut=cut)


def _joined(blocks: Sequence[Measurement]) -> Measurement:
    if len(blocks) == 1:
        return blocks[0]
    return replace(
        blocks[0],
        samples=tuple(sample for block in blocks for sample in block.samples),
        seconds=sum(block.seconds for block in blocks),
        server=_joined_counts([block.server for block in blocks]),
        lag_ms=max(block.lag_ms for block in blocks),
        complete=all(block.complete for block in blocks),
    )


def _joined_counts(sides: Sequence[ServerSide]) -> ServerSide:
    """Sums of what is counted, means of what is a rate; unknown as soon as it is in one block."""

    def values(name: str) -> list[float] | None:
        found = [getattr(side, name) for side in sides]
        return None if None in found else found

    def mean(name: str) -> float | None:
        found = values(name)
        return None if found is None else fmean(found)

    def whole(name: str) -> float | None:
        found = values(name)
        return None if found is None else sum(found)

    return ServerSide(
        mean("prefix_hit_rate"), mean("mm_hit_rate"), whole("preemptions"), mean("queue_ms"), whole("requests")
    )
