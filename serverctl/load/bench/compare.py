"""Compares several servers with the first: the ratio of every number, whether it is more than noise, a verdict."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any, Literal, TypeAlias

from serverctl.load.bench.report import LATENCIES, RATES, Report
from serverctl.load.bench.workload import AGAIN, Setting

INTERVAL = "95 % of the ratio of means of the same requests, by the spread between groups that were under way at once"

#: Below this number of pairs, an interval says more about the method than about the servers.
_LEAST_SAMPLES = 5
#: Minimum number of groups for the spread; groups are made smaller to reach it.
_LEAST_GROUPS = 4
#: 95 % of the normal distribution lie within this many standard deviations.
_Z = 1.959964

Outcome: TypeAlias = Literal["lower", "higher", "within noise", "too few samples"]

CAVEAT = (
    f"Interval: {INTERVAL}. Within noise: the interval holds 1. The servers get the same requests in "
    "alternating blocks (--rounds), and a machine that was busier during one of the blocks looks like a difference. "
    "Rates are one number a run, so they have no interval; judge them by end to end."
)

#: "cannot tell": within noise, or too few requests. "it depends": better in some settings and worse in others.
Judgement: TypeAlias = Literal["better", "worse", "cannot tell", "it depends"]

#: The quantity that verdicts are made by: the time a person waits for.
_JUDGED = "total_ms"


@dataclass(frozen=True, slots=True)
class Difference:
    """How one set of values compares with another."""

    ratio: float  # mean ratio, `other` / `first`
    low: float | None = None  # lower end of the 95 % interval of the ratio; None with too few samples
    high: float | None = None  # upper end
    verdict: Outcome | None = None  # "within noise" if the interval holds 1; None for numbers that are not judged

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
    if len(pairs) < _LEAST_SAMPLES:
        return Difference(ratio, verdict="too few samples")
    count = max(_LEAST_GROUPS, len(pairs) // together)
    cuts = [len(pairs) * number // count for number in range(count + 1)]
    beside = [sum(b - ratio * a for a, b in pairs[begin:end]) for begin, end in pairwise(cuts)]
    spread = math.sqrt(count / (count - 1) * sum(one**2 for one in beside)) / total
    half = _student(count - 1) * spread
    # The interval of a ratio is symmetric as a factor: half and twice are equally far from 1.
    factor = math.exp(min(half / ratio, 20.0)) if ratio > 0 else 1.0
    low, high = ratio / factor, ratio * factor
    verdict: Outcome = "within noise" if low <= 1 <= high else ("lower" if high < 1 else "higher")
    return Difference(ratio, low, high, verdict)


def _student(freedom: int) -> float:
    """Student's 97.5 % quantile (two-sided 95 %): Fisher's expansion, within 1 % from 3 degrees of freedom on."""
    z, d = _Z, 4.0 * freedom
    return (
        z
        + (z**3 + z) / d
        + (5 * z**5 + 16 * z**3 + 3 * z) / (6 * d**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (6 * d**3)
    )


@dataclass(frozen=True, slots=True)
class Row:
    """One number of one setting for every server."""

    setting: Setting
    quantity: str  # a key of LATENCIES (mean, in milliseconds) or RATES
    values: tuple[float | None, ...]  # one for each report, None is unknown
    differences: tuple[Difference | None, ...]  # to the first; None for the first itself, and if unknown


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for one server, by the whole time of the same requests."""

    name: str
    judgement: Judgement  # against the first
    because: str  # one sentence


def compared(reports: Sequence[Report]) -> Iterator[Row]:
    """Yield every number of every setting measured on the first server. All reports have the same workload."""
    settings = [{one.setting: one for one in report.measurements} for report in reports]
    for base in reports[0].measurements:
        measured = [measurements.get(base.setting) for measurements in settings]
        for latency in LATENCIES:
            first, *others = ([] if one is None else one.by_number(latency) for one in measured)
            differences = [compare_pairs(first, values, base.setting.concurrency) for values in others]
            means = tuple(fmean(values) if one and (values := one.values(latency)) else None for one in measured)
            yield Row(base.setting, latency, means, (None, *differences))
        for rate in RATES:
            rates = tuple(None if one is None else one.rates[rate] for one in measured)
            shares = (Difference(other / rates[0]) if other is not None and rates[0] else None for other in rates[1:])
            yield Row(base.setting, rate, rates, (None, *shares))


def verdicts(reports: Sequence[Report]) -> list[Verdict]:
    """Return whether each of the other servers is better than the first."""
    rows = [row for row in compared(reports) if row.quantity == _JUDGED]
    return [
        _verdict(report.name, reports[0].name, [(row.setting, row.differences[place]) for row in rows])
        for place, report in enumerate(reports[1:], start=1)
    ]


def comparison_json(reports: Sequence[Report]) -> dict[str, Any]:
    """Return the verdicts, the rows and the whole reports as a JSON object."""
    names = [report.name for report in reports]
    return {
        "names": names,
        "method": CAVEAT,
        "verdicts": {one.name: {"judgement": one.judgement, "because": one.because} for one in verdicts(reports)},
        "rows": [
            {
                "setting": asdict(row.setting),
                "quantity": row.quantity,
                "values": dict(zip(names, row.values, strict=True)),
                "against_first": {
                    name: {"ratio": None} if one is None else asdict(one) if one.verdict else {"ratio": one.ratio}
                    for name, one in zip(names[1:], row.differences[1:], strict=True)
                },
            }
            for row in compared(reports)
        ],
        "reports": [report.to_json() for report in reports],
    }


def _verdict(name: str, first: str, differences: Sequence[tuple[Setting, Difference | None]]) -> Verdict:
    """The verdict over all settings: "better" is better in one setting and worse in none."""
    outcomes = {one.verdict for _, one in differences if one is not None}
    judgement: Judgement = "cannot tell"
    if {"lower", "higher"} <= outcomes:
        judgement = "it depends"
    elif "lower" in outcomes or "higher" in outcomes:
        judgement = "better" if "lower" in outcomes else "worse"
    numbers = "; ".join(f"{one.text(' to ')} with {setting}" for setting, one in differences if one is not None)
    summary = f"requests take {numbers}" if numbers else "they have no answered request in common"
    if name.removesuffix(AGAIN) == first.removesuffix(AGAIN) and judgement != "cannot tell":
        because = f"{name} is {first} itself, and yet {summary}: this machine is too busy now to compare anything."
        return Verdict(name, "cannot tell", because)
    words = {"better": "is better than", "worse": "is worse than"}.get(judgement)
    if words:
        return Verdict(name, judgement, f"{name} {words} {first}: {summary}.")
    less = "whether it is better cannot be told" if judgement == "cannot tell" else "it depends on the setting"
    return Verdict(name, judgement, f"{name} against {first}: {less}; {summary}.")
