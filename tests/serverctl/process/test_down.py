"""`down` and Ctrl-C leave nothing, whenever they come."""

import signal
import socket
import threading

import pytest
from stubs.controlled import Machine, gone

pytestmark = pytest.mark.slow


def test_down_leaves_no_process_and_frees_the_port(machine: Machine) -> None:
    state = machine.up()
    processes = machine.processes()
    assert len(processes) >= 5  # supervisor, guardian, API server, engine, worker
    assert machine.down()
    machine.assert_nothing_left()
    assert gone(processes)
    assert machine.state().phase == "stopped"
    assert machine.state().failure is None
    assert state.port is not None
    socket.create_server(("127.0.0.1", state.port)).close()


@pytest.mark.parametrize("scenario", [{"ignore_term": True}, {"setsid": True}])
def test_what_ignores_sigterm_or_has_a_session_of_its_own_is_ended_too(
    machine: Machine, scenario: dict[str, bool]
) -> None:
    machine.scenario(scenario)
    assert machine.up().phase == "ready"
    assert machine.down()
    machine.assert_nothing_left()
    assert machine.state().phase == "stopped"


@pytest.mark.parametrize("stage", ["IMPORTED", "LOADING", "SERVING"])
def test_down_during_a_start_stops_it(machine: Machine, stage: str) -> None:
    machine.scenario({"before": {stage: [["print", "here it waits\n"], ["hang"]]}, "ignore_term": True})
    machine.launch()
    machine.wait("default", "starting")
    machine.wait_log("here it waits")
    assert machine.down()
    machine.assert_nothing_left()
    assert machine.state().phase == "stopped"


def test_down_at_once_after_up_leaves_nothing_and_down_of_nothing_is_no_error(machine: Machine) -> None:
    assert not machine.down()
    machine.launch()
    assert machine.down()
    machine.assert_nothing_left()
    assert machine.state().phase == "stopped"
    assert not machine.down()
    done = machine.run("down")
    assert "Traceback" not in done.stderr
    assert machine.state().phase == "stopped"


def test_two_downs_at_once_both_return_when_all_is_gone(machine: Machine) -> None:
    machine.up()
    threads = [threading.Thread(target=machine.down) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    machine.assert_nothing_left()
    assert machine.state().phase == "stopped"


def test_ctrl_c_of_a_second_up_leaves_the_first_ones_start_alone(machine: Machine) -> None:
    machine.scenario({"before": {"LOADING": [["wait", str(machine.folder / "go")]]}})
    machine.launch()
    machine.wait_stage("ENGINE")
    client = machine.begin("up", *machine.small)
    assert client.stderr is not None
    line = client.stderr.readline() or ""
    assert "already on its way" in line
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=40)
    assert client.returncode == 130
    (machine.folder / "go").touch()
    assert machine.wait("default", "ready", "failed").phase == "ready"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_terminal_that_closes_end_a_server_in_the_foreground(machine: Machine, number: int) -> None:
    client = machine.begin("up", *machine.small, "--foreground")
    machine.wait("default", "ready")
    client.send_signal(number)
    shown, said = client.communicate(timeout=40)
    assert number == signal.SIGHUP or client.returncode == 130
    assert "Application startup complete" in shown
    assert "Traceback" not in said
    machine.assert_nothing_left()
    assert machine.state().phase == "stopped"
