"""The numbers of a fleet for Prometheus, of a fleet at work and at its end."""

import socket
import sys
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from stubs.display import wait_until

from agent.cli import main
from agent.commands import fleet as command
from agent.fleet.fleet import Lines
from agent.fleet.metrics import Metrics
from agent.fleet.tasks import Result, Task

HERE = Path(__file__).parent
TASK = Task("a", "do it")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def scraped(port: int) -> dict[str, float]:
    """Every number, by its name and labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    monkeypatch.setattr(command, "PROGRAM", (sys.executable, str(HERE / "fake_agent.py")))

    def write(*instructions: str) -> Path:
        lines = [f'{{"id": "{number}", "instruction": "{one}"}}' for number, one in enumerate(instructions)]
        (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
        return tmp_path / "tasks.jsonl"

    return write


def test_what_runs_now_and_what_it_did_so_far_is_told_while_the_fleet_works(
    tasks: Callable[..., Path], tmp_path: Path
) -> None:
    gate, port, seen = tmp_path / "gate", free_port(), dict[str, float]()

    def scrape() -> bool:
        with suppress(OSError):
            seen.update(scraped(port))
        return seen.get("mai_agent_runs_total done") == 1 and seen.get("mai_agent_steps_total") == 2

    def watch() -> None:
        try:
            wait_until(scrape, "one run is done, and the next one took a step")
        finally:
            gate.touch()

    watching = threading.Thread(target=watch)
    watching.start()
    path = tasks("fine one", f"fine until {gate}", "fine three")
    assert main(["fleet", str(path), "--parallel", "1", "--metrics", str(port)]) == 0
    watching.join()
    assert seen["mai_agent_runs_going"] == seen["mai_agent_tasks_waiting"] == 1
    assert (seen["mai_agent_tokens_total prompt"], seen["mai_agent_tokens_total completion"]) == (200, 40)
    assert seen["mai_agent_stage_seconds_count model"] == 2
    assert seen["mai_agent_stage_seconds_sum model"] == pytest.approx(1.4)
    assert seen["mai_agent_stage_seconds_sum act"] == pytest.approx(0.06)
    assert seen["mai_agent_run_seconds_sum"] == 3.0
    with pytest.raises(OSError):
        scraped(port)  # it ends with the fleet


def test_a_port_that_is_taken_is_one_sentence_before_anything_starts(
    tasks: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["fleet", str(tasks("fine one")), "--metrics", str(port)]) == 3
    assert f"Port {port} cannot be used" in capsys.readouterr().err
    assert not (tmp_path / "tasks-fleet/runs").exists()


def metrics() -> Metrics:
    return Metrics(Lines(), 0, 1)


def value(counted: Metrics, name: str, **labels: str) -> float | None:
    return counted.registry.get_sample_value(name, labels)


def test_a_run_that_is_repeated_is_no_outcome() -> None:
    counted = metrics()
    for tries, again in ((1, True), (2, False)):
        counted.started(TASK, tries)
        counted.finished(Result("a", "failed", 3, None, 0, 1.0, None, "", "", tries, ""), again=again)
    assert value(counted, "mai_agent_retries_total") == 1
    assert value(counted, "mai_agent_runs_total", outcome="failed") == 1
    assert value(counted, "mai_agent_runs_going") == value(counted, "mai_agent_tasks_waiting") == 0


def test_a_failed_action_is_counted_and_unknown_tokens_are_none() -> None:
    counted = metrics()
    counted.event(TASK, {"event": "Acted", "error": "it missed", "milliseconds": 5.0})
    counted.event(TASK, {"event": "Acted", "error": None, "milliseconds": 5.0})
    counted.event(TASK, {"event": "Decided", "usage": {"prompt": None}, "milliseconds": {}})
    assert value(counted, "mai_agent_failed_actions_total") == 1
    assert value(counted, "mai_agent_tokens_total", kind="prompt") == 0


@pytest.mark.parametrize(
    "event",
    [
        {}, {"event": 3}, {"event": "Decided", "usage": None}, {"event": "Decided", "usage": {"prompt": "many"}},
        {"event": "Observed", "milliseconds": {"fit": "long"}}, {"event": "StepFinished", "milliseconds": 7},
    ],
)  # fmt: skip
def test_an_event_of_another_form_hurts_nobody(event: dict[str, object]) -> None:
    metrics().event(TASK, event)
