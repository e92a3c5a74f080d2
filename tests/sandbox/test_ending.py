"""The end of a sandbox's processes, without a desktop."""

import signal
import subprocess
import sys
import time

import pytest
from stubs.display import wait_until

from agent.desktop.programs import MARK, marked
from foundation.processes import end_marked

#: Starts a marked program and never asks how it ended, as the first process of some containers does.
CARELESS = """
import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "60"], env={**os.environ, sys.argv[1]: sys.argv[2]})
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_program_that_has_ended_is_not_waited_for_until_somebody_reaps_it():
    parent = subprocess.Popen(
        [sys.executable, "-c", CARELESS, MARK, "a-test-of-ending"], stdout=subprocess.PIPE, text=True
    )
    try:
        parent.stdout.readline()
        # For an instant after exec a process has no environment yet, although its parent was told that exec succeeded.
        wait_until(lambda: [process.name() for process in marked("a-test-of-ending")] == ["sleep"], "it is marked")
        began = time.monotonic()
        assert len(end_marked(MARK, "a-test-of-ending", grace=8)) == 1
        assert time.monotonic() - began < 5
        assert marked("a-test-of-ending") == []
    finally:
        parent.kill()
        parent.communicate()


def test_a_program_that_does_not_listen_is_killed():
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    program = subprocess.Popen(
        [sys.executable, "-c", deaf], env={MARK: "a-deaf-test"}, stdout=subprocess.PIPE, text=True
    )
    program.stdout.readline()
    assert len(end_marked(MARK, "a-deaf-test", grace=0.2)) == 1
    program.communicate(timeout=10)


@pytest.mark.parametrize(("seconds", "status"), [("0.5", 0), ("60", -signal.SIGKILL)])
def test_a_program_that_lost_the_mark_while_it_ends_is_waited_for_and_then_killed(seconds, status):
    ending = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: os.execve('/bin/sleep', ['sleep', sys.argv[1]], {}))\n"
        "print(flush=True); time.sleep(60)"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", ending, seconds], env={MARK: "an-ending-test"}, stdout=subprocess.PIPE, text=True
    )
    program.stdout.readline()
    assert end_marked(MARK, "an-ending-test", grace=3) == [program.pid]
    assert program.poll() == status
    program.communicate(timeout=10)
