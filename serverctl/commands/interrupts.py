"""Deeds that a Ctrl-C, or the end of the terminal, must not leave half done."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_by_interrupt() -> Iterator[None]:
    """While this lasts, SIGTERM and the end of the terminal are a KeyboardInterrupt, too: what is open is put right."""
    before = {number: signal.getsignal(number) for number in _ENDINGS[1:]}
    heeded = [number for number, handler in before.items() if handler is not signal.SIG_IGN]  # nohup stays nohup
    for number in heeded:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])


@contextmanager
def without_interrupt() -> Iterator[None]:
    """A Ctrl-C waits until this is over, and is a KeyboardInterrupt then."""
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in _ENDINGS}
    for number in _ENDINGS:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt
