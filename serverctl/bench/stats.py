"""The few statistics of a bench: percentiles, and whether two sets of samples differ at all."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Literal, TypeAlias

PERCENTILES = "linear interpolation between the two nearest ranks (numpy's default)"
INTERVAL = "95 % bootstrap of the ratio of means, 4000 resamples of the pairs of the same request"

#: Below this, an interval says more about the method than about the servers.
LEAST_SAMPLES = 5
_RESAMPLES = 4000

#: "disturbed": one of the two was not measured in peace.
Verdict: TypeAlias = Literal["lower", "higher", "within noise", "too few samples", "disturbed"]


def percentile(values: Sequence[float], percent: float) -> float:
    """A percentile (0 to 100) of values in any order. Raises ValueError where there are none."""
    import numpy as np

    if not values:
        raise ValueError("a percentile of no values")
    return float(np.percentile(values, percent))


@dataclass(frozen=True, slots=True)
class Summary:
    """Values in short, in their own unit; `n` says how much the outer percentiles can mean."""

    n: int
    mean: float
    p50: float
    p95: float
    p99: float
    least: float
    most: float

    def to_json(self) -> dict[str, float]:
        """As a JSON object."""
        names = {"least": "min", "most": "max"}
        return {names.get(name, name): round(value, 3) for name, value in asdict(self).items()}


def summarize(values: Sequence[float]) -> Summary | None:
    """Values in short; None where there are none."""
    if not values:
        return None
    p50, p95, p99 = (percentile(values, percent) for percent in (50, 95, 99))
    return Summary(len(values), fmean(values), p50, p95, p99, min(values), max(values))


@dataclass(frozen=True, slots=True)
class Difference:
    """How one set of values stands to another."""

    ratio: float  # its mean over the other's
    low: float | None  # lower end of the 95 % interval of the ratio; None with too few samples
    high: float | None  # upper end
    verdict: Verdict  # "within noise" where the interval holds 1


def compare(first: Sequence[float], other: Sequence[float]) -> Difference | None:
    """How `other` stands to `first`; None where either is empty or the first's mean is 0.

    The interval knows only the spread between the requests of one run each: a machine that was busier or warmer
    during one of them looks like a difference. Requests that ran at once are less independent than it assumes.
    """
    import numpy as np

    if not first or not other or not sum(first):
        return None
    a, b = np.asarray(first, float), np.asarray(other, float)
    ratio = float(b.mean() / a.mean())
    if min(len(a), len(b)) < LEAST_SAMPLES:
        return Difference(ratio, None, None, "too few samples")
    dice = np.random.default_rng(0)  # the same samples always give the same verdict

    below, above = (values[dice.integers(0, len(values), (_RESAMPLES, len(values)))].mean(axis=1) for values in (a, b))
    ratios = np.divide(above, below, out=np.full_like(above, ratio), where=below > 0)
    low, high = (float(value) for value in np.percentile(ratios, (2.5, 97.5)))
    verdict: Verdict = "within noise" if low <= 1 <= high else ("lower" if high < 1 else "higher")
    return Difference(ratio, low, high, verdict)


def compare_pairs(first: Sequence[float | None], other: Sequence[float | None]) -> Difference | None:
    """How `other` stands to `first` where both hold the same requests in the same places; None is no answer.

    A request that one of them did not answer is left out of both. Resampled are the pairs, so what makes one request
    longer than another (its screenshots, its answer) is no noise. None where fewer than one pair is left.
    """
    import numpy as np

    pairs = [(a, b) for a, b in zip(first, other, strict=False) if a is not None and b is not None]
    if not pairs or not sum(a for a, _ in pairs):
        return None
    values = np.asarray(pairs, float)
    ratio = float(values[:, 1].sum() / values[:, 0].sum())
    if len(pairs) < LEAST_SAMPLES:
        return Difference(ratio, None, None, "too few samples")
    dice = np.random.default_rng(0)
    sums = values[dice.integers(0, len(pairs), (_RESAMPLES, len(pairs)))].sum(axis=1)
    ratios = np.divide(sums[:, 1], sums[:, 0], out=np.full(len(sums), ratio), where=sums[:, 0] > 0)
    low, high = (float(value) for value in np.percentile(ratios, (2.5, 97.5)))
    verdict: Verdict = "within noise" if low <= 1 <= high else ("lower" if high < 1 else "higher")
    return Difference(ratio, low, high, verdict)
