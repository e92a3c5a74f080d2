"""The few statistics of a bench: percentiles, and whether two sets of samples differ at all."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import fmean
from typing import Literal, TypeAlias

PERCENTILES = "linear interpolation between the two nearest ranks (numpy's default)"
INTERVAL = "95 % of the ratio of means of the same requests, by the spread between groups that were under way at once"

#: Below this, an interval says more about the method than about the servers.
LEAST_SAMPLES = 5
#: Groups of requests whose spread is taken: fewer than these are made smaller.
_LEAST_GROUPS = 4
#: Of the normal distribution, what 95 % lie within.
_Z = 1.959964

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


def compare_pairs(first: Sequence[float | None], other: Sequence[float | None], together: int = 1) -> Difference | None:
    """How `other` stands to `first` where both hold the same requests in the same places; None is no answer.

    A request that one of them did not answer is left out of both. What makes one request longer than another (its
    screenshots, its answer) is no noise, as pairs are compared. So many requests as were under way `together` are one
    observation: what disturbs one of them, another program or a neighbour's prompt, disturbs them all. None where fewer
    than one pair is left.
    """
    pairs = [(a, b) for a, b in zip(first, other, strict=False) if a is not None and b is not None]
    whole = sum(a for a, _ in pairs)
    if not pairs or not whole:
        return None
    ratio = sum(b for _, b in pairs) / whole
    if len(pairs) < LEAST_SAMPLES:
        return Difference(ratio, None, None, "too few samples")
    count = max(_LEAST_GROUPS, len(pairs) // together)
    cuts = [len(pairs) * number // count for number in range(count + 1)]
    beside = [sum(b - ratio * a for a, b in pairs[begin:end]) for begin, end in pairwise(cuts)]
    spread = math.sqrt(count / (count - 1) * sum(one**2 for one in beside)) / whole
    half = _student(count - 1) * spread
    # A ratio's spread is a factor: half as long and twice as long are equally far from alike.
    factor = math.exp(min(half / ratio, 20.0)) if ratio > 0 else 1.0
    low, high = ratio / factor, ratio * factor
    verdict: Verdict = "within noise" if low <= 1 <= high else ("lower" if high < 1 else "higher")
    return Difference(ratio, low, high, verdict)


def _student(freedom: int) -> float:
    """What 95 % of Student's distribution lie within: Fisher's expansion, within 1 % from 3 degrees of freedom on."""
    z, d = _Z, 4.0 * freedom
    return (
        z
        + (z**3 + z) / d
        + (5 * z**5 + 16 * z**3 + 3 * z) / (6 * d**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (6 * d**3)
    )
