"""The stop switch, from threads and from inside a signal handler."""

import signal
import threading
from types import FrameType

import pytest

from agent.errors import StoppedError
from agent.safety.stop import StopSwitch


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


def test_a_second_signal_inside_the_first_ones_handling_does_not_block() -> None:
    stop = StopSwitch()
    inner: list[bool] = []

    class Interrupted(threading.Event):
        """Raises a signal inside set(), where the event's lock is held."""

        def set(self) -> None:
            with self._cond:  # type: ignore[attr-defined]
                signal.raise_signal(signal.SIGUSR1)
                self._flag = True

    def handle(_number: int, _frame: FrameType | None) -> None:
        inner.append(True)
        stop.stop("second")

    stop._event = Interrupted()
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        stop.stop("first")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert inner == [True]
    assert stop.stopped
    assert stop.reason == "first"
