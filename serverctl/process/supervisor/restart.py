"""Timing between two starts: grace period, back-off, and the wait for free memory."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from foundation.errors import MaiError
from serverctl.diagnose.classify import Failure
from serverctl.diagnose.failures import Kind
from serverctl.diagnose.ladder import Step
from serverctl.hardware.facts import Hardware
from serverctl.load.client import Endpoint
from serverctl.plan.goal import Plan
from serverctl.process import probe

#: Share of the memory that was free at the last plan that must be free again before the next start.
_SHARE = 0.75
#: Interval between two checks of the card's memory, seconds.
_EVERY = 0.5

#: After two crashes within this time, seconds, the server is not restarted automatically.
_DEATHS_WINDOW = 600.0

#: Seconds between SIGTERM and SIGKILL. A serving vLLM gets its --shutdown-timeout of 5 s and some more. During a start
#: the signal may get lost. Idle workers of the CPU build ignore it until vLLM kills them after those 5 s.
_GRACE_SERVING, _GRACE_IDLE, _GRACE_STARTING = 9.0, 2.0, 2.0

#: Sleeps for some seconds, or until an interruption. Returns whether one came.
Sleep = Callable[[float], Awaitable[bool]]


def grace(engine: Endpoint | None) -> float:
    """Return the seconds to wait between SIGTERM and SIGKILL: more if requests are running. Blocking.

    The engine is None during its start.
    """
    if engine is None:
        return _GRACE_STARTING
    metrics = probe.read_metrics(engine, 1.0)
    return _GRACE_SERVING if metrics is not None and metrics.running else _GRACE_IDLE


def deaths_lately(earlier: Sequence[float], now: float) -> list[float]:
    """Return the times (seconds) of the crashes in the last ten minutes, including one at `now`."""
    return [*(when for when in earlier if now - when < _DEATHS_WINDOW), now]


def back_off(deaths: int) -> float:
    """Return the seconds to wait before a restart after a crash while serving; 0 after a failed start."""
    return min(2.0**deaths / 2, 60.0) if deaths else 0.0


def memory_wanted(step: Step, failure: Failure, plan: Plan) -> Mapping[str, int]:
    """Return the bytes that must be free on each card before the next start; empty if it need not wait."""
    if not step.wait_for_memory:
        return {}
    if failure.kind is Kind.FREE_MEM and step.action == "retry":  # too little was free: wait for the full request
        return {gpu.uuid: plan.budget.requested for gpu in plan.gpus}
    return {gpu.uuid: round(gpu.free_bytes * _SHARE) for gpu in plan.gpus if gpu.free_bytes is not None}


async def wait_for_memory(
    wanted: Mapping[str, int], look: Callable[[], Hardware], sleep: Sleep, seconds: float
) -> None:
    """Wait at most `seconds` until the cards have the wanted free memory. Errors of detection may be temporary."""
    end = time.monotonic() + seconds
    while wanted and time.monotonic() < end:
        with contextlib.suppress(MaiError):
            now = await asyncio.to_thread(look)
            if all(gpu.free_bytes is None or gpu.free_bytes >= wanted.get(gpu.uuid, 0) for gpu in now.gpus):
                return
        if await sleep(_EVERY):
            return
