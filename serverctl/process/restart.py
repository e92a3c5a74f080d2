"""Between two starts: how long to back off, and waiting until a card's memory has come back."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping

from foundation.errors import MaiError
from serverctl.diagnose.classify import Failure
from serverctl.diagnose.failures import Kind
from serverctl.diagnose.ladder import Step
from serverctl.hardware.facts import Hardware
from serverctl.plan.goal import Plan

#: How much of the memory that was free when the last start was planned must have come back before the next.
_SHARE = 0.75
#: How often the card is asked, seconds.
_EVERY = 0.5

#: Waits some seconds, or less when the end is asked for; gives whether it is.
Sleep = Callable[[float], Awaitable[bool]]


def back_off(deaths: int) -> float:
    """Seconds before a server that died while serving is started again; none for a start that failed."""
    return min(2.0**deaths / 2, 60.0) if deaths else 0.0


def memory_wanted(step: Step, failure: Failure, plan: Plan) -> Mapping[str, int]:
    """The free bytes, by card, that the next start should find; empty where it need not wait."""
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
