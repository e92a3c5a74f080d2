"""kill -9 of any part: a clear status, nothing left, and only what was recorded is ended."""

import os
import random
import signal
import subprocess
import time

import psutil
import pytest
from stubs.controlled import Machine, gone

from foundation.processes import identity_of, read_identity
from serverctl.process import control
from serverctl.process.state import MARK, PHASES, Folder, State

pytestmark = pytest.mark.slow


def _supervisor(state: State) -> psutil.Process:
    assert state.supervisor is not None
    return psutil.Process(state.supervisor.pid)


def _part(machine: Machine, title: str) -> psutil.Process:
    state = machine.state()
    match title:
        case "supervisor":
            return _supervisor(state)
        case "api":
            assert state.server_pid is not None
            return psutil.Process(state.server_pid)
        case _:
            return machine.process(title)


@pytest.mark.parametrize("title", ["api", "EngineCore", "Worker", "guardian"])
def test_a_part_of_a_serving_server_that_is_killed_is_started_again(machine: Machine, title: str) -> None:
    first, before = control.ready(machine.up()), machine.marked()
    _part(machine, title).kill()
    state = machine.wait("default", "ready", "failed", attempt=2)
    second = control.ready(state)
    assert (first.base_url, first.api_key) == (second.base_url, second.api_key)
    assert gone(before)
    assert len(state.deaths) == 1
    assert len(machine.starts) == 2
    assert machine.down()
    machine.assert_nothing_left()


@pytest.mark.parametrize("setsid", [False, True])
@pytest.mark.parametrize("guardian_too", [False, True])
def test_a_killed_supervisor_takes_everything_with_it_and_the_status_says_so(
    machine: Machine, setsid: bool, guardian_too: bool
) -> None:
    machine.scenario({"setsid": setsid})
    before = machine.up()
    guardian, supervisor = machine.process("guardian"), _supervisor(before)
    if guardian_too:
        supervisor.suspend()  # so that it cannot see its guardian end
        guardian.kill()
    supervisor.kill()
    machine.assert_nothing_left(15)
    state = machine.state()
    assert state.failure is not None
    assert (state.phase, state.failure["kind"]) == ("failed", "SUPERVISOR_DIED")
    assert control.find_ready() is None
    machine.scenario({})
    state = machine.up()
    assert state.phase == "ready"
    assert state.run != before.run


def test_only_what_was_recorded_is_ended(machine: Machine) -> None:
    """A foreign process has the number of the old supervisor and guardian; another one has another server's mark."""
    foreign = subprocess.Popen(["sleep", "300"])
    other = subprocess.Popen(["sleep", "300"], env={**os.environ, MARK: "somebody-elses", "MAI_SERVER_STATE": "/x"})
    try:
        assert identity_of(foreign.pid) is not None
        stale = read_identity({"pid": foreign.pid, "started": time.time() - 5000})
        folder = Folder("default")
        folder.make()
        state = State(phase="ready", supervisor=stale, guardian=stale, server_pid=foreign.pid, run="0123456789abcdef")
        folder.write(state)
        assert machine.state().phase == "failed"
        assert machine.up().phase == "ready"
        assert machine.down()
        assert foreign.poll() is None
        assert other.poll() is None
    finally:
        for process in (foreign, other):
            process.kill()
            process.wait()


def test_a_client_that_is_killed_while_it_waits_leaves_the_start_going(machine: Machine) -> None:
    machine.scenario({"before": {"LOADING": [["wait", str(machine.folder / "go")]]}})
    client = machine.begin("up", *machine.small)
    machine.wait_stage("ENGINE")
    client.kill()
    client.wait()
    (machine.folder / "go").touch()
    assert machine.wait("default", "ready", "failed").phase == "ready"


def test_the_foreground_that_is_killed_leaves_nothing(machine: Machine) -> None:
    client = machine.begin("up", *machine.small, "--foreground")
    machine.wait("default", "ready")
    client.kill()
    client.wait()
    machine.assert_nothing_left(15)
    assert machine.state().phase == "failed"


@pytest.mark.timeout(300)
def test_twenty_kills_of_random_parts_at_random_instants_leave_nothing_and_always_a_clear_status(
    machine: Machine,
) -> None:
    luck = random.Random(20261121)
    for number in range(20):
        machine.scenario({"setsid": luck.random() < 0.5})
        machine.launch()
        wait = luck.choice((0.0, luck.uniform(0, 0.4), luck.uniform(0, 1.2)))
        time.sleep(wait)
        victims = machine.processes()
        victim = luck.choice(victims) if victims else None
        told = f"round {number}: {victim} after {wait:.2f} s"
        if victim is not None:
            try:
                victim.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                victim = None
        state = machine.wait("default", "ready", "failed")
        assert state.phase in PHASES, told
        assert state.message, told
        if state.phase == "failed":
            assert state.failure is not None, told
            assert state.failure["title"], told
            assert state.failure["remedy"], told
            machine.assert_nothing_left(20)
        else:
            machine.down()
        machine.assert_nothing_left(5)
        assert machine.state().phase in ("stopped", "failed"), told
