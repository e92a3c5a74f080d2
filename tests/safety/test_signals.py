"""Signals are heard while the main thread can run no handler."""

import hashlib
import os
import signal
import threading

import pytest

from agent.safety.stop import StopSwitch, shared_descriptor, stop_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_a_long_c_call_is_heard_before_the_call_ends(number: signal.Signals) -> None:
    stop = StopSwitch()
    heard_by: list[str] = []
    stop.on_stop(lambda: heard_by.append(threading.current_thread().name))
    with stop_signals(stop):
        threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2_000_000)  # a second or more, in C
    assert heard_by == ["signals"]


def test_other_signals_stop_nothing() -> None:
    stop = StopSwitch()
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    with stop_signals(stop):
        signal.raise_signal(signal.SIGUSR1)
        assert not stop.wait(0.1)
        signal.raise_signal(signal.SIGTERM)
        assert stop.wait(30)
    signal.signal(signal.SIGUSR1, before)


def test_what_was_there_before_is_put_back() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing)
    with stop_signals(StopSwitch()):
        assert shared_descriptor() is not None
    assert shared_descriptor() is None
    assert signal.set_wakeup_fd(before) == writing
    os.close(reading)
    os.close(writing)


def test_on_another_thread_it_does_nothing() -> None:
    done: list[int | None] = []

    def use() -> None:
        with stop_signals(StopSwitch()):
            done.append(shared_descriptor())

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert done == [None]
