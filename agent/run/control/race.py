"""Waits that the stop switch can end."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

from agent.safety.stop import StopSwitch
from foundation.errors import MaiError

T = TypeVar("T")


class Race:
    """Races awaitables against the stop switch, on one event loop."""

    def __init__(self, stop: StopSwitch) -> None:
        self._stop = stop
        self._stopped: asyncio.Event | None = None
        self._alarm: asyncio.TimerHandle | None = None

    async def __call__(self, waiting: Awaitable[T]) -> T:
        """Wait for an awaitable.

        Raises StoppedError: the stop switch is set. The awaitable is cancelled.
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
            if task.done() and not task.cancelled():
                task.exception()  # else asyncio prints that the exception was never retrieved

    def check(self) -> None:
        """Raise the error that ended the run, if there is one."""
        self._stop.check()

    async def for_person(self, waiting: Awaitable[T]) -> T:
        """Wait for a person. The time limit is suspended meanwhile. Raises StoppedError."""
        if self._alarm is None:
            return await self(waiting)
        left = self._alarm.when() - asyncio.get_running_loop().time()
        self._alarm.cancel()
        try:
            return await self(waiting)
        finally:
            self.limit(max(0.0, left), self._too_late)

    def limit(self, seconds: float, too_late: MaiError) -> None:
        """Stop with `too_late` after this many seconds."""
        self._too_late = too_late
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._stop.fail, too_late)

    def end(self) -> None:
        """Remove the time limit."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _listening(self) -> asyncio.Event:
        if self._stopped is None:
            loop, stopped = asyncio.get_running_loop(), asyncio.Event()
            self._stopped = stopped

            def wake() -> None:
                with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                    loop.call_soon_threadsafe(stopped.set)

            self._stop.on_stop(wake)
        return self._stopped
