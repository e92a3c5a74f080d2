"""Prometheus: what to scrape, and the alerts of configs/exports/alerts.toml."""

from collections.abc import Sequence
from typing import Any

from foundation.configs import load_config
from serverctl.export.common import Document, Source, filled, header_comment, notes
from serverctl.export.container import to_yaml

_RULES = "vllm-alerts.yml"


def documents(source: Source) -> Sequence[Document]:
    """The scrape configuration, and the rules it names."""
    scrape = header_comment(source, notes(source, "prometheus.scrape")) + to_yaml([scrape_data(source)])
    rules = header_comment(source, notes(source, "prometheus.rules")) + to_yaml([rules_data(source)])
    return [Document("prometheus.yml", scrape), Document(_RULES, rules)]


def scrape_data(source: Source) -> dict[str, Any]:
    """The scrape configuration as values."""
    targets = [f"127.0.0.1:{server.port}" for server in source.servers()]
    return {
        "global": {"scrape_interval": "15s", "evaluation_interval": "15s"},
        "rule_files": [_RULES],
        "scrape_configs": [
            {"job_name": source.name, "metrics_path": "/metrics", "static_configs": [{"targets": targets}]}
        ],
    }


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
