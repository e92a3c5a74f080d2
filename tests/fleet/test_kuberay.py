"""The manifest of a fleet for Kubernetes: what its pods run is the fleet that was asked for."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.commands import fleet
from agent.fleet.cluster import _NEEDS
from foundation.errors import UsageError


def manifest(path: Path, capsys: pytest.CaptureFixture[str], *words: str, lines: str | None = None) -> list[Any]:
    tasks = path / "Tasks of_May.jsonl"
    task = {"id": "a", "instruction": "type 'it''s $HOME \"é\"'", "max_steps": 5}
    tasks.write_text(lines or f"{json.dumps(task)}\n{json.dumps({**task, 'id': 'b'}, ensure_ascii=False)}\n")
    assert fleet.main([str(tasks), "--kuberay", "mai-agent:1", *words]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def test_its_command_is_the_fleet_with_the_options_that_were_given(tmp_path, capsys) -> None:
    words = ["--engine=endpoint", "--endpoint=http://vllm:8000", "--max-steps=9", "--copy-to=s3://runs/my fleet"]
    tasks, _, job = manifest(tmp_path, capsys, *words, "--parallel=6", "--again=failed")
    assert job["spec"]["entrypoint"] == "sh /tasks/fleet.sh"
    first, command = tasks["data"]["fleet.sh"].splitlines()
    assert first == "#!/bin/sh"
    assert shlex.split(command)[:4] == ["exec", "mai-agent", "fleet", "/tasks/tasks.jsonl"]
    assert {*words, "--parallel=6", "--again=failed", "--out", "/results"} < set(shlex.split(command))
    assert tasks["data"]["tasks.jsonl"] == (tmp_path / "Tasks of_May.jsonl").read_text()
    assert job["metadata"]["name"] == tasks["metadata"]["name"] == "mai-agent-tasks-of-may"


@pytest.mark.parametrize(("parallel", "pods"), [(1, 1), (4, 1), (5, 2), (32, 8)])
def test_its_workers_have_room_for_all_desktops_and_its_head_for_none(
    parallel: int, pods: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, job = manifest(tmp_path, capsys, "--engine=literal", f"--parallel={parallel}")
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    (group,) = cluster["workerGroupSpecs"]
    limits = group["template"]["spec"]["containers"][0]["resources"]["limits"]
    cores, memory = int(limits["cpu"]), int(limits["memory"].removesuffix("Gi")) * 2**30
    assert group["replicas"] == pods
    assert cores * pods >= parallel * _NEEDS["num_cpus"]
    assert memory * pods >= parallel * _NEEDS["memory"]


def test_a_server_that_the_pods_cannot_reach_is_refused(tmp_path, capsys) -> None:
    loopback = '{"id": "a", "instruction": "x", "engine": "endpoint", "endpoint": "127.0.0.1:8000"}'
    for words, lines in (([], None), (["--endpoint=localhost:8000"], None), (["--engine=literal"], loopback)):
        with pytest.raises(UsageError, match=r"does not start a server|is the pod itself"):
            manifest(tmp_path, capsys, *words, lines=lines)


def test_another_cluster_beside_it_is_refused(tmp_path, capsys) -> None:
    with pytest.raises(UsageError, match="Leave out --ray"):
        manifest(tmp_path, capsys, "--engine=literal", "--ray=127.0.0.1:6379")


def test_tasks_that_are_too_many_for_a_configmap_are_refused(tmp_path, capsys) -> None:
    lines = "".join(f'{{"id": "{at}", "instruction": "{"x" * 90}"}}\n' for at in range(9000))
    with pytest.raises(UsageError, match="too large for a ConfigMap"):
        manifest(tmp_path, capsys, "--engine=literal", lines=lines)
