"""A server that nobody asks anything ends by itself, where that was asked for."""

import argparse

import pytest
from stubs.controlled import Machine

from foundation.command_line import duration
from serverctl.endpoint import ready_server
from serverctl.process import control
from serverctl.process.request import read_request
from serverctl.process.state import Folder

pytestmark = pytest.mark.slow


@pytest.fixture
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Supervisors are processes of their own: only their environment reaches them."""
    monkeypatch.setenv("MAI_SERVER_BEAT_SECONDS", "0.5")


@pytest.mark.usefixtures("looked_at_often")
def test_an_idle_engine_ends_and_its_server_says_so(machine: Machine) -> None:
    machine.told("up", *machine.small, "--idle", "1s")
    state = machine.wait("default", "asleep", seconds=40)
    assert state.message == "Nobody asked anything for 1 s: asleep until the next request."
    assert len(machine.starts) == 1
    assert machine.marked() == []
    told = machine.run("status").stdout
    assert "Nobody asked anything for 1 s" in told
    assert str(state.url) in told
    assert machine.down()
    machine.assert_nothing_left(10)


@pytest.mark.usefixtures("looked_at_often")
def test_any_client_wakes_it_and_has_its_answer(machine: Machine) -> None:
    first = machine.told("up", *machine.small, "--idle", "1s")
    for start in (1, 2):
        machine.wait("default", "asleep", seconds=40)
        assert len(machine.starts) == start
        assert (machine.ask(first), len(machine.starts)) == (200, start + 1)


@pytest.mark.usefixtures("looked_at_often")
@pytest.mark.parametrize("by", ["up --again", "the agent"])
def test_what_slept_comes_back_as_it_was(machine: Machine, by: str) -> None:
    settings = ("--set", "max_num_seqs=3", "--idle", "1s", "--name", "small")
    first = machine.told("up", *machine.small, *settings)
    machine.wait("small", "asleep", seconds=40)
    if by == "the agent":
        server = ready_server(None)
        back = {"name": server.name, "model": server.model, "endpoint": server.base_url, "api_key": server.api_key}
    else:
        back = machine.told("up", "--again")
    for part in ("name", "model", "endpoint", "api_key"):
        assert back[part] == first[part], part
    assert machine.flags()["--max-num-seqs"] == "3"
    assert read_request(Folder("small").request_file).idle_seconds == 1
    assert machine.wait("small", "asleep", seconds=40)


def test_what_a_person_stopped_does_not_wake_and_the_last_server_starts_again_only_as_it_was(machine: Machine) -> None:
    assert "No server has been started yet" in machine.run("up", "--again").stderr
    machine.up("second")
    machine.down("second")
    assert control.sleeping() == []
    for words in (["--set", "max_num_seqs=3"], ["--port", "1"], ["--", "--seed", "0"]):
        done = machine.run("up", "--again", *words)
        assert (done.returncode, "--again takes everything" in done.stderr) == (2, True)
    assert machine.run("up", "--again").returncode == 0
    assert machine.state("second").is_ready


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("1.5m", 90)])
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "0m", "-5m", "soon", "15 minutes"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        duration(text)
