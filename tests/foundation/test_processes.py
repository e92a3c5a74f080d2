"""Who a process is, and who is never taken for it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from foundation.processes import (
    ProcessIdentity,
    has_run_since,
    identity_of,
    is_alive,
    marked_processes,
    pid_here,
    read_identity,
    send_signal,
    wait_gone,
)

#: Of this process alone: the same tests may run elsewhere on this machine.
OURS = f"ours-of-a-test-{os.getpid()}"


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that has nothing to do with us."""
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command, env={**os.environ, "WHOSE": OURS}) as process:
        yield process
        process.kill()


def test_a_process_is_known_again_by_what_was_written_down(other: "subprocess.Popen[bytes]") -> None:
    identity = identity_of(other.pid)
    assert identity is not None
    assert read_identity(identity.to_json()) == identity
    assert is_alive(identity)


def test_a_birth_in_seconds_is_known_where_there_are_no_ticks(other: "subprocess.Popen[bytes]") -> None:
    started = psutil.Process(other.pid).create_time()
    assert is_alive(read_identity({"pid": other.pid, "born": f"{started:.2f}"}))
    assert not is_alive(read_identity({"pid": other.pid, "born": f"{started - 5000:.2f}"}))


def test_a_process_that_ended_is_recognised_before_anybody_has_waited_for_it(other: "subprocess.Popen[bytes]") -> None:
    identity = identity_of(other.pid)
    assert identity is not None
    os.kill(other.pid, 9)
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert identity_of(other.pid) is None
    assert not is_alive(identity)
    assert wait_gone(identity, 0)
    assert not send_signal(identity, signal.SIGTERM)


def test_another_process_with_the_number_is_never_signalled(other: "subprocess.Popen[bytes]") -> None:
    mine = identity_of(os.getpid())
    assert mine is not None
    impostor = ProcessIdentity(other.pid, mine.born)
    assert not is_alive(impostor)
    assert not send_signal(impostor, signal.SIGKILL)
    assert not is_alive(ProcessIdentity(other.pid, ""))
    assert other.poll() is None
    assert not wait_gone(identity_of(other.pid) or impostor, 0.05)


@pytest.mark.parametrize(
    "document", [None, {}, [], "x", {"pid": 1}, {"pid": "x", "born": "y"}, {"pid": 0, "born": "y"},
                 {"pid": 2**31, "born": "1.0"}, {"pid": "x", "born": "1"}]
)  # fmt: skip
def test_what_is_no_identity_is_none(document: object) -> None:
    assert read_identity(document) is None


def test_a_number_that_was_given_away_later_is_told_by_the_start(other: "subprocess.Popen[bytes]") -> None:
    assert has_run_since(other.pid, time.time())
    assert not has_run_since(other.pid, time.time() - 1000)


def test_marked_processes_are_found_and_we_are_not_among_them(
    other: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHOSE", OURS)
    end = time.monotonic() + 10
    while not (found := marked_processes("WHOSE", OURS)) and time.monotonic() < end:
        time.sleep(0.01)  # the environment is there from the exec on
    assert [process.pid for process in found] == [other.pid]


def test_a_process_of_a_container_is_known_by_the_number_that_it_has_here():
    variable, value = "MAI_TEST_CONTAINER", f"numbers-{os.getpid()}"
    process = subprocess.Popen(["sleep", "60"], env={variable: value})
    try:
        assert pid_here(process.pid, variable, value) == process.pid  # it has one number only
        assert pid_here(12345678, variable, value) == 12345678
        assert pid_here(7, variable, None) == 7
    finally:
        process.kill()
        process.wait()
