"""The statistics of shares of right answers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

#: The 97.5 % quantile of the normal distribution, for a 95 % interval.
_Z = 1.959963984540054


def wilson(right: float, count: float) -> tuple[float, float]:
    """Return the Wilson score interval (95 %) of a share; (0, 1) without samples."""
    if count == 0:
        return 0.0, 1.0
    share, square = right / count, _Z * _Z
    centre = (share + square / (2 * count)) / (1 + square / count)
    half = _Z / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    return max(0.0, centre - half), min(1.0, centre + half)


def clustered_wilson(clusters: Sequence[Sequence[bool]]) -> tuple[float, float]:
    """Return the interval of the share over repeated samples: each cluster holds the outcomes of one of them.

    Outcomes of the same sample are not independent. The count is divided by the design effect: the variance of the
    share with clusters over its variance without. With few misses the variance with clusters is uncertain. So the
    estimate adds 1.96 squared clusters of equal outcomes, as Wilson's interval adds 1.96 squared samples. If all
    outcomes are equal, the result is that of as many samples as there are clusters.
    """
    outcomes = [one for cluster in clusters for one in cluster]
    right, count = sum(outcomes), len(outcomes)
    if not count:
        return wilson(0, 0)
    share, size = right / count, sum(len(cluster) ** 2 for cluster in clusters) / count
    added = _Z * _Z * size
    squares = sum((sum(cluster) - share * len(cluster)) ** 2 for cluster in clusters)
    effect = max(1.0, (squares + added * size) / (count * share * (1 - share) + added))
    return wilson(right / effect, count / effect)


def paired(here: Mapping[str, bool], there: Mapping[str, bool]) -> dict[str, Any]:
    """Compare the verdicts on the same samples under two models, by McNemar's exact test (two-sided).

    Return the counts as JSON values, with those "left_out" that the other one does not have, and "p": the probability
    of a difference at least this large if both models were equally good.
    """
    pairs = [(here[name], there[name]) for name in here if name in there]
    both, neither = pairs.count((True, True)), pairs.count((False, False))
    only_here, only_there = pairs.count((True, False)), pairs.count((False, True))
    count = only_here + only_there
    # Integers: 2**-count underflows a float beyond 1,074 pairs.
    at_most: int = sum(math.comb(count, some) for some in range(min(only_here, only_there) + 1))
    return {
        "both": both, "only_here": only_here, "only_baseline": only_there, "neither": neither,
        "left_out": len(here) - len(pairs), "p": min(1.0, 2 * at_most / (1 << count)),
    }  # fmt: skip


def baseline_line(found: Mapping[str, Any], only_here: str) -> str:
    """Return the result of `paired` as a line for a person; `only_here` is its count in words."""
    alike, there = found["both"] + found["neither"], found["only_baseline"]
    if not alike + there + found["only_here"]:
        return "baseline: it has none of these"
    left = f"; {found['left_out']} are not in it" if found["left_out"] else ""
    p_value = f"McNemar's p = {found['p']:.4g}"
    return f"baseline: {only_here} right only here, {there} only there, {alike} alike{left}; {p_value}"
