"""Exports for others: workers of a grid, several machines."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from stubs.exports import exported, files, options_for, run_plan, shell_words

# Environments.


def environment(text: str) -> dict[str, str]:
    """A .env file's values."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_the_grid_worker_has_the_servers_context_and_one_thread(capsys: pytest.CaptureFixture[str]) -> None:
    values = environment(exported(capsys, "grid", "--gpu", "L4", "--port", "8123", "--name-as", "gui-model"))
    plan = json.loads(run_plan(capsys, "--gpu", "L4"))
    assert values == {
        "GRID_API_KEY": "",
        "OPENAI_API_KEY": "",
        "BACKEND_TYPE": "openai",
        "OPENAI_URL": "http://127.0.0.1:8123/v1",
        "MODEL_NAME": "gui-model",
        "GRID_MAX_CONTEXT_LENGTH": str(plan["limits"]["context"]),
        "GRID_MAX_LENGTH": "4096",
        "GRID_MAX_THREADS": "1",
    }


def test_the_grid_worker_has_more_threads_only_where_the_plan_is_for_many_and_has_slots(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def threads(*options: str) -> str:
        return environment(exported(capsys, "grid", "--gpu", "L40S", *options))["GRID_MAX_THREADS"]

    assert threads("--preset", "throughput", "--set", "max_num_seqs=6") == "6"
    assert threads("--preset", "throughput", "--set", "max_num_seqs=1") == "1"
    assert int(threads("--preset", "throughput")) > 1
    assert threads("--set", "max_num_seqs=6") == "1"


# Several machines.


def test_each_machine_has_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("multi-node", "--gpu", "RTX 3090", "--gpus", "2", "--nodes", "2", "--model", "MAI-UI-32B")
    found = files(capsys, *options)
    assert list(found) == ["node-0.sh", "node-1.sh", "ray-head.sh", "ray-worker.sh", "ray-serve.sh"]
    head, worker = shell_words(found["node-0.sh"]), shell_words(found["node-1.sh"])
    for words, rank in ((head, "0"), (worker, "1")):
        assert words[:3] == ["vllm", "serve", "Tongyi-MAI/MAI-UI-32B"]
        for flag, value in (
            ("--tensor-parallel-size", "2"),
            ("--pipeline-parallel-size", "2"),
            ("--nnodes", "2"),
            ("--node-rank", rank),
            ("--master-addr", "$HEAD_ADDRESS"),
        ):
            assert words[words.index(flag) + 1] == value
    assert "--headless" in worker
    assert "--headless" not in head
    assert head[head.index("--host") + 1] == "127.0.0.1"
    assert "--api-server-count" not in worker, "vLLM refuses it with --headless"
    guard = {"--middleware", "mai_gate.Gate"}
    assert set(head) - set(worker) <= {"--host", "127.0.0.1", "--port", "8000", "--api-server-count", "0"} | guard
    assert ("class Gate" in found["node-0.sh"], "class Gate" in found["node-1.sh"]) == (True, False)
    assert "was NOT run on several machines" in found["node-0.sh"]
    assert "VLLM_API_KEY" in found["node-0.sh"]
    assert "export VLLM_API_KEY" not in found["node-1.sh"]


def test_ray_starts_a_cluster_first_and_serves_on_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = files(capsys, "multi-node", "--gpu", "H100", "--gpus", "8", "--nodes", "3", "--model", "MAI-UI-32B")
    assert shell_words(found["ray-head.sh"])[:3] == ["ray", "start", "--head"]
    assert shell_words(found["ray-worker.sh"])[:3] == ["ray", "start", "--address=$HEAD_ADDRESS:6379"]
    serve = shell_words(found["ray-serve.sh"])
    assert serve[serve.index("--distributed-executor-backend") + 1] == "ray"
    assert "--nnodes" not in serve, "vLLM takes it with its own processes only"
    assert "must show 24 GPUs" in found["ray-serve.sh"]
    assert "node-2.sh" in found


def test_a_model_that_fits_on_one_machine_is_better_served_there_and_the_file_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = files(capsys, "multi-node", "--gpu", "L40S", "--gpus", "4", "--nodes", "2", "--model", "MAI-UI-8B")
    assert "This model fits on ONE of these machines." in small["node-0.sh"]
    large = files(capsys, "multi-node", "--gpu", "RTX 3090", "--gpus", "1", "--nodes", "4", "--model", "MAI-UI-32B")
    assert "fits on ONE" not in large["node-0.sh"]


def test_cards_that_do_not_divide_the_heads_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    words = shell_words(files(capsys, "multi-node", "--gpu", "H100", "--gpus", "6", "--nodes", "2")["node-0.sh"])
    assert words[words.index("--tensor-parallel-size") + 1] == "4"


@pytest.mark.parametrize("file", ["node-0.sh", "node-1.sh", "ray-head.sh", "ray-worker.sh", "ray-serve.sh"])
def test_each_script_runs_its_command_with_the_addresses_it_is_given(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: str
) -> None:
    text = files(capsys, *options_for("multi-node"))[file]
    script = tmp_path / file
    script.write_text(text)
    for name in ("vllm", "ray"):
        program = tmp_path / name
        program.write_text('#!/bin/sh\nprintf \'%s\\n\' "${0##*/}" "$@" "host=$VLLM_HOST_IP"\n')
        program.chmod(0o755)
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HEAD_ADDRESS": "10.0.0.1",
        "VLLM_API_KEY": "k",
        "HOME": str(tmp_path),
    }
    bare = subprocess.run(["bash", script], capture_output=True, text=True, env=environ)
    assert bare.returncode != 0
    assert "OWN_ADDRESS" in bare.stderr
    done = subprocess.run(["bash", script], capture_output=True, text=True, env={**environ, "OWN_ADDRESS": "10.0.0.2"})
    words = done.stdout.splitlines()
    assert words[-1] == "host=10.0.0.2"
    assert words[:-1] == [
        word.replace("$HEAD_ADDRESS", "10.0.0.1").replace("$OWN_ADDRESS", "10.0.0.2") for word in shell_words(text)
    ]
