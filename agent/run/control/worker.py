"""One daemon thread per sense: the screen and the hand each own one, and neither can hold the program up.

Screen capture and input must stay on one thread each (their X connections are not shared), and a call that hangs in a
dead display must not keep the program from ending; the threads of a pool would.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Runs calls one after another on its own daemon thread."""

    def __init__(self, name: str) -> None:
        self._last: Callable[[], None] | None = None
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, function: Callable[..., T], *arguments: Any) -> "Future[T]":
        """Begin `function(*arguments)` after the calls before it; it can be cancelled until then."""
        future: Future[T] = Future()
        self._calls.put((future, lambda: function(*arguments)))
        return future

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run `function(*arguments)` on the thread and wait for what it returns or raises."""
        return await asyncio.wrap_future(self.submit(function, *arguments))

    def end(self, last: Callable[[], None] | None = None) -> None:
        """Let the thread end after the calls it has and this last one, which must not raise; does not wait."""
        self._last = last
        self._calls.put(None)

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except StopIteration:  # may not be raised into a future of asyncio
                future.set_exception(RuntimeError("a call on a worker ran out of items"))
            except BaseException as caught:  # carried to whoever waits
                future.set_exception(caught)
        if self._last is not None:
            self._last()
