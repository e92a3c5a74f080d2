"""Prometheus: what to scrape, and the alerts of configs/exports/alerts.toml."""

from collections.abc import Sequence
from typing import Any

from foundation.configs import load_config
from serverctl.export.common import Document, Source, header_comment
from serverctl.export.container import to_yaml

_RULES = "vllm-alerts.yml"
_ABOUT_SCRAPE = (
    "Start: prometheus --config.file=prometheus.yml, with the rules' file beside it.",
    "/metrics asks for no key (the key guards /v1 only), so none is here; the port is open on loopback only.",
)
_ABOUT_RULES = (
    "Thresholds are explained in each description. Names are those of vLLM 0.33: older names are gone (a KV cache "
    "named after the GPU, times without _seconds), and an alert on them would never fire.",
)


def documents(source: Source) -> Sequence[Document]:
    """The scrape configuration, and the rules it names."""
    return [
        Document("prometheus.yml", header_comment(source, *_ABOUT_SCRAPE) + to_yaml([scrape_data(source)])),
        Document(_RULES, header_comment(source, *_ABOUT_RULES) + to_yaml([rules_data(source)])),
    ]


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

    def filled(text: str) -> str:
        return text.replace("@JOB@", f'job="{source.name}"').replace("@SLOW@", str(slow))

    rules = [
        {
            "alert": alert["name"],
            "expr": filled(alert["expr"]),
            "for": alert["for"],
            "labels": {"severity": alert["severity"]},
            "annotations": {
                "summary": f"{alert['title']}: {{{{ $labels.instance }}}}",
                "description": filled(alert["text"]),
            },
        }
        for alert in config["alert"]
    ]
    return {"groups": [{"name": source.name, "rules": rules}]}
