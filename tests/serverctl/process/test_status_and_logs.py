"""What `status` and `logs` say in each phase, with floods, garbage, damaged files and folders nobody can write."""

import json
import os
import re
import signal
import subprocess
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from stubs.controlled import Machine

from serverctl.commands.servers.status import lines_of
from serverctl.process import logs
from serverctl.process.logs import MOST_BYTES, LogWriter, follow, log_files, tail
from serverctl.process.state import Folder
from serverctl.watch import Watch, has_client_requests

pytestmark = pytest.mark.slow

KEYS = {
    "name", "phase", "stage", "percent", "message", "model", "models", "source", "family", "endpoint", "api_key",
    "vllm", "limits", "supervisor_pid", "server_pid", "started", "ready_after_s", "uptime_s", "attempt", "download",
    "report", "plan", "failure", "events", "heartbeat", "metrics", "log", "gpus", "judged", "judged_window_s",
}  # fmt: skip


def status(machine: Machine, code: int) -> dict[str, Any]:
    done = machine.run("status", "--json")
    assert done.returncode == code, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert set(document) == KEYS
    return document


def test_status_has_the_same_shape_in_every_phase(machine: Machine) -> None:
    nothing = status(machine, 1)
    assert (nothing["phase"], nothing["endpoint"], nothing["api_key"]) == ("stopped", None, "")
    machine.scenario({"before": {"LOADING": [["wait", str(machine.folder / "go")]]}})
    machine.launch()
    machine.wait_stage("ENGINE")
    starting = status(machine, 1)
    assert (starting["phase"], starting["metrics"], starting["ready_after_s"]) == ("starting", None, None)
    (machine.folder / "go").touch()
    machine.wait("default", "ready")
    ready = status(machine, 0)
    assert ready["phase"] == "ready"
    assert ready["endpoint"].startswith("http://127.0.0.1:")
    assert ready["api_key"] == Folder("default").key()
    assert ready["metrics"]["running"] == 0
    machine.down()
    stopped = status(machine, 1)
    assert (stopped["phase"], stopped["endpoint"], stopped["server_pid"]) == ("stopped", None, None)
    machine.scenario({"before": {"ENGINE": [["fail", "MODEL"]]}})
    machine.up()
    failed = status(machine, 1)
    assert failed["phase"] == "failed"
    assert {"kind", "title", "cause", "remedy", "evidence"} <= set(failed["failure"])


def test_a_server_of_somebody_else_is_looked_at_and_checked_by_its_address(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url, key = str(machine.up().url), Folder("default").key()
    ours = machine.run("check", "--json")
    assert ours.returncode == 0, ours.stdout
    points = {point["name"]: point for point in json.loads(ours.stdout)["points"]}
    assert [points[name]["ok"] for name in ("health", "picture", "key", "supervisor", "errors")] == [True] * 5
    environ = {**os.environ, "MAI_SERVER_STATE": str(tmp_path / "another")}
    for word in ("--key", "--api-key"):
        document = json.loads(machine.run("status", "--endpoint", url, word, key, "--json", env=environ).stdout)
        assert set(document) == KEYS
        assert (document["phase"], document["endpoint"], document["model"]) == ("ready", url, "tiny")
        assert document["metrics"]["kv_tokens"]
    tuned = machine.run("tune", "--endpoint", url, "--key", key, "--json", env=environ)
    assert json.loads(tuned.stdout)["bottleneck"]["kind"], tuned.stderr
    assert machine.run("tune", "--endpoint", url, "--key", key, "--apply", env=environ).returncode == 2
    closed = machine.run("status", "--endpoint", url, env=environ)
    assert (closed.returncode, "--key" in closed.stdout) == (1, True)
    foreign = machine.run("check", "--endpoint", url, "--key", key, "--json", env=environ)
    points = {point["name"]: point for point in json.loads(foreign.stdout)["points"]}
    assert [points[name]["ok"] for name in ("health", "picture", "key")] == [True] * 3
    assert points["attention"]["ok"] is None, "only ours tell it"
    machine.scenario({"chat": "fail"})
    assert machine.run("check", "--endpoint", "127.0.0.1:9", env=environ).returncode == 3


def test_nothing_is_judged_before_a_client_has_asked_and_a_phase_counts_from_its_own_beginning(
    machine: Machine,
) -> None:
    state = machine.up()
    assert state.since is not None
    assert state.started is not None
    assert state.since > state.started
    looked = Watch("default").look()
    assert looked.metrics is not None
    asked_by_nobody = replace(looked.metrics, generation_tokens=1, requests={"length": 1}, running=0)
    assert not has_client_requests(asked_by_nobody)
    assert has_client_requests(replace(asked_by_nobody, generation_tokens=9))
    assert "nobody has asked anything" in "\n".join(lines_of(replace(looked, judged=())))


def test_a_server_without_metrics_has_them_unknown_and_garbage_in_its_output_breaks_nothing(machine: Machine) -> None:
    before = {"LOADING": [["garbage", 5000], ["print", "after the garbage\n"]]}
    machine.scenario({"metrics": "none", "before": before})
    machine.up()
    metrics = status(machine, 0)["metrics"]
    assert metrics is None or metrics["running"] is None
    done = machine.run("logs", "-n", "1000")
    assert done.returncode == 0, done.stderr
    assert "after the garbage" in done.stdout


def test_what_is_watched_through_a_pipe_is_printed_again_and_again(machine: Machine) -> None:
    watcher = machine.begin("watch", stdout=subprocess.PIPE)
    try:
        lines = [watcher.stdout.readline() for _ in range(4)]  # type: ignore[union-attr]
    finally:
        watcher.send_signal(signal.SIGINT)
        watcher.communicate(timeout=40)
    assert lines[:2] == lines[2:] and lines[0].startswith("default: stopped")


def test_logs_of_nothing_say_so(machine: Machine) -> None:
    done = machine.run("logs")
    assert done.returncode == 3
    assert "no log" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_log_that_nobody_reads_any_more_ends_quietly(machine: Machine) -> None:
    machine.up()
    read, write = os.pipe()
    client = machine.begin("logs", "-f", stdout=write)
    os.close(write)
    os.close(read)
    client.send_signal(signal.SIGINT)
    _, said = client.communicate(timeout=40)
    assert "Traceback" not in said


@pytest.mark.parametrize("kind", ["lines", "endless"])
def test_a_flood_does_not_end_the_server_and_its_log_stays_small(machine: Machine, kind: str) -> None:
    machine.scenario({"serving": [["flood", 40_000_000, kind], ["print", "\nthe end of it\n"]]})
    machine.launch()
    machine.wait_log("the end of it")
    assert machine.wait("default", "ready").attempt == 1
    sizes = [path.stat().st_size for path in log_files(Folder("default").log_file)]
    assert all(size <= MOST_BYTES + 100_000 for size in sizes)
    assert sum(sizes) <= 80_000_000


def test_every_line_of_the_log_has_its_time(machine: Machine) -> None:
    machine.up()
    done = machine.run("logs", "-n", "1000")
    lines = done.stdout.splitlines()
    assert len(lines) > 10
    assert all(re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", line) for line in lines)
    few = machine.run("logs", "-n", "3", "--json").stdout.splitlines()
    assert [set(json.loads(line)) for line in few] == [{"time", "text"}] * 3


def test_logs_follow_a_server_to_its_end(machine: Machine) -> None:
    go = machine.folder / "go"
    machine.scenario({"serving": [["wait", str(go)], ["print", "said later\n"]]})
    machine.up()
    client = machine.begin("logs", "-f")
    go.touch()
    machine.wait_log("said later")
    machine.down()
    shown, said = client.communicate(timeout=40)
    assert client.returncode == 0, said
    assert shown.count("said later") == 1


def test_a_follower_of_a_log_that_is_rotated_misses_no_line_and_meets_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 100_000)
    monkeypatch.setattr(logs, "_POLL", 0.001)
    path = tmp_path / "server.log"
    log = LogWriter(path)
    for number in range(10):
        log.write(f"before {number}")
    last, place = tail(path, 3)
    assert [line.split(" ", 1)[1] for line in last] == ["before 7", "before 8", "before 9"]
    followed: list[str] = []

    def read() -> None:
        for line in takewhile(lambda line: not line.endswith(" end"), follow(path, place)):
            followed.extend(line.split()[1:])

    reader = Thread(target=read, daemon=True)
    reader.start()
    for number in range(10_000):
        log.write(str(number))
    log.write("end")
    reader.join(20)
    assert followed == [str(number) for number in range(10_000)]
    assert len(log_files(path)) > 2
    assert tail(path, 4_001)[0][0].endswith(" 6000")


@pytest.mark.parametrize("text", ["{", '{"phase": "ready"}', "\udcff"])
def test_a_damaged_state_is_no_traceback_and_no_hindrance(machine: Machine, text: str) -> None:
    folder = Folder("default")
    folder.make()
    folder.state_file.write_bytes(text.encode("utf-8", "surrogateescape"))
    done = machine.run("status", "--json")
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["phase"] in ("stopped", "failed")
    assert machine.up().phase == "ready"


def test_a_state_damaged_under_a_running_server_is_written_anew_and_down_still_finds_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAI_SERVER_BEAT_SECONDS", "0.5")
    machine.up()
    Folder("default").state_file.write_text('{"phase": "rea')
    assert machine.state().phase != "stopped"
    assert machine.wait("default", "ready").phase == "ready"
    Folder("default").state_file.write_text("")
    assert machine.down()
    machine.assert_nothing_left()


def test_a_state_folder_that_cannot_be_made_is_told_in_a_sentence(machine: Machine) -> None:
    machine.state_folder.write_text("a file where the folder should be")
    for words in (("up", *machine.small), ("status",), ("down",)):
        done = machine.run(*words)
        assert "Traceback" not in done.stderr + done.stdout, words
    assert machine.run("up", *machine.small).returncode != 0
