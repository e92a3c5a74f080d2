"""A daemon thread each for the screen and the hand.

Screen capture and input must stay on one thread each, because their X connections are not shared. A call that hangs in
a dead display must not keep the program from exiting, as the threads of a pool would.
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
        """Queue `function(*arguments)`. The future can be cancelled until the call starts."""
        future: Future[T] = Future()
        self._calls.put((future, lambda: function(*arguments)))
        return future

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run `function(*arguments)` on the thread, and return or raise its result."""
        return await asyncio.wrap_future(self.submit(function, *arguments))

    def end(self, last: Callable[[], None] | None = None) -> None:
        """End the thread after the queued calls and `last`, which must not raise. Does not wait."""
        self._last = last
        self._calls.put(None)

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except StopIteration:  # asyncio futures reject StopIteration
                future.set_exception(RuntimeError("a call on a worker ran out of items"))
            except BaseException as caught:  # passed on to the waiting caller
                future.set_exception(caught)
        if self._last is not None:
            self._last()
