"""Batches that are stopped or killed, and those without a server."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from batches import ROOT, STUB_VLLM, answers, ask_for, ok_ids, picture, run, write
from stubs.token_server import KEY, Hang, TokenServer, Traits

from foundation.errors import EnvironmentLacksError, ExitStatus
from serverctl.commands.batch import main
from serverctl.load.batch import prepare

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
        with Running(str(path), "--endpoint", server.url, "--concurrency", "4") as running:
            running.wait_for(lambda: server.seen.finished >= 8)
            status, err = running.end(signal.SIGINT)
        assert status == ExitStatus.STOPPED
        sent = len(server.chats)
        assert len(ok_ids(out)) == sent < 200  # what was under way was finished
        assert f"Stopped: {sent} of 200" in err
        assert f"To go on: mai-server batch {path}" in err
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


def offline(requests: Path, *more: str) -> list[str]:
    return [str(requests), "--offline", "--python", sys.executable, "--model", "m", *more]


@pytest.fixture
def stub_vllm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A vLLM that is none, and the file with the ids of its processes."""
    pids = tmp_path / "pids"
    monkeypatch.setenv("PYTHONPATH", str(STUB_VLLM))
    monkeypatch.setenv("STUB_VLLM_PIDS", str(pids))
    return pids


def gone(pids: Path) -> bool:
    """Whether all processes of the engine have ended, or will within moments."""
    processes = [psutil.Process(int(pid)) for pid in pids.read_text().split() if psutil.pid_exists(int(pid))]
    living = [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    return not psutil.wait_procs(living, timeout=20)[1]


def test_the_engine_answers_in_chunks_without_a_server(tmp_path: Path, out: Path, stub_vllm: Path) -> None:
    picture(tmp_path / "a.png")
    lines = [
        *ask_for(9),
        {"id": "i", "instruction": "x", "image": "a.png"},
        {"id": "e", "instruction": "x", "regex": "[0-9]"},
    ]
    path = write(tmp_path / "requests.jsonl", *lines)
    assert main(offline(path, "--chunk", "4")) == ExitStatus.DONE
    by_id = {line["id"]: line for line in answers(out)}
    assert set(by_id) == {line["id"] for line in lines}
    assert by_id["e"]["text"] == "[0-9]"
    assert int(by_id["i"]["text"].split()[0]) > len("data:image/png;base64,")
    assert by_id["r0"]["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "cached_tokens": 5}
    log = (tmp_path / "requests.engine.log").read_text()
    assert "and so do its workers" in log
    assert max(int(line.split()[1]) for line in log.splitlines() if line.startswith("CHUNK")) <= 4
    assert gone(stub_vllm)


def test_what_the_engine_refuses_fails_alone(tmp_path: Path, out: Path, stub_vllm: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(7), {"id": "long", "instruction": "refuse me"})
    assert main(offline(path)) == ExitStatus.NOT_DONE
    (failed,) = [line for line in answers(out) if not line["ok"]]
    assert failed["id"] == "long"
    assert failed["error"]["kind"] == "context_too_long"
    assert len(ok_ids(out)) == 7


def test_an_engine_that_dies_keeps_what_was_answered_and_the_next_one_goes_on(
    tmp_path: Path, out: Path, stub_vllm: Path
) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(8), {"id": "bad", "instruction": "crash now"}, *ask_for(0))
    with pytest.raises(EnvironmentLacksError, match="The engine died") as raised:
        main(offline(path, "--chunk", "2"))
    assert "engine.log" in raised.value.remedy
    assert len(answers(out)) == len(ok_ids(out)) == 8
    assert gone(stub_vllm)
    write(path, *ask_for(8), {"id": "bad", "instruction": "go on"})
    assert main(offline(path)) == ExitStatus.DONE
    assert len(answers(out)) == 9


def test_an_engine_that_does_not_start_says_why(requests: Path, stub_vllm: Path) -> None:
    with pytest.raises(EnvironmentLacksError, match="Invalid repository ID"):
        main([*offline(requests)[:-1], "missing"])
    with pytest.raises(EnvironmentLacksError, match="cannot be started"):
        main([str(requests), "--offline", "--python", "/no/such/python", "--model", "m"])


def test_ctrl_c_ends_the_engine_with_all_its_processes(tmp_path: Path, out: Path, stub_vllm: Path) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(4), {"id": "bad", "instruction": "hang here"})
    with Running(*offline(path, "--chunk", "2"), PYTHONPATH=f"{ROOT}:{STUB_VLLM}") as running:
        running.wait_for(lambda: out.exists() and out.read_bytes().count(b"\n") == 4)
        status, err = running.end(signal.SIGINT)
    assert status == ExitStatus.STOPPED
    assert "4 of 5" in err
    assert gone(stub_vllm)


@pytest.mark.parametrize("last", ["hang here", "an answer"])  # killed while the engine works, and while it waits
def test_an_engine_whose_batch_is_killed_ends_too(tmp_path: Path, out: Path, stub_vllm: Path, last: str) -> None:
    path = write(tmp_path / "requests.jsonl", *ask_for(2), {"id": "bad", "instruction": last})
    with Running(*offline(path, "--chunk", "1"), PYTHONPATH=f"{ROOT}:{STUB_VLLM}") as running:
        running.wait_for(lambda: out.exists() and out.read_bytes().count(b"\n") >= 2)
        running.process.kill()
        assert gone(stub_vllm)


def test_the_real_engine_answers_a_batch(
    tmp_path: Path, out: Path, vllm_python: Path, tiny_model: Path, vllm_environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in vllm_environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OMP_THREAD_LIMIT", "1")  # a person's: with it, vLLM's attention on the processor hangs
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
    assert status == ExitStatus.NOT_DONE, (tmp_path / "requests.engine.log").read_text()
    by_id = {line["id"]: line for line in answers(out)}
    assert by_id["long"]["error"]["kind"] == "context_too_long"
    assert by_id["exact"]["text"].isdigit()
    for number in range(3):
        usage = by_id[f"r{number}"]["usage"]
        assert usage["completion_tokens"] == 8
        assert usage["prompt_tokens"] > 10 * 8  # 320x256 are 10 x 8 tokens, and some text


def test_the_offline_script_needs_nothing_of_this_project(tmp_path: Path) -> None:
    script = ROOT / "serverctl" / "load" / "batch" / "engine.py"
    line = json.dumps({"id": "1", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "temperature": 0})
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), "--engine", '{"model": "m"}'], cwd=tmp_path, text=True,
            env={"PYTHONPATH": str(STUB_VLLM), "PATH": os.environ["PATH"]}, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    try:
        printed, _ = process.communicate(f"{line}\n")
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the engine's worker, which this script leaves to who started it
    assert process.returncode == 0
    ready, answer = map(json.loads, printed.splitlines())
    assert ready == {"ready": {"vllm": "0.0-stub"}}
    assert (answer["id"], answer["ok"], answer["finish_reason"]) == ("1", True, "stop")


async def test_nobody_waits_for_an_engine_that_has_ended(tmp_path: Path) -> None:
    from serverctl.load.batch.offline import OfflineAsker
    from serverctl.load.client import ServerGoneError

    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    async with OfflineAsker(python, {"model": "m"}, tmp_path / "log") as asker:
        request = prepare.Prepared("1", [], 5, 0.0)
        for _ in range(2):
            with pytest.raises(ServerGoneError, match="status 3"):
                await asyncio.wait_for(asker.ask(request), 30)
