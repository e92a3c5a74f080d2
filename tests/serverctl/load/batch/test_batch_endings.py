"""Batches that are stopped or killed, and those without a server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from batches import ROOT, answers, ask_for, ok_ids, picture, run, write
from stubs.token_server import KEY, Hang, TokenServer, Traits

from foundation.errors import ExitStatus
from foundation.processes import marked_processes
from serverctl.commands.load.batch import main

pytestmark = pytest.mark.slow

# Stopped and killed.


class Running:
    """A real `mai-server batch`."""

    def __init__(self, *arguments: str, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "serverctl", "batch", *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), "MAI_AGENT_API_KEY": KEY, **environ},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def wait_for(self, happened: Any) -> None:
        """Wait until something has happened; the test's own limit ends what never does."""
        while not happened():
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.01)

    def end(self, number: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        assert "Traceback" not in err
        return self.process.returncode, err


def test_ctrl_c_finishes_what_is_under_way_and_says_how_to_go_on(tmp_path: Path, out: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(200))
    with TokenServer(traits=Traits(ttft_s=0.2)) as server:
        with Running(str(path), "--endpoint", server.url, "--concurrency", "4", "--key", KEY) as running:
            running.wait_for(lambda: server.seen.finished >= 8)
            status, err = running.end(signal.SIGINT)
        assert status == ExitStatus.STOPPED
        assert KEY not in err
        sent = len(server.chats)
        assert len(ok_ids(out)) == sent < 200  # what was under way was finished
        assert f"Stopped: {sent} of 200" in err
        assert "The same command goes on." in err
        server.traits.ttft_s = 0
        assert run(server, path) == ExitStatus.DONE
        assert len(server.chats) == 200
    assert len(ok_ids(out)) == len(answers(out)) == 200


def test_a_second_ctrl_c_gives_up_what_is_under_way(tmp_path: Path, out: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(20))
    server = TokenServer(lambda number, _b: Hang() if number >= 2 else None)
    with server, Running(str(path), "--endpoint", server.url, "--concurrency", "2") as running:
        running.wait_for(lambda: server.seen.in_flight == 2 and server.seen.finished == 2)
        running.process.send_signal(signal.SIGINT)
        assert running.process.stderr is not None
        while "Stopping" not in running.process.stderr.readline():
            pass
        status, err = running.end(signal.SIGINT)
    assert status == ExitStatus.STOPPED
    assert "2 of 20" in err
    assert len(answers(out)) == 2


def test_a_closed_terminal_ends_a_batch_unless_nohup_says_otherwise(tmp_path: Path) -> None:
    for number, ignored in enumerate((False, True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = write(folder / "requests.jsonl", *ask_for(40))
        with TokenServer(traits=Traits(ttft_s=0.05)) as server:
            before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
            try:
                running = Running(str(path), "--endpoint", server.url, "--concurrency", "2")
            finally:
                signal.signal(signal.SIGHUP, before)
            with running:
                running.wait_for(lambda: server.seen.finished >= 2)
                status, _ = running.end(signal.SIGHUP)
        assert status == (ExitStatus.DONE if ignored else ExitStatus.STOPPED)


def test_a_batch_that_is_killed_loses_nothing_that_was_answered(tmp_path: Path, out: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(60))
    with TokenServer(traits=Traits(ttft_s=0.05)) as server:
        with Running(str(path), "--endpoint", server.url, "--concurrency", "5") as running:
            running.wait_for(lambda: out.exists() and out.read_bytes().count(b"\n") >= 10)
            running.process.kill()
            running.process.wait()
        with out.open("ab") as file:
            file.write(b'{"id": "r59", "ok": tr')  # and it was just writing
        kept = {line for line in out.read_text().splitlines() if line.endswith("}")}
        before = len(server.chats)
        assert run(server, path) == ExitStatus.DONE
        assert len(server.chats) - before == 60 - len(kept)
    assert ok_ids(out) == sorted(f"r{number}" for number in range(60))
    assert kept <= set(out.read_text().splitlines())


# Offline.


def test_a_batch_without_a_server_starts_one_for_itself_and_stops_it(
    requests: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []

    @contextmanager
    def served(preset: str, model: str, _tell: Any, **own: Any) -> Iterator[Any]:
        with TokenServer(traits=Traits(ttft_s=0.1)) as server:
            yield SimpleNamespace(base_url=f"{server.url}/v1", api_key=KEY, model="m")
            started.append((preset, model, own, server.seen.most_in_flight))

    monkeypatch.setattr("serverctl.endpoint.served", served)
    engine = {"max_model_len": 2048, "enforce_eager": True, "limit_mm_per_prompt": {"image": 1}, "dtype": "half"}
    line = [
        str(requests),
        "--offline",
        "--python",
        "py",
        "--model",
        "m",
        "--chunk",
        "2",
        "--engine",
        json.dumps(engine),
    ]
    assert main(line) == ExitStatus.DONE
    assert len(ok_ids(out)) == 5
    ((preset, model, own, at_once),) = started
    assert (preset, model, own["vllm_python"], at_once) == ("throughput", "m", "py", 2)
    assert own["idle_seconds"] is not None, "it ends by itself where this program is killed"
    assert own["flags"] == [
        "--max-model-len", "2048", "--enforce-eager", "--limit-mm-per-prompt", '{"image": 1}', "--dtype", "half",
    ]  # fmt: skip


@pytest.mark.real_vllm
@pytest.mark.timeout(300)
def test_a_real_vllm_answers_a_batch_of_its_own(
    tmp_path: Path, out: Path, vllm_python: Path, tiny_model: Path, vllm_environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in vllm_environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path / "state"))
    picture(tmp_path / "a.png", 320, 256)
    path = write(
        tmp_path / "requests.jsonl",
        *ask_for(3, image="a.png", max_tokens=8),
        {"id": "exact", "instruction": "a number", "regex": "[0-9]{3}"},
        {"id": "long", "instruction": "far too long " * 4000, "max_tokens": 8},
    )
    engine = {
        "max_model_len": 2048, "max_num_seqs": 2, "enforce_eager": True, "kv_cache_memory_bytes": 1 << 27,
        "limit_mm_per_prompt": {"image": 1, "video": 0},
    }  # fmt: skip
    arguments = ["--python", str(vllm_python), "--model", str(tiny_model), "--engine", json.dumps(engine)]
    status = main([str(path), "--offline", "--max-pixels", "131072", "--family", "qwen3-vl", *arguments])
    assert status == ExitStatus.NOT_DONE
    by_id = {line["id"]: line for line in answers(out)}
    assert by_id["long"]["error"]["kind"] == "context_too_long"
    assert by_id["exact"]["text"].isdigit()
    for number in range(3):
        usage = by_id[f"r{number}"]["usage"]
        assert usage["completion_tokens"] == 8
        assert usage["prompt_tokens"] > 10 * 8  # 320x256 are 10 x 8 tokens, and some text
    assert marked_processes("MAI_SERVER_STATE", str(tmp_path / "state")) == [], "nothing of the server is left"
