"""The stop switch, from threads and from inside a signal handler."""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

import pytest

from agent.safety.stop import StopSwitch
from foundation.errors import StoppedError


def test_the_first_reason_is_kept() -> None:
    stop = StopSwitch()
    assert not stop.stopped
    stop.stop("one")
    stop.stop("two")
    assert stop.stopped
    assert stop.reason == "one"
    with pytest.raises(StoppedError, match=r"Stopped: one\."):
        stop.check()


def test_a_sleeper_wakes_up_when_it_is_set() -> None:
    stop = StopSwitch()
    threading.Timer(0.05, stop.stop, ("now",)).start()
    with pytest.raises(StoppedError):
        stop.sleep(600)


def test_a_sleep_that_is_not_stopped_just_ends() -> None:
    stop = StopSwitch()
    stop.sleep(0.01)
    assert stop.wait(0.01) is False


def test_listeners_are_told_once_and_late_ones_at_once() -> None:
    stop = StopSwitch()
    told: list[str] = []
    stop.on_stop(lambda: told.append("early"))
    stop.stop("now")
    stop.stop("again")
    stop.on_stop(lambda: told.append("late"))
    assert told == ["early", "late"]


def handling(stop: StopSwitch, raising: Callable[[], None]) -> None:
    """Run something while SIGUSR1 sets the switch."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.stop("the signal")

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        raising()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_second_signal_inside_the_first_ones_handling_does_not_block() -> None:
    stop = StopSwitch()
    told: list[str] = []
    stop.on_stop(lambda: signal.raise_signal(signal.SIGUSR1))
    stop.on_stop(lambda: told.append(stop.reason))
    handling(stop, lambda: stop.stop("first"))
    assert told == ["first"]
    assert stop.stopped


@pytest.mark.parametrize("delay", [0, 0.0001, 0.001, 0.01])
def test_a_signal_into_a_waiting_main_thread_ends_the_wait(delay: float) -> None:
    stop = StopSwitch()

    def wait() -> None:
        # To the process, whose main thread takes it; raise_signal() would leave it on the timer's.
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        began = time.monotonic()
        assert stop.wait(60)
        assert time.monotonic() - began < 30, "it slept on"

    handling(stop, wait)
    assert stop.reason == "the signal"


def test_a_listener_that_fails_does_not_keep_the_others_from_hearing() -> None:
    stop = StopSwitch()
    told: list[str] = []

    def fail() -> None:
        raise ValueError

    stop.on_stop(fail)
    stop.on_stop(lambda: told.append("heard"))
    stop.stop("now")
    assert told == ["heard"]
