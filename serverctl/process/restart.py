"""Between two starts: how long a server may take to end, how long to back off, waiting until memory has come back."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from foundation.errors import MaiError
from serverctl.diagnose.classify import Failure
from serverctl.diagnose.failures import Kind
from serverctl.diagnose.ladder import Step
from serverctl.hardware.facts import Hardware
from serverctl.plan.goal import Plan
from serverctl.process import probe
from serverctl.process.state import State

#: How much of the memory that was free when the last start was planned must have come back before the next.
_SHARE = 0.75
#: How often the card is asked, seconds.
_EVERY = 0.5

#: Two deaths within these seconds, and the server is not started again by itself.
_DEATHS_WINDOW = 600.0

#: vLLM gets its own --shutdown-timeout of 5 s and some; a start that is asked to end may swallow the signal.
#: Idle workers of the CPU build ignore the signal until vLLM kills them itself after those 5 s.
_GRACE_SERVING, _GRACE_IDLE, _GRACE_STARTING = 9.0, 2.0, 2.0

#: Waits some seconds, or less if the end is requested. Returns whether it is.
Sleep = Callable[[float], Awaitable[bool]]


def grace(state: State) -> float:
    """Return the seconds that a server may take to end: as long as running requests need. Blocking."""
    if state.ready_at is None or state.port is None:
        return _GRACE_STARTING
    metrics = probe.read_metrics(state.port, "", 1.0)
    return _GRACE_SERVING if metrics is not None and metrics.running else _GRACE_IDLE


def deaths_lately(earlier: Sequence[float], now: float) -> list[float]:
    """The times (seconds) of the deaths that count, the one of `now` included: those of the last ten minutes."""
    return [*(when for when in earlier if now - when < _DEATHS_WINDOW), now]


def back_off(deaths: int) -> float:
    """Seconds before a server that died while serving is started again; none for a start that failed."""
    return min(2.0**deaths / 2, 60.0) if deaths else 0.0


def memory_wanted(step: Step, failure: Failure, plan: Plan) -> Mapping[str, int]:
    """Return the free bytes, by card, that the next start should find; empty if it need not wait."""
    if not step.wait_for_memory:
        return {}
    if failure.kind is Kind.FREE_MEM and step.action == "retry":  # what was free was too little: all that was asked for
        return {gpu.uuid: plan.budget.requested for gpu in plan.gpus}
    return {gpu.uuid: round(gpu.free_bytes * _SHARE) for gpu in plan.gpus if gpu.free_bytes is not None}


async def wait_for_memory(
    wanted: Mapping[str, int], look: Callable[[], Hardware], sleep: Sleep, seconds: float
) -> None:
    """Waits until the cards have what is wanted, or for so long. A tool that fails now may answer in a moment."""
    end = time.monotonic() + seconds
    while wanted and time.monotonic() < end:
        with contextlib.suppress(MaiError):
            now = await asyncio.to_thread(look)
            if all(gpu.free_bytes is None or gpu.free_bytes >= wanted.get(gpu.uuid, 0) for gpu in now.gpus):
                return
        if await sleep(_EVERY):
            return
