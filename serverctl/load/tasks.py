"""Runs coroutines that end together and can be stopped from outside."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class EndedEarlyError(Exception):
    """The work was abandoned because its stop was set."""


async def together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all coroutines. The first exception cancels the others and is raised unchanged."""
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except BaseExceptionGroup as raised:
        raise raised.exceptions[0] from None


async def unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
    """Return the result of some work, which is abandoned when the stop is set or its time is over.

    Raises EndedEarlyError or TimeoutError.
    """
    task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        done, _ = await asyncio.wait({task, stopped}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if stopped in done:
            raise EndedEarlyError
        if task not in done:
            raise TimeoutError
        return task.result()
    finally:
        stopped.cancel()
        task.cancel()
        await asyncio.gather(task, stopped, return_exceptions=True)
