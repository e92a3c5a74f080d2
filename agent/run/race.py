"""Waits that the stop switch can end."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Protocol, TypeVar

from agent.safety.stop import StopSwitch

T = TypeVar("T")


class Waiting(Protocol):
    """Waits that a stop ends, as a `Race` does."""

    async def __call__(self, waiting: Awaitable[T]) -> T:
        """Wait for something."""
        ...


class Race:
    """Races awaitables against the stop switch, on one event loop."""

    def __init__(self, stop: StopSwitch) -> None:
        self._stop = stop
        self._stopped: asyncio.Event | None = None

    async def __call__(self, waiting: Awaitable[T]) -> T:
        """Wait for something.

        Raises:
            StoppedError: as soon as the stop switch is set; what was waited for is cancelled.
        """
        stopped = self._listening()
        task = asyncio.ensure_future(waiting)
        stopping = asyncio.ensure_future(stopped.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self._stop.check()
            return await task
        finally:
            stopping.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=0.2)

    def _listening(self) -> asyncio.Event:
        if self._stopped is None:
            loop, stopped = asyncio.get_running_loop(), asyncio.Event()
            self._stopped = stopped

            def wake() -> None:
                with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                    loop.call_soon_threadsafe(stopped.set)

            self._stop.on_stop(wake)
        return self._stopped
