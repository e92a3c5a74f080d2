"""From `up` to ready: the stages, the key, the question, the port, and who is first."""

import socket
import stat
import threading
from pathlib import Path

import psutil
import pytest
from stubs.controlled import Machine

from foundation.errors import UsageError
from serverctl.diagnose.stages import Stage
from serverctl.process import control
from serverctl.process.request import read_key
from serverctl.process.state import Folder
from serverctl.process.supervisor.child import server_env


def test_a_start_passes_its_stages_in_order_and_becomes_ready(machine: Machine) -> None:
    state = machine.up()
    assert state.phase == "ready", state.message
    reached = [Stage[name] for name in sorted(state.stage_at, key=lambda name: state.stage_at[name])]
    assert reached == sorted(reached)
    assert {Stage.LAUNCHED, Stage.CONFIGURED, Stage.LOADED, Stage.SERVING} <= set(reached)
    assert state.stage == "serving"
    assert state.attempt == 1
    assert [text for _, text in state.events][-1] == state.message
    assert machine.down()
    machine.assert_nothing_left()


def test_the_key_is_readable_by_its_owner_only_and_not_on_the_command_line(machine: Machine) -> None:
    machine.up()
    folder = Folder("default")
    key = folder.key()
    assert len(key) >= 24
    assert stat.S_IMODE(folder.key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert not any(key in word for word in machine.starts[0]["argv"])
    assert machine.starts[0]["environ"]["VLLM_API_KEY"] == key
    assert key not in machine.log()


def test_a_key_is_chosen_by_a_file_that_only_its_owner_reads_and_kept_where_asked(
    machine: Machine, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text("a-key-of-my-own-0123456789\n")
    done = machine.run("up", *machine.small, "--key-file", str(file))
    assert (done.returncode, "chmod 600" in done.stderr) == (2, True)
    file.chmod(0o600)
    mine = "a-key-of-my-own-0123456789"
    assert machine.told("up", *machine.small, "--key-file", str(file))["api_key"] == mine
    assert machine.starts[-1]["environ"]["VLLM_API_KEY"] == mine
    machine.down()
    assert machine.told("up", *machine.small, "--keep-key")["api_key"] == Folder("default").key() == mine
    machine.down()
    machine.up()
    assert Folder("default").key() != mine


@pytest.mark.parametrize("text", ["", "short", "two words of sixteen letters", "ümlaute-im-schlüssel-0123"])
def test_what_is_no_key_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(UsageError, match="holds no key"):
        read_key(str(file))


def test_a_server_listens_on_loopback_only(machine: Machine) -> None:
    state = machine.up()
    assert machine.flags()["--host"] == "127.0.0.1"
    listening = {
        (connection.laddr.ip, connection.laddr.port)
        for process in machine.processes()
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {("127.0.0.1", state.port), ("127.0.0.1", int(machine.flags()["--port"]))}


def test_libraries_of_a_persons_shell_do_not_come_into_vllms_environment() -> None:
    shell = {"PYTHONPATH": "/opt/ros/lib", "PYTHONHOME": "/usr", "HOME": "/home/me", "VLLM_API_KEY": "theirs"}
    env = server_env(shell, {"HF_HUB_OFFLINE": "1"}, "key", "mark")
    assert not {"PYTHONPATH", "PYTHONHOME"} & env.keys()
    assert (env["HOME"], env["HF_HUB_OFFLINE"], env["VLLM_API_KEY"]) == ("/home/me", "1", "key")


@pytest.mark.parametrize(("chat", "said"), [("hang", ""), ("fail", "500")])
def test_a_server_that_does_not_answer_the_question_is_not_ready(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, chat: str, said: str
) -> None:
    monkeypatch.setenv("MAI_SERVER_LAST_WORDS_SECONDS", "0.3")
    monkeypatch.setenv("MAI_SERVER_ANSWER_SECONDS", "0.5")
    machine.scenario({"chat": chat})
    assert said in machine.refused("NO_ANSWER", 1)["evidence"]
    assert control.as_ready(machine.state()) is None


def test_a_start_without_any_progress_is_tried_once_more_and_then_given_up(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAI_SERVER_STALL_SECONDS", "1.5")
    machine.scenario({"before": {"LOADING": [["hang"]]}})
    machine.refused("STALLED", 2)


def test_a_port_that_was_taken_meanwhile_is_replaced_by_another(machine: Machine) -> None:
    machine.scenario({"port": "taken"}, {})
    state = machine.up()
    assert state.phase == "ready", state.message
    assert machine.flags(0)["--port"] != machine.flags(1)["--port"]
    assert any("another program took the port" in text for _, text in state.events)


def test_a_port_of_the_persons_own_choice_is_never_replaced(machine: Machine) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        machine.launch(port=port)
        state = machine.wait("default", "failed", "ready")
    assert state.phase == "failed"
    assert state.failure is not None
    assert state.failure["kind"] == "PORT"
    assert str(port) in str(control.failure_of(state))
    assert machine.starts == []


def test_a_second_up_finds_the_server_of_the_first(machine: Machine) -> None:
    first = machine.up()
    second = machine.told("up", *machine.small)
    assert (second["endpoint"], second["api_key"]) == (first.url, Folder("default").key())
    assert not machine.launch()
    assert len(machine.starts) == 1


def test_an_up_that_asks_for_something_else_than_what_runs_is_told_so(machine: Machine) -> None:
    machine.up()
    asked = (
        (("--set", "max_num_seqs=7", "--preset", "throughput"), ("preset is latency, not throughput", "not 7")),
        (("--port", "1"), ("port is", "not 1")),
        (("--idle", "15m"), ("idle is not set, not 900",)),
        (("--", "--seed", "1"), ("without --seed 1",)),
        (("--", "--mm-processor-kwargs", '{"max_pixels": 100000}'), ("longest_edge is", "not 100000")),
    )
    for words, told in asked:
        done = machine.run("up", *machine.small, *words)
        assert done.returncode == 1, done.stdout
        assert "already runs, but not as asked" in done.stderr
        assert all(sentence in done.stderr for sentence in told), done.stderr
    assert len(machine.starts) == 1


def test_two_ups_at_once_give_one_server(machine: Machine) -> None:
    started: list[bool] = []
    together = threading.Barrier(3)

    def up() -> None:
        together.wait()
        started.append(machine.launch())

    threads = [threading.Thread(target=up) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert machine.wait("default", "ready", "failed").phase == "ready"
    assert sorted(started) == [False, False, True]
    assert len(machine.starts) == 1


def test_two_cards_serve_as_two_replicas_with_a_card_each(machine: Machine) -> None:
    machine.cards("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090")
    servers = machine.told("up", "--model", "MAI-UI-2B", "--preset", "throughput")
    assert [server["name"] for server in servers] == ["default", "default-2"]
    assert len({server["endpoint"] for server in servers}) == 2
    assert len({server["api_key"] for server in servers}) == 1, "one key for all that a router stands before"
    pins = {start["environ"].get("CUDA_VISIBLE_DEVICES") for start in machine.starts}
    assert len(pins) == 2
    assert None not in pins
    router = machine.run("export", "haproxy", "--model", "MAI-UI-2B", "--preset", "throughput").stdout
    for server in servers:
        assert f" {server['endpoint'].removeprefix('http://').removesuffix('/v1')} check" in router
    assert machine.run("down", "--all").returncode == 0
    machine.assert_nothing_left()
    again = machine.told("up", "--again")
    told = ("name", "endpoint", "api_key")
    assert [[one[part] for part in told] for one in again] == [[one[part] for part in told] for one in servers]


def test_an_environment_whose_vllm_cannot_be_run_is_told_without_a_traceback(machine: Machine) -> None:
    (machine.python.parent / "vllm").unlink()
    done = machine.run("up", *machine.small)
    assert done.returncode in (1, 3)
    assert "Traceback" not in done.stderr
    assert Path(Folder("default").path).is_dir() or done.returncode == 3
    machine.assert_nothing_left(5)
