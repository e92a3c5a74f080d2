"""Tells a slow start from a stuck one: by progress, never by the clock alone."""

import asyncio
import time
from collections.abc import Callable

from serverctl.hardware.detect import ask_nvml
from serverctl.process.timeouts import Timeouts

#: How often one looks, seconds.
_EVERY = 1.0


class StallWatch:
    """Watches a start by values that change while there is progress: lines of output, bytes of a download."""

    def __init__(self, progress: Callable[[], tuple[object, ...]], timeouts: Timeouts) -> None:
        self._progress = progress
        self._limit = timeouts.stall
        self._silent = max(timeouts.silent, timeouts.stall)
        self._seen: tuple[object, ...] = ()
        self._memory: int | None = None
        self._next = 0.0
        self._changed = self._spoke = time.monotonic()
        self._cpu = 0.0

    async def check(self) -> str:
        """A sentence when the start is stuck, "" otherwise. Looks at most once a second."""
        now = time.monotonic()
        if now < self._next:
            return ""
        self._next = now + _EVERY
        seen = self._progress()
        if seen != self._seen:
            self._seen = seen
            self._changed = self._spoke = now
            return ""
        if now - self._changed < self._limit / 2:
            return ""
        # Only a start that has been silent for long is looked at more closely: this costs more.
        cpu, memory = await asyncio.gather(asyncio.to_thread(_cpu_seconds), asyncio.to_thread(_card_memory))
        if cpu - self._cpu > 0.2 * self._limit or memory != self._memory:
            self._cpu, self._memory = cpu, memory
            self._changed = now
        if now - self._changed >= self._limit:
            return f"no line of output, no download, no work of the processor for {now - self._changed:.0f} s"
        if now - self._spoke >= self._silent:
            return f"no line of output for {now - self._spoke:.0f} s, though the processor was busy"
        return ""


def _cpu_seconds() -> float:
    """Processor time of everything below this process."""
    import psutil

    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def _card_memory() -> int | None:
    """Used memory of the cards together, in steps of 64 MiB; None without cards."""
    answer = ask_nvml()
    if answer is None:
        return None
    return sum((gpu.total_bytes - (gpu.free_bytes or 0)) >> 26 for gpu in answer[0])
