"""Prometheus: what to scrape, and alerts with the names that vLLM 0.33 really exports (v1/metrics/loggers.py)."""

from collections.abc import Sequence
from typing import Any

from serverctl.export.common import Document, Source, commented, header
from serverctl.export.container import to_yaml

_RULES = "vllm-alerts.yml"
#: Seconds of the slowest twentieth of first tokens that a person should be told of. A choice, not a measurement: a step
#: of the agent waits this long before its first word.
_SLOW_SECONDS, _SLOW_SECONDS_CPU = 10, 120


def documents(source: Source) -> Sequence[Document]:
    """The scrape configuration, and the rules it names."""
    scrape = commented([*header(source), "", *_about_scrape()]) + to_yaml([scrape_data(source)])
    rules = commented([*header(source), "", *_about_rules()]) + to_yaml([rules_data(source)])
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
    job = f'job="{source.name}"'
    slow = _SLOW_SECONDS_CPU if source.plan.vendor == "cpu" else _SLOW_SECONDS
    hits, asked = "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"
    errors = f'vllm:request_success_total{{{job},finished_reason="error"}}'
    refused = f'http_requests_total{{{job},status="5xx"}}'
    first = f"vllm:time_to_first_token_seconds_bucket{{{job}}}"
    rules = [
        _rule(
            "VllmDown",
            f"up{{{job}}} == 0",
            ("5m", "critical"),
            "vLLM does not answer",
            "Nothing answered for five minutes. A start answers only at its end, and a large model takes minutes "
            "to load: look at the log before restarting it.",
        ),
        _rule(
            "VllmRequestsFail",
            f"sum by (instance) (increase({errors}[10m])) > 0 or sum by (instance) (increase({refused}[10m])) > 0",
            ("0m", "critical"),
            "Answers fail inside the server",
            "A generation ended in an error, or a request got a 5xx. One is enough: healthy servers have none. "
            "`mai-server diagnose LOG` explains the log.",
        ),
        _rule(
            "VllmQueueGrows",
            f"vllm:num_requests_waiting{{{job}}} > vllm:num_requests_running{{{job}}}",
            ("5m", "warning"),
            "More requests wait than run",
            "For five minutes more requests waited than were worked on. The limit is the number that runs, not a "
            "fixed one, so it holds for every card: with a longer queue everybody waits for at least one whole "
            "turn.",
        ),
        _rule(
            "VllmFirstTokenSlow",
            f"histogram_quantile(0.95, sum by (le, instance) (rate({first}[10m]))) > {slow}",
            ("10m", "warning"),
            "First tokens are slow",
            f"One in twenty first tokens took longer than {slow} s; a step waits that long before its first word. "
            "The limit is a choice: set it to what your people put up with.",
        ),
        _rule(
            "VllmPreempts",
            f"sum by (instance) (increase(vllm:num_preemptions_total{{{job}}}[10m])) > 5",
            ("0m", "warning"),
            "Requests are thrown out and computed again",
            "More than five preemptions in ten minutes: the KV cache is too small for so many requests at a time. "
            "A few in a burst are harmless. Fewer slots (max_num_seqs) or a shorter context help.",
        ),
        _rule(
            "VllmKvCacheFull",
            f"vllm:kv_cache_usage_perc{{{job}}} > 0.95",
            ("10m", "info"),
            "The KV cache is full",
            "More than 95 % in use for ten minutes (the metric is a ratio, 0 to 1). The cache is allocated at the "
            "start, so full is no danger to memory: new requests wait for room. Watch the queue and the "
            "preemptions.",
        ),
        _rule(
            "VllmPrefixCacheMisses",
            f"sum by (instance) (rate({hits}{{{job}}}[30m])) / sum by (instance) (rate({asked}{{{job}}}[30m])) < 0.2",
            ("30m", "info"),
            "Few prompt tokens come from the cache",
            "Every step of an agent repeats its history, so most of its tokens should be known. Below a fifth for "
            "half an hour, agents are probably spread over servers at random, or too many share this one.",
        ),
    ]
    return {"groups": [{"name": source.name, "rules": rules}]}


def _rule(name: str, expression: str, when: tuple[str, str], title: str, text: str) -> dict[str, Any]:
    lasting, severity = when
    return {
        "alert": name,
        "expr": expression,
        "for": lasting,
        "labels": {"severity": severity},
        "annotations": {"summary": f"{title}: {{{{ $labels.instance }}}}", "description": text},
    }


def _about_scrape() -> list[str]:
    return [
        "Start: prometheus --config.file=prometheus.yml, with the rules' file beside it.",
        "/metrics asks for no key (the key guards /v1 only), so none is here; the port is open on loopback only.",
    ]


def _about_rules() -> list[str]:
    return [
        "Thresholds are explained in each description. Names are those of vLLM 0.33: older names are gone (a KV "
        "cache named after the GPU, times without _seconds), and an alert on them would never fire.",
    ]
