"""The score of an evaluation: the headline by the official rule, the other rules beside it, groups and refusals."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.evals.judging import OFFICIAL, RULES, ZOOM, Verdict
from agent.evals.samples import Benchmark
from agent.evals.statistics import baseline_line, paired, wilson
from foundation.configs import load_config


def summary(
    benchmark: Benchmark,
    run: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    baseline: Mapping[str, bool] | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the score as JSON values; shares are from 0 to 1. `notes` say what it does not mean."""
    groups = {
        f"{name}={value}": _share([one for one in verdicts if one.sample.groups[name] == value])
        for name in benchmark.layout["groups"]
        for value in sorted({one.sample.groups[name] for one in verdicts})
    }
    mean_of, model = benchmark.layout.get("mean_of"), str(run.get("model", ""))
    totals: dict[str, Any] = {
        "benchmark": benchmark.name,
        **{key: run.get(key) for key in ("model", "family", "words")},
        "samples": len(benchmark.samples),
        "answered": len(verdicts),
        "score": _score(verdicts, mean_of),
        "headline": _share(verdicts),
        "mean_of": mean_of,
        "rules": {name: _score(verdicts, mean_of, name) for name in _rules(verdicts)},
        "groups": groups,
        "unreadable": sum(one.said == "unreadable" for one in verdicts),
        "refusals": _refusals(verdicts),
        "published": [
            _compared(entry, verdicts if len(verdicts) == len(benchmark.samples) else (), mean_of)
            for entry in published(model, benchmark.name)
        ],
        "baseline": None,
        "notes": list(notes),
    }
    if baseline is not None:
        totals["baseline"] = paired({one.sample.id: one.right for one in verdicts}, baseline)
    return totals


def _share(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    right = sum(one.right for one in verdicts)
    low, high = wilson(right, len(verdicts))
    row = {"right": right, "count": len(verdicts), "share": right / max(1, len(verdicts)), "low": low, "high": high}
    if verdicts and all(ZOOM in one.rules for one in verdicts):
        row["zoom"] = sum(one.rules[ZOOM] for one in verdicts) / len(verdicts)
    return row


def _score(verdicts: Sequence[Verdict], mean_of: str | None, rule: str = OFFICIAL) -> float:
    """Return the share of right answers; with `mean_of`, the mean of the shares of this group's values."""
    parts: dict[str, list[bool]] = {}
    for one in verdicts:
        parts.setdefault(one.sample.groups[mean_of] if mean_of else "", []).append(one.rules[rule])
    return sum(sum(part) / len(part) for part in parts.values()) / max(1, len(parts))


def _rules(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the rules that every verdict has, the official one first; some only if they can make a difference."""
    shapes = {one.sample.shape for one in verdicts}
    about = {"MAI-UI's polygons": "polygon", "unreadable is a refusal": "refusal"}
    names = [*RULES, "unreadable is a refusal", ZOOM]
    return [
        name for name in names
        if all(name in one.rules for one in verdicts) and about.get(name, "box") in shapes | {"box"}
    ]  # fmt: skip


def _refusals(verdicts: Sequence[Verdict]) -> dict[str, Any] | None:
    """Return the figures on absent targets; None for a benchmark without them."""
    absent = [one for one in verdicts if one.sample.shape == "refusal"]
    present = [one for one in verdicts if one.sample.shape != "refusal"]
    if not absent:
        return None
    false = sum(one.said == "refused" for one in present)
    return {"without": _share(present), "refused": _share(absent), "false": false}


def published(model: str, benchmark: str) -> list[dict[str, Any]]:
    """Return the published figures of a model, in percent, each with how its source judges."""
    name, config = _plain(model), load_config("evals.toml")
    return [
        {
            "figure": entry["figures"][benchmark],
            "source": entry["source"],
            "rule": ZOOM if entry.get("zoom") else entry.get("rules", {}).get(benchmark, OFFICIAL),
            "without_refusals": False,
        }
        | config["sources"].get(entry["source"], {})
        for entry in config["published"]
        if benchmark in entry["figures"] and re.search(rf"(^|-){_plain(entry['model'])}(-|$)", name)
    ]


def _compared(entry: dict[str, Any], verdicts: Sequence[Verdict], mean_of: str | None) -> dict[str, Any]:
    """Add our own figure by the rule of a published figure; None if there is no such rule."""
    judged = [one for one in verdicts if not (entry["without_refusals"] and one.sample.shape == "refusal")]
    known = judged and all(entry["rule"] in one.rules for one in judged)
    return entry | {"ours": 100 * _score(judged, mean_of, entry["rule"]) if known else None}


def how_judged(entry: Mapping[str, Any]) -> str:
    """Return by which rule a published figure is judged, in words."""
    rule = {OFFICIAL: "official rule", ZOOM: "with a zoom"}.get(entry["rule"], entry["rule"])
    return f"{rule}, without refusals" if entry["without_refusals"] else str(rule)


def _plain(model: str) -> str:
    """Return the last part of a model's name; variants of it (-Instruct, -AWQ) keep their own words."""
    return re.sub(r"[^a-z0-9.]+", "-", model.lower().rstrip("/").rpartition("/")[2])


def lines(totals: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table for a person."""
    title = load_config("evals.toml")[totals["benchmark"]]["title"]
    yield f"{title}: {totals['model']} (family {totals['family']}, words: {totals['words']})"
    if totals["answered"] < totals["samples"]:
        yield f"answered: {totals['answered']} of {totals['samples']} samples"
    if totals["mean_of"]:
        of = "" if totals["answered"] == totals["samples"] else " that was asked about"
        yield f"score: {percent(totals['score'])}, the mean over each {totals['mean_of']}{of}"
    rows, refusals = rows_of(totals), totals["refusals"]
    width = max(map(len, rows))
    for name, row in rows.items():
        yield f"{name:<{width}}  {_row(row)}"
    if refusals:
        yield f"refused although it is there: {refusals['false']} of {refusals['without']['count']}"
    yield f"answers without a point or a refusal: {totals['unreadable']}"
    yield "by rule: " + ", ".join(f"{name} {percent(share)}" for name, share in totals["rules"].items())
    for entry in totals["published"]:
        part = totals["answered"] < totals["samples"]
        ours = f"not measured{' in whole' if part else ''}" if entry["ours"] is None else f"{entry['ours']:.1f} %"
        yield f"published ({entry['source']}, {how_judged(entry)}): {entry['figure']:.1f} %; here {ours}"
    if found := totals["baseline"]:
        yield baseline_line(found, str(found["only_here"]))


def rows_of(totals: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the rows of the table by their names."""
    rows = {"official rule, all": totals["headline"], **totals["groups"]}
    if refusals := totals["refusals"]:
        rows |= {"without refusals": refusals["without"], "refusals right": refusals["refused"]}
    return rows


def _row(row: Mapping[str, Any]) -> str:
    interval = f"{100 * row['low']:.1f} to {100 * row['high']:.1f}"
    zoom = f"  zoom: {percent(row['zoom'])}" if "zoom" in row else ""
    return f"{row['right']:>5} of {row['count']:<5} {percent(row['share']):>8}  95 %: {interval}{zoom}"


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.2f} %"
