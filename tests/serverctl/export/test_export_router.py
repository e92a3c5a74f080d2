"""One address for several servers: what HAProxy and LiteLLM are given."""

import re
import shlex
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from stubs.exports import exported
from stubs.http_stub import HttpStub

from foundation.errors import ExitStatus
from serverctl.cli import main as cli
from serverctl.process.probe import free_port

pytestmark = pytest.mark.slow


class Servers:
    """Two servers that say which one they are, on ports next to each other, and HAProxy before them."""

    def __init__(self, config: Path, port: int, capsys: pytest.CaptureFixture[str]) -> None:
        self.port = port
        self.servers = [self._serve(port + number, f"server {number}") for number in (0, 1)]
        text = exported(
            capsys, "haproxy", "--gpu", "H100", "--gpus", "2", "--preset", "throughput", "--port", str(port)
        )
        config.write_text(text)
        self.checked = subprocess.run(["haproxy", "-c", "-f", str(config)], capture_output=True, text=True)
        self.router = subprocess.Popen(["haproxy", "-db", "-f", str(config)], stderr=subprocess.DEVNULL)

    def _serve(self, port: int, name: str) -> HttpStub:
        return HttpStub(lambda handler: handler.respond(name.encode()), port=port)

    def answer(self, run: str) -> str:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port + 2}/v1/models", headers={"X-Session-Id": run})
        with urllib.request.urlopen(request, timeout=10) as response:
            return str(response.read().decode())

    def end(self, number: int) -> None:
        self.servers[number].close()

    def close(self) -> None:
        self.router.terminate()
        self.router.wait(10)
        for server in self.servers:
            server.close()


def three_free_ports() -> int:
    """The first of three free ports in a row."""
    while True:
        first = free_port()
        with ExitStack() as held:
            try:
                for port in range(first, first + 3):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first


@pytest.fixture
def servers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Servers]:
    found = Servers(tmp_path / "haproxy.cfg", three_free_ports(), capsys)
    yield found
    found.close()


def test_haproxy_keeps_a_run_with_its_server_and_moves_it_when_that_is_gone(servers: Servers) -> None:
    assert servers.checked.returncode == 0, servers.checked.stderr
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            servers.answer("any")
            break
        except OSError:
            time.sleep(0.1)
    runs = [f"run-{number}" for number in range(20)]
    first = {run: servers.answer(run) for run in runs}
    assert set(first.values()) == {"server 0", "server 1"}
    assert all(servers.answer(run) == first[run] for run in runs for _ in range(3))
    servers.end(0)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if {servers.answer(run) for run in runs} == {"server 1"}:
                break
        except OSError:  # not yet seen to be gone
            time.sleep(0.2)
    assert {servers.answer(run) for run in runs} == {"server 1"}


def test_litellm_knows_each_model_by_its_name_and_how_the_servers_share_the_card(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = exported(capsys, "litellm", "--gpu", "L40S", "--model", "MAI-UI-2B", "--beside", "Qwen3-VL-8B-Instruct")
    entries = yaml.safe_load(text)["model_list"]
    assert [entry["model_name"] for entry in entries] == ["MAI-UI-2B", "Qwen3-VL-8B-Instruct"]
    assert [entry["litellm_params"]["api_base"] for entry in entries] == [
        "http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1",
    ]  # fmt: skip
    assert {entry["litellm_params"]["api_key"] for entry in entries} == {"os.environ/VLLM_API_KEY"}
    router = yaml.safe_load(text)["router_settings"]
    assert router["num_retries"] > 0, "a server that is gone must not fail the requests that it was to get"
    assert router["cooldown_time"] > 0
    shares = [float(share) for share in re.findall(r"gpu_memory_utilization=([\d.]+)", text)]
    assert len(shares) == 2
    assert sum(shares) <= 0.92
    assert "--port 8002" in text


@pytest.mark.parametrize(
    ("arguments", "cards"),
    [
        (["--model", "MAI-UI-2B", "--beside", "MAI-UI-8B"], ["1", "0"]),
        (["--preset", "throughput", "--set", "images=4", "--", "--seed", "1"], ["0", "1"]),
    ],
)
def test_what_litellms_file_says_starts_every_server_as_it_was_planned_on_its_own_card(
    arguments: list[str], cards: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = exported(capsys, "litellm", "--gpu", "L4", "--gpus", "2", *arguments)
    bases = [entry["litellm_params"]["api_base"] for entry in yaml.safe_load(text)["model_list"]]
    starts = re.findall(r"^#   CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=(\d) \./(serve-\d+\.sh)$", text, re.M)
    assert starts == [(card, f"serve-{port}.sh") for card, port in zip(cards, (8000, 8001), strict=True)]
    assert bases == ["http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1"]
    for number, made in enumerate(re.findall(r"^#   mai-server export (script .*)$", text, re.M)):
        words = shlex.split(made)
        words[words.index("--out") + 1] = str(tmp_path / "serve.sh")
        assert cli(["export", *words]) == 0
        script = (tmp_path / "serve.sh").read_text()
        assert f"plan_port=800{number}" in script
        assert ("--seed" in script) == ("--seed" in arguments)
        assert ('"image":4' in script) or "--set" not in arguments
        (tmp_path / "serve.sh").unlink()


def test_a_described_card_is_described_again_where_litellms_file_says_how_to_start(
    capsys: pytest.CaptureFixture[str],
) -> None:
    card = ["--gpu", "RTX 99", "--gpu-memory", "47.3", "--gpu-capability", "8.9", "--gpu-bandwidth", "900"]
    text = exported(capsys, "litellm", *card)
    (made,) = re.findall(r"^#   mai-server export script (.*) --model", text, re.M)
    assert shlex.split(made) == card


def test_the_command_that_a_file_names_makes_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["litellm", "--gpu", "L40S", "--model", "MAI-UI-2B", "--beside", "Qwen3-VL-8B-Instruct"]
    text = exported(capsys, *arguments)
    (made_by,) = re.findall(r"^# Made by: mai-server export (.*)$", text, re.MULTILINE)
    assert exported(capsys, *made_by.split()) == text


def test_models_that_do_not_fit_beside_each_other_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["litellm", "--gpu", "T4", "--model", "MAI-UI-2B", "--beside", "MAI-UI-8B"]
    assert cli(["export", *arguments]) == ExitStatus.ENVIRONMENT
    assert "do not fit together" in capsys.readouterr().err
