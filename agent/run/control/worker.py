"""One daemon thread per sense: the eye and the hand each own one, and neither can hold the program up.

Screen capture and input must stay on one thread each (their X connections are not shared), and a call that hangs in a
dead display must not keep the program from ending; the threads of a pool would.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Runs calls one after another on its own daemon thread."""

    def __init__(self, name: str) -> None:
        self._last: Callable[[], None] | None = None
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any], asyncio.AbstractEventLoop] | None]
        self._calls = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run `function(*arguments)` on the thread and wait for what it returns or raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._calls.put((lambda: function(*arguments), future, loop))
        return await future

    def end(self, last: Callable[[], None] | None = None) -> None:
        """Let the thread end after the calls it has and this last one, which must not raise; does not wait."""
        self._last = last
        self._calls.put(None)

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            call, future, loop = item
            if future.cancelled():
                continue
            try:
                result, error = call(), None
            except BaseException as caught:  # carried to whoever waits
                result, error = None, caught
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, future, result, error)
        if self._last is not None:
            self._last()


def _settle(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):  # may not be raised into a future
        future.set_exception(RuntimeError("a call on a worker ran out of items"))
    else:
        future.set_exception(error)
