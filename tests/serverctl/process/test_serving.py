"""What happens to a server that was ready: deaths, deafness, and how often it is started again."""

import json
import os

import pytest
from stubs.controlled import Machine

from serverctl.endpoint import server_now
from serverctl.process import control
from serverctl.process.state import Folder
from serverctl.process.supervisor.watchdog import back_off, deaths_lately

pytestmark = pytest.mark.slow


def test_two_deaths_within_ten_minutes_stop_it_with_a_reason(machine: Machine) -> None:
    first, second = machine.folder / "first", machine.folder / "second"
    machine.scenario(*({"serving": [["wait", str(go)], ["die"]]} for go in (first, second)))
    machine.up()
    first.touch()
    machine.wait("default", "ready", attempt=2)
    second.touch()
    state = machine.wait("default", "failed")
    assert len(machine.starts) == 2
    assert len(state.deaths) == 2
    assert "died twice within ten minutes" in str(control.failure_of(state))
    machine.assert_nothing_left(10)


def test_an_exit_with_status_0_that_nobody_asked_for_is_a_failure(machine: Machine) -> None:
    go = machine.folder / "go"
    machine.scenario({"serving": [["wait", str(go)], ["exit", 0]]}, {})
    machine.up()
    go.touch()
    state = machine.wait("default", "ready", "failed", attempt=2)
    assert state.phase == "ready", state.message
    assert len(state.deaths) == 1
    assert any("started afresh" in text for _, text in state.events)


def test_a_death_counts_for_ten_minutes_and_the_wait_before_a_restart_doubles_up_to_a_minute() -> None:
    assert deaths_lately([], 1000.0) == [1000.0]
    assert deaths_lately([401.0], 1000.0) == [401.0, 1000.0]
    assert deaths_lately([400.0, 900.0], 1000.0) == [900.0, 1000.0]
    assert [back_off(deaths) for deaths in (0, 1, 2, 3, 20)] == [0.0, 1.0, 2.0, 4.0, 60.0]


def test_clients_of_a_server_that_is_restarted_on_purpose_wait_for_it_and_keep_their_key(machine: Machine) -> None:
    first, folder = control.ready(machine.up()), Folder("default")
    with folder.restarting():
        machine.down()
        assert server_now("default")[0] == "coming"
        machine.up()
        assert server_now("default")[0] == "coming", "its gate is shut until whoever restarts it is done"
    assert server_now("default")[0] == "ready"
    assert control.ready(machine.state()).api_key == first.api_key
    machine.down()
    assert server_now("default") == ("gone", "The server was stopped.")
    assert control.ready(machine.up()).api_key != first.api_key, "a start of its own makes a key of its own"


def test_a_restart_whose_maker_was_killed_keeps_nobody_waiting(machine: Machine) -> None:
    machine.up()
    folder = Folder("default")
    machine.down()
    folder.restart_file.write_text(json.dumps({"pid": os.getpid(), "started": "0.00"}))
    assert server_now("default")[0] == "gone"


def test_an_engine_that_dies_of_the_question_is_explained_by_its_own_words(machine: Machine) -> None:
    machine.scenario({"chat": "die"})
    state = machine.up()
    assert state.phase == "failed"
    assert state.failure is not None
    assert "OutOfMemoryError" in state.failure["evidence"]
    assert len(machine.starts) <= 6
    machine.assert_nothing_left(10)
