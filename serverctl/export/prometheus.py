"""Prometheus: what to scrape, alert rules, and a Grafana dashboard in the JSON that Grafana imports (schema 39)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from foundation.configs import load_config
from foundation.templates import to_yaml, yaml_template
from serverctl.export.common import Document, Source
from serverctl.load.health import targets

#: Alert if the 95th percentile of the time to first token exceeds this, in seconds, on cards and on a processor. A
#: choice, not a measurement: an agent's step waits this long before the answer begins.
_SLOW_S, _SLOW_CPU_S = 10, 120
#: Grafana's grid is 24 wide.
_IN_A_ROW, _WIDTH, _HEIGHT = 3, 8, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_GOOD, _BAD = "green", "red"


def documents(source: Source) -> Sequence[Document]:
    """The scrape configuration, the rules it names, and a dashboard."""
    servers = [f"127.0.0.1:{server.port}" for server in source.servers()]
    slow = _SLOW_CPU_S if source.plan.vendor == "cpu" else _SLOW_S
    marks = {"NAME": source.name, "TARGETS": servers, "JOB": f'job="{source.name}"', "SLOW": slow}
    found = []
    for name, about in (("prometheus.yml", "prometheus.scrape"), ("vllm-alerts.yml", "prometheus.rules")):
        text = source.header_comment(source.notes(about)) + to_yaml(yaml_template(name, **marks))
        found.append(Document(name, text))
    return [*found, _dashboard(source)]


def _dashboard(source: Source) -> Document:
    """The dashboard of a job that `prometheus.yml` scrapes. Grafana asks for the data source when it imports it."""
    entries: list[Mapping[str, Any]] = load_config("exports/dashboard.toml")["panel"]
    (dashboard,) = yaml_template(
        "dashboard.yml",
        UID=source.name[:40],
        NAME=source.name,
        ABOUT="\n".join(source.header()),
        PANELS=[_panel(number, entry, source.name) for number, entry in enumerate(entries)],
    )
    return Document("vllm-dashboard.json", json.dumps(dashboard, indent=1) + "\n")


def _panel(number: int, entry: Mapping[str, Any], job: str) -> Any:
    row, column = divmod(number, _IN_A_ROW)
    lines = [
        {"refId": chr(ord("A") + place), "datasource": _SOURCE, "legendFormat": name,
         "expr": line.replace("@JOB@", f'job="{job}"').replace("@NAME@", job)}
        for place, (name, line) in enumerate(entry["lines"].items())
    ]  # fmt: skip
    (panel,) = yaml_template(
        "dashboard-panel.yml",
        NUMBER=number + 1,
        TITLE=entry["title"],
        ABOUT=entry["about"],
        PLACE={"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        SOURCE=_SOURCE,
        LINES=lines,
        DEFAULTS={"unit": entry["unit"], "min": 0, **_thresholds(entry)},
    )
    return panel


def _thresholds(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The target as a line, with the area that misses it in red; nothing without a target."""
    if "target" not in entry:
        return {}
    value = asdict(targets())[entry["target"]]
    first, beyond = (_BAD, _GOOD) if entry.get("below") else (_GOOD, _BAD)
    steps = [{"color": first, "value": None}, {"color": beyond, "value": value}]
    shown = {"custom": {"thresholdsStyle": {"mode": "line+area"}}}
    return {"thresholds": {"mode": "absolute", "steps": steps}, **shown}
