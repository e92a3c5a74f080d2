"""Batches that are stopped or killed, and those without a server."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from batches import ROOT, answers, ask_for, ok_ids, run, write
from stubs.token_server import KEY, Hang, TokenServer, Traits

from foundation.errors import ExitStatus

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
