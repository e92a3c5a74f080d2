"""The whole controller with a real vLLM on the processor and a tiny model: the command line, as a person uses it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.real_vllm, pytest.mark.timeout(400)]

#: Room for the KV cache that every start here gets: the machine has little.
SMALL = ["--set", "kv_cache_memory_bytes=268435456"]


class Machine:
    """A folder for the controller's state, and its command line."""

    def __init__(self, folder: Path, python: Path, model: Path, environ: dict[str, str]) -> None:
        self.folder = folder
        self.model = model
        self.environ = {
            **os.environ,
            **environ,
            "OMP_THREAD_LIMIT": "1",  # a person's: with it, vLLM's attention on the processor hangs for ever
            "MAI_SERVER_BEAT_SECONDS": "3600",  # heartbeats would be among the requests that are counted here
            "MAI_SERVER_STATE": str(folder),
            "MAI_SERVER_VLLM_PYTHON": str(python),
            "MAI_AGENT_CONFIG": str(folder / "config.toml"),
        }
        (folder / "config.toml").write_text("")

    def run(self, *arguments: str, seconds: float = 180) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "serverctl", *arguments],
            env=self.environ, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def up(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self.run("up", "--cpu", "--model", str(self.model), *SMALL, "--json", *arguments)

    def status(self) -> dict[str, Any]:
        document = json.loads(self.run("status", "--json").stdout)
        assert isinstance(document, dict)
        return document

    def wait_for(self, phase: str, attempt: int = 0, seconds: float = 180) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            status = self.status()
            if status["phase"] == phase and status["attempt"] >= attempt:
                return status
            time.sleep(1)  # each look starts a program, which takes time from what is waited for
        raise AssertionError(f"not {phase}: {status}")

    def processes(self) -> list[psutil.Process]:
        """Everything that carries a mark of a server of this folder, and their supervisors."""
        found = []
        for process in psutil.process_iter():
            try:
                environ = process.environ()
                if environ.get("MAI_SERVER_STATE") == str(self.folder) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def left_over(self) -> list[psutil.Process]:
        """Those of them that have not ended after a time in which all do."""
        end = time.monotonic() + 15
        while (found := self.processes()) and time.monotonic() < end:
            time.sleep(0.1)
        return found


@pytest.fixture(scope="module")
def machine(
    tmp_path_factory: pytest.TempPathFactory, vllm_python: Path, tiny_model: Path, vllm_environ: dict[str, str]
) -> Iterator[Machine]:
    """A machine on which the agent starts the server, for the test of that and the one that kills its controller."""
    made = Machine(tmp_path_factory.mktemp("machine"), vllm_python, tiny_model, vllm_environ)
    yield made
    made.run("down", "--all")
    for process in made.processes():
        process.kill()


@pytest.fixture(scope="module")
def serving(
    tmp_path_factory: pytest.TempPathFactory, vllm_python: Path, tiny_model: Path, vllm_environ: dict[str, str]
) -> Iterator[Machine]:
    """One server for the tests that only talk to it, and for the one after them that ends it."""
    made = Machine(tmp_path_factory.mktemp("serving"), vllm_python, tiny_model, vllm_environ)
    done = made.up()
    assert done.returncode == 0, done.stderr
    yield made
    made.run("down", "--json")
    assert made.processes() == [], "down left processes behind"


@pytest.fixture(scope="module")
def changing(
    tmp_path_factory: pytest.TempPathFactory, vllm_python: Path, tiny_model: Path, vllm_environ: dict[str, str]
) -> Iterator[Machine]:
    """One server for the tests that restart and kill it, in their order."""
    made = Machine(tmp_path_factory.mktemp("changing"), vllm_python, tiny_model, vllm_environ)
    done = made.up("--set", "max_num_seqs=2")
    assert done.returncode == 0, done.stderr
    yield made
    made.run("down", "--all")
    for process in made.processes():
        process.kill()


def chat(serving: Machine, text: str, image: str | None = None, **extra: Any) -> dict[str, Any]:
    import http.client

    status = serving.status()
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if image:
        content.insert(0, {"type": "image_url", "image_url": {"url": image}})
    port = int(status["endpoint"].split(":")[2].split("/")[0])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    payload = {"model": status["model"], "messages": [{"role": "user", "content": content}], "max_tokens": 8, **extra}
    headers = {"Authorization": f"Bearer {status['api_key']}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", json.dumps(payload), headers)
    response = connection.getresponse()
    document = json.loads(response.read())
    assert response.status == 200, document
    return document


def status_of(port: int, key: str, payload: dict[str, Any]) -> int | None:
    """The status that a client is answered with; None where nobody listens any more."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(payload), headers)
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        return None
    return response.status


def screenshot(width: int = 1280, height: int = 720, shade: int = 40) -> str:
    import base64
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (width, height), (shade, 90, 200)).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


#: Asks each route of a server without its key, and one with a picture of another server; prints what answered.
STRANGER = """
import http.client, json, os, re, sys
import encodings.idna
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
port, picture, routes = int(sys.argv[1]), sys.argv[2], json.load(sys.stdin)
chat = {"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": picture}}]}]}
answers = {}
for path, method in routes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, re.sub("{.*?}", "x", path), json.dumps(chat), {"Content-Type": "application/json"})
    answers[f"{method} {path}"] = connection.getresponse().status
print(json.dumps(answers))
"""


def test_another_account_gets_nothing_of_any_route_without_the_key(serving: Machine) -> None:
    lines = serving.run("logs", "-n", "5000").stdout.splitlines()
    listed = [re.search(r"Route: (/\S*), Methods: (.+)$", line) for line in lines]
    routes = [(found[1], method) for found in listed if found for method in found[2].split(", ")]
    paths = {path for path, _ in routes}
    assert {"/tokenize", "/invocations", "/v1/chat/completions", "/health"} <= paths, "the log lists its routes"
    port = int(serving.status()["endpoint"].split(":")[2].split("/")[0])
    asked = [*routes, ("/unknown", "POST"), ("/mai-server/inside", "GET"), ("/v1/chat/completions", "OPTIONS")]
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, str(port), "http://127.0.0.1:9/x.png"], input=json.dumps(asked),
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    answers = json.loads(done.stdout or "{}")
    assert len(answers) == len(set(asked)), done.stderr
    opened = {route for route, status in answers.items() if status != 401}
    assert opened == {"GET /health", "GET /metrics"} & set(answers)


def test_a_picture_of_an_address_is_not_fetched_also_with_the_key(serving: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.5)
        status = serving.status()
        port, host = int(status["endpoint"].split(":")[2].split("/")[0]), other.getsockname()
        picture = {"type": "image_url", "image_url": {"url": f"http://127.0.0.1:{host[1]}/x.png"}}
        payload = {"model": status["model"], "messages": [{"role": "user", "content": [picture]}], "max_tokens": 1}
        assert status_of(port, status["api_key"], payload) == 400
        with pytest.raises(TimeoutError):
            other.accept()


def test_the_prediction_agrees_with_what_vllm_prints(serving: Machine) -> None:
    status = serving.status()
    assert status["phase"] == "ready"
    report, plan = status["report"], status["plan"]
    assert report["kv_tokens"] == pytest.approx(plan["expected_kv_tokens"], rel=0.02)
    assert report["concurrency"] == pytest.approx(plan["expected_concurrency"], rel=0.02)
    assert status["limits"]["context"] == report["max_model_len"]


def test_a_screenshot_costs_the_tokens_that_the_formula_says(serving: Machine) -> None:
    from serverctl.models.find import find_model

    edge = serving.status()["limits"]["max_pixels"]
    alone = chat(serving, "Say something.")["usage"]["prompt_tokens"]
    seen = chat(serving, "Say something.", screenshot(1920, 1080))["usage"]["prompt_tokens"]
    frame = 2  # vision start and end
    assert seen - alone == find_model(str(serving.model)).image_tokens(1920, 1080, edge) + frame


def test_a_repeated_screenshot_comes_from_the_caches_and_metrics_say_so(serving: Machine) -> None:
    picture = screenshot(shade=77)
    before = serving.status()["metrics"]
    chat(serving, "What is there?", picture)
    again = chat(serving, "What is there?", picture)
    after = serving.status()["metrics"]
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 500
    assert after["image_hits"] - before["image_hits"] == 1
    assert after["prefix_hits"] - before["prefix_hits"] >= 500
    assert after["finished"] - before["finished"] == 2


def test_bench_measures_and_tells_warm_from_cold(serving: Machine) -> None:
    done = serving.run("bench", "--requests", "3", "--size", "640x480", "--max-tokens", "4", "--json")
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert '"ttft' in text
    assert '"warm"' in text
    assert '"cold"' in text


def test_a_server_of_ours_that_is_named_by_its_address_is_asked_with_its_own_key(serving: Machine) -> None:
    small = ("--size", "64x64", "--requests", "1", "--max-tokens", "4", "--text-tokens", "20", "--cache", "cold")
    done = serving.run("bench", "--endpoint", serving.status()["endpoint"], *small)
    assert done.returncode == 0, done.stderr
    refused = serving.run("bench", "--endpoint", serving.status()["endpoint"], "--api-key", "another", *small)
    assert (refused.returncode, "refuses the key" in refused.stderr) == (3, True)


def test_tune_names_the_one_slot_that_eight_clients_wait_for_also_after_they_are_gone(serving: Machine) -> None:
    # Answers of this length take most of the time; with short ones, prompts would be named on a busy machine.
    done = serving.run(
        "bench", "--size", "64x64", "--requests", "12", "--concurrency", "8", "--max-tokens", "64",
        "--text-tokens", "100", "--cache", "cold",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(serving.run("tune", "--json").stdout)
    assert document["metrics"]["kv_tokens"] == serving.status()["report"]["kv_tokens"]
    assert document["context"] == serving.status()["limits"]["context"]
    assert document["bottleneck"]["kind"] == "slots", document
    assert 2 <= document["would_apply"].get("max_num_seqs", 0) <= 9, document
    assert document["window"]["mean_request_s"]["queue"] > 0


def test_batch_answers_every_line_and_goes_on_where_it_was(serving: Machine, tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    lines = [{"id": f"r{number}", "image": screenshot(320, 320, number), "instruction": "Look."} for number in range(4)]
    requests.write_text("".join(json.dumps({**line, "max_tokens": 3}) + "\n" for line in lines))
    out = tmp_path / "answers.jsonl"
    first = serving.run("batch", str(requests), "--out", str(out))
    assert first.returncode == 0, first.stderr
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(answer["id"] for answer in answers if answer["ok"]) == ["r0", "r1", "r2", "r3"]
    out.write_text("\n".join(out.read_text().splitlines()[:2]) + "\n")
    before = serving.status()["metrics"]["finished"]
    assert serving.run("batch", str(requests), "--out", str(out)).returncode == 0
    assert len(out.read_text().splitlines()) == 4
    assert serving.status()["metrics"]["finished"] - before == 2, "only the missing ones were asked again"


def test_a_server_that_is_ended_finishes_what_it_has_and_asks_others_to_come_again(serving: Machine) -> None:
    """vLLM alone answers with status 500 from the signal until it is gone."""
    status = serving.status()
    port, key = int(status["endpoint"].split(":")[2].split("/")[0]), status["api_key"]

    asked = {"model": status["model"], "messages": [{"role": "user", "content": "Count."}], "ignore_eos": True}

    with ThreadPoolExecutor(4) as pool:
        down = pool.submit(serving.run, "down", "--json")

        def go_on(tokens: int) -> list[int | None]:
            came: list[int | None] = []
            while not down.done():
                came.append(status_of(port, key, {**asked, "max_tokens": tokens}))
                time.sleep(0.02)
            return came

        clients = [pool.submit(go_on, tokens) for tokens in (10, 10, 1)]
    assert json.loads(down.result().stdout)["stopped"] == ["default"]
    in_order = [200, 503, None]  # what was begun is finished; then clients are sent away; then nobody listens
    for came in (client.result() for client in clients):
        assert set(came) <= set(in_order)
        assert came == sorted(came, key=in_order.index)
        assert came[0] == 200
    assert any(503 in client.result() for client in clients)


def test_no_client_of_a_real_server_notices_other_settings(changing: Machine) -> None:
    status = changing.status()
    port, key = int(status["endpoint"].split(":")[2].split("/")[0]), status["api_key"]
    asked = {"model": status["model"], "messages": [{"role": "user", "content": "Count."}], "max_tokens": 4}
    with ThreadPoolExecutor(4) as pool:
        change = pool.submit(changing.run, "up", "--restart", "--set", "max_num_seqs=4", "--json")

        def go_on() -> list[int | None]:
            came = [status_of(port, key, asked)]
            while not change.done():  # one of these, or the one before, is held while the server starts again
                came.append(status_of(port, key, asked))
            return [*came, status_of(port, key, asked)]

        clients = [pool.submit(go_on) for _ in range(3)]
        assert change.result().returncode == 0, change.result().stderr
        for client in clients:
            assert set(client.result()) == {200}
    after = changing.status()
    assert (after["endpoint"], after["api_key"], after["attempt"]) == (status["endpoint"], key, 2)
    assert after["plan"]["settings"]["max_num_seqs"] == 4


def test_a_killed_api_server_is_started_again_and_its_engine_does_not_linger(changing: Machine) -> None:
    first = changing.status()
    group = {process.pid for process in changing.processes()} - {first["supervisor_pid"]}
    os.kill(first["server_pid"], signal.SIGKILL)
    again = changing.wait_for("ready", first["attempt"] + 1)
    assert again["endpoint"] == first["endpoint"], "clients go on with the same address"
    assert again["api_key"] == first["api_key"], "and with the same key"
    assert not group & {process.pid for process in changing.processes()}, "nothing of the first start is left"
    # The engine core this time: the API server then ends with status 0, which is a failure all the same.
    below = psutil.Process(again["server_pid"]).children(recursive=True)
    engine = next(process for process in below if "EngineCore" in process.name() + " ".join(process.cmdline()))
    engine.kill()
    last = changing.wait_for("failed")
    assert "twice within ten minutes" in json.dumps(last["failure"])
    assert changing.left_over() == []


def test_the_agent_starts_the_server_and_its_bundle_agrees_with_the_servers_metrics(machine: Machine) -> None:
    runs = machine.folder / "runs"
    config = machine.folder / "config.toml"
    config.write_text(  # random weights speak until there is no more room
        "[server]\nkv_cache_memory_bytes = 268435456\n"
        """flags = ["--override-generation-config", '{"max_new_tokens": 64}']\n"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "agent", "--engine", "vllm", "--model", str(machine.model), "--sandbox",
         "--max-steps", "3", "--runs", str(runs), "--no-thinking", "open settings"],
        env={key: value for key, value in machine.environ.items() if key != "DISPLAY"},
        capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    bundle = next(runs.iterdir())
    document = json.loads((bundle / "run.json").read_text())
    status = machine.status()
    metrics = status["metrics"]
    steps = [json.loads(line) for line in (bundle / "steps.jsonl").read_text().splitlines()]
    asked = sum(len(step["answers"]) for step in steps)
    probe = 1  # the readiness probe: one token about a small picture
    assert document["engine"] == "vllm"
    assert metrics["finished"] == asked + probe
    assert metrics["prefix_hits"] == document["tokens"]["cached"]
    assert metrics["generation_tokens"] == document["tokens"]["completion"] + 1
    assert 0 < metrics["prompt_tokens"] - document["tokens"]["prompt"] < 200, "the rest is the probe's prompt"
    for step in steps:
        assert step["image"]["tokens"] <= status["limits"]["max_pixels"] // 32**2


def test_a_killed_controller_takes_the_server_with_it(machine: Machine) -> None:
    status = machine.status()
    os.kill(status["supervisor_pid"], signal.SIGKILL)
    assert machine.left_over() == []
    assert machine.status()["phase"] == "failed"
    assert "killed" in machine.status()["message"]
