"""Reports and comparisons as tables for a terminal of 80 columns and more."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from serverctl.load.bench.compare import CAVEAT, compared, verdicts
from serverctl.load.bench.report import LATENCIES, PERCENTILES, RATES, Measurement, Report, Summary

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_UNKNOWN = "?"


def print_report(report: Report, console: "Console") -> None:
    """Two tables, latency and throughput, then what limits their meaning."""
    _say(console, f"{report.name}: {report.model} at {report.base_url}")
    if report.measurements:
        console.print(_latency_table(report), _throughput_table(report))
        most = max(len(measurement.good) for measurement in report.measurements)
        rare = f" With n = {most}, p99 is hardly more than the largest value." if most < 100 else ""
        _say(console, f"Percentiles: {PERCENTILES}; n is the number of values.{rare} {_UNKNOWN} is unknown, not 0.")
    for note in report.all_notes:
        _say(console, f"note: {note}")
    for measurement in report.measurements:
        for kind, count in measurement.errors.items():
            example = next(one.failure for one in measurement.samples if one.failure and one.failure.kind == kind)
            _say(console, f"failed: {measurement.setting}: {count} {kind}. {example.message}")
    if report.cut is not None:
        planned = report.workload.total
        _say(console, f"CUT OFF after {report.measured} of {planned} requests: {report.cut.message}")


def print_comparison(reports: Sequence[Report], console: "Console") -> None:
    """Every number of every server, its ratio to the first's, and whether that is more than noise."""
    names = [report.name for report in reports]
    table = _table(f"Against {names[0]} (means)", *names)
    labels = {**{key: f"{label}, ms" for key, label in LATENCIES.items()}, **RATES}
    for setting, rows in groupby(compared(reports), key=lambda row: row.setting):
        _heading(table, str(setting))
        for row in rows:
            texts = ("" if one is None else f"{one.text()} {one.verdict or ''}" for one in row.differences)
            cells = (f"{_number(value, 1)}  {text}".rstrip() for value, text in zip(row.values, texts, strict=True))
            table.add_row(f"  {labels[row.quantity]}", *cells)
    console.print(table)
    for verdict in verdicts(reports):
        _say(console, verdict.because)
    _say(console, CAVEAT)


def _say(console: "Console", text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=False)


def _table(title: str, *columns: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    return table


def _heading(table: "Table", text: str) -> None:
    table.add_section()
    table.add_row(text, style="bold")


def _latency_table(report: Report) -> "Table":
    table = _table("Latency, milliseconds", "mean", "p50", "p95", "p99", "n")
    for one in report.measurements:
        _heading(table, _name(one))
        for latency, label in LATENCIES.items():
            table.add_row(f"  {label}", *_summary(one.summary(latency)))
        if one.server.queue_ms is not None:
            table.add_row("  of these, queued in the server", _number(one.server.queue_ms, 1))
    return table


def _throughput_table(report: Report) -> "Table":
    columns = ("requests\n/s", "output\ntokens/s", "prompt\ntokens/s", "tokens\ncached", "images\ncached", "failed")
    table = _table("Throughput and caches", *columns)
    for one in report.measurements:
        table.add_row(
            _name(one),
            *(_number(rate, digits) for rate, digits in zip(one.rates.values(), (2, 0, 0), strict=True)),
            _percent(one.cached_ratio),
            _percent(one.server.mm_hit_rate),
            str(sum(one.errors.values())),
        )
    return table


def _name(measurement: Measurement) -> str:
    return str(measurement.setting) if measurement.complete else f"{measurement.setting} (cut)"


def _summary(summary: Summary | None) -> list[str]:
    if summary is None:
        return [_UNKNOWN] * 4 + ["0"]
    return [*(_number(value, 1) for value in (summary.mean, summary.p50, summary.p95, summary.p99)), str(summary.n)]


def _number(value: float | None, digits: int) -> str:
    return _UNKNOWN if value is None else f"{value:,.{digits}f}"


def _percent(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.0%}"
