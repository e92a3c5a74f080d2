"""What Prometheus scrapes and alerts on, and a dashboard of it: by metrics that a real vLLM has."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from stubs.exports import files, source_for

from agent.fleet.fleet import Lines
from agent.fleet.metrics import Metrics
from serverctl.export import prometheus
from serverctl.export.common import Source
from serverctl.plan.goal import Goal

#: vLLM's metrics that were renamed or removed before 0.33; an alert on them never fires.
REMOVED = (
    "gpu_cache_usage_perc",
    "time_to_first_token[",
    "time_per_output_token_seconds",
    "vllm:time_per_output_token",
)


def metric_names(rules: dict[str, Any]) -> set[str]:
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    return {name for expression in expressions for name in re.findall(r"(?:vllm:|http_|\bup\b)\w*", expression)}


def test_prometheus_scrapes_every_server_and_loads_its_rules(capsys: pytest.CaptureFixture[str]) -> None:
    found = files(capsys, "prometheus", "--gpu", "H100", "--gpus", "2", "--preset", "throughput", "--name", "gui")
    scrape, rules = (yaml.safe_load(found[name]) for name in ("prometheus.yml", "vllm-alerts.yml"))
    job, agents = scrape["scrape_configs"]
    assert agents == {"job_name": "gui-agents", "static_configs": [{"targets": ["127.0.0.1:9464"]}]}
    assert job["job_name"] == "gui"
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"] == [{"targets": ["127.0.0.1:8000", "127.0.0.1:8001"]}]
    assert scrape["rule_files"] == ["vllm-alerts.yml"]
    for rule in rules["groups"][0]["rules"]:
        assert 'job="gui"' in rule["expr"]
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert len(rule["annotations"]["description"]) > 80, "the threshold is explained"
        assert re.fullmatch(r"\d+m", rule["for"])


def test_alerts_use_no_metric_that_was_removed(capsys: pytest.CaptureFixture[str]) -> None:
    found = files(capsys, "prometheus", "--gpu", "L4")
    names = metric_names(yaml.safe_load(found["vllm-alerts.yml"]))
    assert {
        "vllm:kv_cache_usage_perc",
        "vllm:num_requests_waiting",
        "vllm:num_preemptions_total",
        "vllm:time_to_first_token_seconds_bucket",
        "vllm:request_success_total",
        "up",
    } <= names
    for text in found.values():
        assert not [name for name in REMOVED if re.search(r"(?<!\w)" + re.escape(name), text)]


@pytest.mark.real_vllm
def test_alerts_use_only_metrics_that_vllm_0_33_defines(vllm_033: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = "".join(path.read_text() for path in (vllm_033 / "vllm" / "v1" / "metrics").glob("*.py"))
    defined = set(re.findall(r'name="(vllm:\w+)"', sources))
    found = files(capsys, "prometheus", "--gpu", "L4")
    for name in metric_names(yaml.safe_load(found["vllm-alerts.yml"])) - {"up", "http_requests_total"}:
        assert re.sub(r"_(total|bucket)$", "", name) in defined, name


def dashboard_of(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(capsys, "prometheus", "--gpu", "L4", *options)["vllm-dashboard.json"])
    return found


def test_the_dashboard_has_what_grafana_asks_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    board = dashboard_of(capsys, "--name", "gui")
    assert board["uid"] == "gui"
    assert len(board["uid"]) <= 40
    assert board["schemaVersion"] >= 36
    [source] = board["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    panels = board["panels"]
    assert len(panels) == len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels})
    places = set()
    for panel in panels:
        assert panel["type"] == "timeseries"
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places, "panels lie side by side"
        places |= cells
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["targets"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            job = "gui-agents" if "mai_agent_" in target["expr"] else "gui"
            assert f'job="{job}"' in target["expr"]
            assert "@" not in target["expr"]
            assert target["expr"].count("(") == target["expr"].count(")")
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {"steps": [{"value": None}]})["steps"]
        assert steps[0]["value"] is None, "Grafana wants the first step open below"
    drawn = {panel["title"] for panel in panels if "thresholds" in panel["fieldConfig"]["defaults"]}
    assert len(drawn) == 4


def metrics_of_board(board: dict[str, Any]) -> set[str]:
    lines = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return {name for line in lines for name in re.findall(r"vllm:\w+", line)}


def test_the_dashboard_shows_only_metrics_that_a_real_vllm_gave(capsys: pytest.CaptureFixture[str]) -> None:
    recorded = (Path(__file__).parents[1] / "data" / "metrics" / "vllm-0.32.0.txt").read_text()
    given = set(re.findall(r"^(vllm:\w+)", recorded, re.MULTILINE))
    shown = metrics_of_board(dashboard_of(capsys))
    assert len(shown) > 10
    assert shown <= given


def test_the_dashboard_shows_only_metrics_that_a_fleet_gives(capsys: pytest.CaptureFixture[str]) -> None:
    fleet = Metrics(Lines(), 0, 0)
    given = {f"{one.name}{ending}" for one in fleet.registry.collect() for ending in ("", "_total", "_sum", "_count")}
    lines = [target["expr"] for panel in dashboard_of(capsys)["panels"] for target in panel["targets"]]
    shown = {name for line in lines for name in re.findall(r"mai_agent_\w+", line)}
    assert len(shown) == 7
    assert shown <= given


@pytest.mark.real_vllm
def test_the_dashboard_shows_only_metrics_that_vllm_0_33_defines(
    vllm_033: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = "".join(path.read_text() for path in (vllm_033 / "vllm" / "v1" / "metrics").glob("*.py"))
    defined = set(re.findall(r'name="(vllm:\w+)"', sources))
    for name in metrics_of_board(dashboard_of(capsys)):
        assert re.sub(r"_(total|bucket)$", "", name) in defined, name


def test_slow_means_something_else_on_a_processor() -> None:
    def slow(source: Source) -> str:
        rules = yaml.safe_load(prometheus.documents(source)[1].text)["groups"][0]["rules"]
        return str(next(rule["expr"] for rule in rules if rule["alert"] == "VllmFirstTokenSlow"))

    assert slow(source_for("L4")).endswith("> 10")
    assert slow(source_for("cpu", goal=Goal(force=True))).endswith("> 120")
