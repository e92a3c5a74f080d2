"""A Grafana dashboard of a server's metrics, in the JSON that Grafana imports (its dashboard model, schema 39)."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from foundation.configs import load_config
from serverctl.export.common import Document, Source, header
from serverctl.load.health import targets

#: Grafana's grid is 24 wide.
_IN_A_ROW, _WIDTH, _HEIGHT = 3, 8, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_GOOD, _BAD = "green", "red"


def dashboard(source: Source) -> Document:
    """The dashboard of a job that `prometheus.yml` scrapes. Grafana asks at its import where the data come from."""
    entries: list[Mapping[str, Any]] = load_config("exports/dashboard.toml")["panel"]
    document = {
        "uid": source.name[:40],
        "title": f"vLLM: {source.name}",
        "description": "\n".join(header(source)),
        "tags": ["vllm"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}]
        },
        "panels": [_panel(number, entry, source.name) for number, entry in enumerate(entries)],
    }
    return Document("vllm-dashboard.json", json.dumps(document, indent=1) + "\n")


def _panel(number: int, entry: Mapping[str, Any], job: str) -> dict[str, Any]:
    lines: Mapping[str, str] = entry["lines"]
    row, column = divmod(number, _IN_A_ROW)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": entry["title"],
        "description": entry["about"],
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "datasource": _SOURCE,
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": _SOURCE,
                "expr": line.replace("@JOB@", f'job="{job}"'),
                "legendFormat": name,
            }
            for place, (name, line) in enumerate(lines.items())
        ],
        "fieldConfig": {"defaults": {"unit": entry["unit"], "min": 0, **_thresholds(entry)}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}},
    }


def _thresholds(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The target as a line, and what lies beyond it in red; nothing where there is none."""
    if "target" not in entry:
        return {}
    value = asdict(targets())[entry["target"]]
    first, beyond = (_BAD, _GOOD) if entry.get("below") else (_GOOD, _BAD)
    steps = [{"color": first, "value": None}, {"color": beyond, "value": value}]
    shown = {"custom": {"thresholdsStyle": {"mode": "line+area"}}}
    return {"thresholds": {"mode": "absolute", "steps": steps}, **shown}
