"""The statistics of a bench: percentiles, and whether two sets of samples differ at all."""

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
#: Minimum number of groups for the spread; groups are made smaller to reach it.
_LEAST_GROUPS = 4
#: 95 % of the normal distribution lie within this many standard deviations.
_Z = 1.959964

#: "disturbed": the measuring program was held up during one of the two.
Verdict: TypeAlias = Literal["lower", "higher", "within noise", "too few samples", "disturbed"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Values in short, in their own unit; `n` says how much the outer percentiles can mean."""

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
    """Values in short; None if there are none."""
    import numpy as np

    if not values:
        return None
    p50, p95, p99 = (float(found) for found in np.percentile(values, (50, 95, 99)))
    return Summary(len(values), fmean(values), p50, p95, p99, min(values), max(values))


@dataclass(frozen=True, slots=True)
class Difference:
    """How one set of values compares with another."""

    ratio: float  # its mean over the other's
    low: float | None = None  # lower end of the 95 % interval of the ratio; None with too few samples
    high: float | None = None  # upper end
    verdict: Verdict | None = None  # "within noise" if the interval holds 1; None for numbers that are not judged

    def text(self, between: str = "-") -> str:
        """Return the ratio and its interval as text."""
        return f"x{self.ratio:.2f}" + ("" if self.low is None else f" ({self.low:.2f}{between}{self.high:.2f})")


def compare_pairs(first: Sequence[float | None], other: Sequence[float | None], together: int = 1) -> Difference | None:
    """Compare `other` with `first`; both hold the same requests in the same places, None for no answer.

    Pairs are compared, so that long and short requests add no noise; a request without both answers is left out. The
    requests that were under way `together` are one observation, because another program disturbs them all. Returns
    None without any pair.
    """
    pairs = [(a, b) for a, b in zip(first, other, strict=False) if a is not None and b is not None]
    total = sum(a for a, _ in pairs)
    if not pairs or not total:
        return None
    ratio = sum(b for _, b in pairs) / total
    if len(pairs) < LEAST_SAMPLES:
        return Difference(ratio, verdict="too few samples")
    count = max(_LEAST_GROUPS, len(pairs) // together)
    cuts = [len(pairs) * number // count for number in range(count + 1)]
    beside = [sum(b - ratio * a for a, b in pairs[begin:end]) for begin, end in pairwise(cuts)]
    spread = math.sqrt(count / (count - 1) * sum(one**2 for one in beside)) / total
    half = _student(count - 1) * spread
    # A ratio's spread is a factor: half as long and twice as long are equally far from equal.
    factor = math.exp(min(half / ratio, 20.0)) if ratio > 0 else 1.0
    low, high = ratio / factor, ratio * factor
    verdict: Verdict = "within noise" if low <= 1 <= high else ("lower" if high < 1 else "higher")
    return Difference(ratio, low, high, verdict)


def _student(freedom: int) -> float:
    """The 95 % quantile of Student's distribution: Fisher's expansion, within 1 % from 3 degrees of freedom on."""
    z, d = _Z, 4.0 * freedom
    return (
        z
        + (z**3 + z) / d
        + (5 * z**5 + 16 * z**3 + 3 * z) / (6 * d**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (6 * d**3)
    )
