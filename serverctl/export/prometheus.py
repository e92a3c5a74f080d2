"""Prometheus: what to scrape, alert rules, and a dashboard for Grafana."""

from collections.abc import Sequence
from typing import Any

from serverctl.export.common import Document, Source, header_comment, notes
from serverctl.export.container import to_yaml, yaml_template
from serverctl.export.dashboard import dashboard

#: Of the slowest twentieth of first tokens, seconds that a person should be told of, on cards and on a processor. A
#: choice, not a measurement: a step of the agent waits this long before its first word.
_SLOW_S, _SLOW_CPU_S = 10, 120


def documents(source: Source) -> Sequence[Document]:
    """The scrape configuration, the rules it names, and a dashboard."""
    targets = [f"127.0.0.1:{server.port}" for server in source.servers()]
    scrape = yaml_template("prometheus.yml", NAME=source.name, TARGETS=targets)
    parts = (("prometheus.yml", "prometheus.scrape", scrape), ("vllm-alerts.yml", "prometheus.rules", rules(source)))
    texts = [
        Document(name, header_comment(source, notes(source, about)) + to_yaml(data)) for name, about, data in parts
    ]
    return [*texts, dashboard(source)]


def rules(source: Source) -> list[Any]:
    """The one document of alert rules."""
    slow = _SLOW_CPU_S if source.plan.vendor == "cpu" else _SLOW_S
    return yaml_template("vllm-alerts.yml", NAME=source.name, JOB=f'job="{source.name}"', SLOW=slow)
