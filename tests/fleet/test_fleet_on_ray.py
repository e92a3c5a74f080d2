"""A fleet on a Ray cluster of three local nodes, with a fake program in place of `mai-agent run`."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from stubs.display import wait_until

from agent.fleet.cluster import ClusterRunner
from foundation.errors import EnvironmentLacksError, UsageError

ROOT = Path(__file__).resolve().parents[2]
#: Ray replaces 127.0.0.1 by the machine's own address; any other loopback address stays.
A_NODE = {"node_ip_address": "127.0.0.2", "num_cpus": 2, "memory": 2**31, "object_store_memory": 100 * 2**20}


@pytest.mark.parametrize("address", ["auto", "127.0.0.1", "ray://127.0.0.1:10001", ":1"])
def test_what_is_no_address_of_a_head_node_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match="is not a Ray cluster"), ClusterRunner(tmp_path, {}, (), (), address):
        pass


def test_a_cluster_that_does_not_run_is_said_at_once(tmp_path: Path) -> None:
    with (
        pytest.raises(EnvironmentLacksError, match="Nothing answers"),
        ClusterRunner(tmp_path, {}, (), (), "127.0.0.1:1"),
    ):
        pass


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head node on which no desktop has room, and two nodes with room for two desktops each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(ROOT))
        from ray.cluster_utils import Cluster

        handler = signal.getsignal(signal.SIGTERM)  # Ray takes it, and later tests of this process send the signal
        quick = {"health_check_period_ms": 500, "health_check_failure_threshold": 4}  # notices a lost node
        head = {**A_NODE, "num_cpus": 0, "include_dashboard": False, "_system_config": quick}
        made = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(2):
            made.add_node(**A_NODE)
        yield made
        made.shutdown()
        signal.signal(signal.SIGTERM, handler)


def fleet_on(cluster: Any, folder: Path) -> "subprocess.Popen[str]":
    """A fleet of four slots with the tasks of a folder."""
    starter = [sys.executable, str(ROOT / "tests/stubs/start_with_fakes.py"), "fleet", str(folder / "tasks.jsonl")]
    words = ["--out", str(folder / "out"), "--parallel", "4", "--json", "--ray", cluster.address]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([*starter, *words], env=environ, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def start(tmp_path: Path, cluster: Any) -> Iterator[Any]:
    """Starts a fleet on the cluster; its first four tasks wait for the file `gate`."""
    running: list[subprocess.Popen[str]] = []
    gated = [f"task{number} until {tmp_path / 'gate'}" for number in range(4)]
    lines = [{"id": word.split()[0], "instruction": word} for word in [*gated, *(f"task{at}" for at in range(4, 8))]]
    (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    def begin() -> subprocess.Popen[str]:
        running.append(fleet_on(cluster, tmp_path))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.wait()


def events_until_all_slots_wait(process: subprocess.Popen[str]) -> None:
    acted = set()
    while len(acted) < 4:
        event = json.loads(process.stdout.readline())
        if event["event"] == "Acted":
            acted.add(event["task"])


def runs_of(folder: Path) -> list[psutil.Process]:
    """The fake runs of this test's tasks."""
    return [
        process for process in psutil.process_iter(["cmdline"])
        if str(folder / "gate") in " ".join(process.info["cmdline"] or ())
    ]  # fmt: skip


def results_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out/results.jsonl").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ctrl_c_stops_the_runs_on_all_nodes_and_records_none(tmp_path: Path, start: Any) -> None:
    process = start()
    events_until_all_slots_wait(process)
    assert len(runs_of(tmp_path)) == 4
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=400)
    assert process.returncode == 130
    wait_until(lambda: not runs_of(tmp_path), "no run is left")
    assert results_in(tmp_path) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_when_a_node_is_killed_nothing_is_lost_and_nothing_is_done_twice(
    tmp_path: Path, start: Any, cluster: Any
) -> None:
    process = start()
    events_until_all_slots_wait(process)
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    wait_until(lambda: len(runs_of(tmp_path)) == 2, "the runs of the lost node have ended")
    (tmp_path / "gate").touch()
    out, _ = process.communicate(timeout=400)
    assert process.returncode == 0, out[-3000:]
    results = results_in(tmp_path)
    assert sorted(result["id"] for result in results) == [f"task{number}" for number in range(8)]
    assert {result["outcome"] for result in results} == {"done"}
    assert [result["id"] in {f"task{at}" for at in range(4)} for result in results if result["tries"] == 2] == [
        True
    ] * 2
    for result in results:
        shown = tmp_path / "out" / result["bundle"] / "screens/0001.png"
        assert shown.read_bytes().decode().split()[0] == result["id"]
        assert shown.parents[1].stat().st_mode & 0o777 == 0o700
    lost = [json.loads(line) for line in out.splitlines() if '"again": true' in line]
    assert len(lost) == 2
    assert all(one["message"].startswith("The desktop's node or process was lost") for one in lost)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_task_that_waits_for_room_takes_the_place_of_one_that_ends_and_a_lost_node_costs_one_try(
    tmp_path: Path,
) -> None:
    """Two nodes with room for one desktop each, four slots, and Ray's own time until it notices a loss."""
    from ray.cluster_utils import Cluster

    handler = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(ROOT))
        one = A_NODE | {"num_cpus": 1}
        made = Cluster(initialize_head=True, head_node_args=one | {"num_cpus": 0, "include_dashboard": False})
        nodes = [made.add_node(**one) for _ in range(2)]
        try:
            lines = [f"task{number} until {tmp_path / 'gate'}" for number in range(6)]
            tasks = "".join(f"{json.dumps({'id': line.split()[0], 'instruction': line})}\n" for line in lines)
            (tmp_path / "tasks.jsonl").write_text(tasks)
            with fleet_on(made, tmp_path) as process:
                wait_until(lambda: len(runs_of(tmp_path)) == 2, "both nodes are busy", 120)
                made.remove_node(nodes[0], allow_graceful=False)
                wait_until(lambda: len(runs_of(tmp_path)) == 1, "the run of the lost node has ended")
                (tmp_path / "gate").touch()
                out, _ = process.communicate(timeout=500)
        finally:
            made.shutdown()
            signal.signal(signal.SIGTERM, handler)
    assert process.returncode == 0, out[-3000:]
    assert all(isinstance(json.loads(line), dict) for line in out.splitlines())
    results = results_in(tmp_path)
    assert {result["outcome"] for result in results} == {"done"}
    assert sorted(result["tries"] for result in results) == [1, 1, 1, 1, 1, 2]
