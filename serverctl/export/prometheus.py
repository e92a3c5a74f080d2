"""Prometheus: what to scrape, and the alerts of configs/exports/alerts.toml."""

from collections.abc import Sequence
from typing import Any

from foundation.configs import load_config
from serverctl.export.common import Document, Source, filled, header_comment, notes
from serverctl.export.container import to_yaml

_RULES = "vllm-alerts.yml"


def documents(source: Source) -> Sequence[Document]:
    """The scrape configuration, and the rules it names."""
    targets = [f"127.0.0.1:{server.port}" for server in source.servers()]
    job = {"job_name": source.name, "metrics_path": "/metrics", "static_configs": [{"targets": targets}]}
    times = {"scrape_interval": "15s", "evaluation_interval": "15s"}
    scrape = {"global": times, "rule_files": [_RULES], "scrape_configs": [job]}
    parts = {"scrape": ("prometheus.yml", scrape), "rules": (_RULES, rules_data(source))}
    return [
        Document(name, header_comment(source, notes(source, f"prometheus.{part}")) + to_yaml([values]))
        for part, (name, values) in parts.items()
    ]


def rules_data(source: Source) -> dict[str, Any]:
    """The rules as values."""
    config = load_config("exports/alerts.toml")
    slow = config["slow_seconds"]["cpu" if source.plan.vendor == "cpu" else "card"]
    marks = {"@JOB@": f'job="{source.name}"', "@SLOW@": str(slow)}
    rules = [
        {
            "alert": alert["name"],
            "expr": filled(alert["expr"], marks),
            "for": alert["for"],
            "labels": {"severity": alert["severity"]},
            "annotations": {
                "summary": f"{alert['title']}: {{{{ $labels.instance }}}}",
                "description": filled(alert["text"], marks),
            },
        }
        for alert in config["alert"]
    ]
    return {"groups": [{"name": source.name, "rules": rules}]}
