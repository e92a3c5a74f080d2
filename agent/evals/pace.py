"""Limits the requests sent at a time: a fixed number, or as many as a vLLM computes, and a short queue."""

import asyncio
import math
import re
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

#: Requests at a time at first, and at most; and seconds between two readings of the server's numbers.
FIRST, MOST, _EVERY = 8, 128, 1.0
#: Length of the queue that keeps a full server busy, as a share of the running requests.
_QUEUE = 0.125
_LOAD = re.compile(r"^vllm:num_requests_(running|waiting)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


class Pace:
    """Limits the number of requests at a time. `metrics` is the address of a vLLM's figures; the limit follows them."""

    def __init__(self, at_once: int | None, metrics: str | None = None) -> None:
        self.limit = at_once or FIRST
        self.most = at_once or (MOST if metrics else FIRST)
        self._metrics = metrics if at_once is None else None
        self._sent = 0
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a request may be sent, and count it during the block."""
        async with self._freed:
            await self._freed.wait_for(lambda: self._sent < self.limit)
            self._sent += 1
        try:
            yield
        finally:
            async with self._freed:
                self._sent -= 1
                self._freed.notify_all()

    async def follow(self) -> None:
        """Adjust the number to the server's load until cancelled. Returns if there is nothing to follow."""
        while self._metrics is not None and (load := await asyncio.to_thread(_load, self._metrics)) is not None:
            running, waiting = load
            if waiting > max(1.0, _QUEUE * running):
                self.limit = max(1, math.ceil(running * (1 + _QUEUE)))
            elif self._sent >= self.limit:
                self.limit = min(self.most, 2 * self.limit)
            async with self._freed:
                self._freed.notify_all()
            await asyncio.sleep(_EVERY)


def _load(url: str) -> tuple[float, float] | None:
    """Return how many requests a vLLM computes and how many wait; None if it does not say so."""
    try:
        with urllib.request.urlopen(url, timeout=3) as answer:  # noqa: S310 -- the address of the endpoint
            found = _LOAD.findall(answer.read(2_000_000).decode("utf-8", "replace"))
        load = {kind: sum(float(value) for name, value in found if name == kind) for kind in ("running", "waiting")}
    except (OSError, ValueError):
        return None
    return (load["running"], load["waiting"]) if found else None
