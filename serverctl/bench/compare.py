"""Several servers side by side, each against the first: the ratio of every number, and whether it means anything."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from serverctl.bench.report import LATENCIES, RATES, Measurement, Report
from serverctl.bench.stats import INTERVAL, Difference, compare
from serverctl.bench.workload import Setting

CAVEAT = (
    f"Interval: {INTERVAL}. Within noise: the interval holds 1. Disturbed: this program was held up during one of the "
    "runs (see the notes), so no verdict. The interval knows the spread between requests, not a machine that was "
    "busier or hotter during one of the runs: repeat what matters. Rates are one number a run, so they have no "
    "interval; judge them by end to end."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One number of one setting for every server."""

    setting: Setting
    quantity: str  # a key of LATENCIES (mean, in milliseconds) or RATES
    values: tuple[float | None, ...]  # one for each report, None where it is unknown
    differences: tuple[Difference | None, ...]  # to the first; None for itself and where nothing can be said
    ratios: tuple[float | None, ...]  # to the first, likewise


@dataclass(frozen=True, slots=True)
class Comparison:
    """Reports of the same workload, the first of which is what the others are measured against."""

    reports: tuple[Report, ...]

    def rows(self) -> list[Row]:
        """Every number of every setting that was measured on the first server."""
        return [row for base in self.reports[0].measurements for row in self._rows_of(base)] if self.reports else []

    def _rows_of(self, base: Measurement) -> Iterator[Row]:
        settings = [{one.setting: one for one in report.measurements} for report in self.reports]
        measured = [measurements.get(base.setting) for measurements in settings]
        for latency in LATENCIES:
            first, *others = ([] if one is None else one.values(latency) for one in measured)
            pairs = zip(measured[1:], others, strict=True)
            differences = [_judged(base, one, compare(first, values)) for one, values in pairs]
            means = tuple(fmean(values) if values else None for values in (first, *others))
            ratios = (None if one is None else one.ratio for one in differences)
            yield Row(base.setting, latency, means, (None, *differences), (None, *ratios))
        for rate in RATES:
            rates = tuple(None if one is None else one.rates[rate] for one in measured)
            shares = (other / rates[0] if other is not None and rates[0] else None for other in rates[1:])
            yield Row(base.setting, rate, rates, (None,) * len(rates), (None, *shares))

    def to_json(self) -> dict[str, Any]:
        """As a JSON object: the reports whole, and the rows."""
        names = [report.name for report in self.reports]
        return {
            "names": names,
            "method": CAVEAT,
            "rows": [
                {
                    "setting": asdict(row.setting),
                    "quantity": row.quantity,
                    "values": dict(zip(names, row.values, strict=True)),
                    "against_first": {
                        name: {"ratio": ratio, **({} if difference is None else asdict(difference))}
                        for name, ratio, difference in zip(names[1:], row.ratios[1:], row.differences[1:], strict=True)
                    },
                }
                for row in self.rows()
            ],
            "reports": [report.to_json() for report in self.reports],
        }


def _judged(first: Measurement, other: Measurement | None, difference: Difference | None) -> Difference | None:
    """The difference, without a verdict where one of the two was disturbed: it would be the disturbance's."""
    if difference is None or other is None or not (first.disturbed or other.disturbed):
        return difference
    return replace(difference, verdict="disturbed")
