"""Detects servers that hang, by their progress and not only by time, and times what happens between two starts."""

import asyncio
import contextlib
import math
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields

import psutil

from foundation.errors import MaiError
from serverctl.diagnose.classify import Failure
from serverctl.diagnose.failures import Kind
from serverctl.diagnose.ladder import Step
from serverctl.hardware.facts import Hardware
from serverctl.hardware.nvidia import ask_nvml
from serverctl.load.client import Endpoint
from serverctl.load.metrics import ServerMetrics
from serverctl.plan.goal import Plan
from serverctl.process import probe
from serverctl.process.state import Heartbeat

#: Interval between two checks of a start, seconds.
_LOOK_EVERY = 1.0
#: Share of one CPU core below which processes are idle (answering our own checks takes less), and above which they
#: compute.
_IDLE, _WORKS = 0.02, 0.1
#: The engine counts as hanging after this many missed heartbeats in a row.
_MOST_MISSED = 2
#: A server that does not answer `/health` for longer than this counts as degraded, seconds.
_DEAF_TOLD = 2.0
#: vLLM updates its counters shortly after its answer; wait this long, seconds.
_COUNTED = 0.3


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts in seconds. The variable MAI_SERVER_STALL_SECONDS overrides `stall`, and so on for each."""

    # A start without any progress for this long is stuck. A first compilation prints nothing for minutes.
    stall: float = 300.0
    silent: float = 2700.0  # limit for a busy CPU without output, because an endless loop is busy, too
    answer: float = 120.0  # for one token about an image at the end of a start: may compile what the warm-up left out
    # A serving engine without an answer to /health for this long is dead, even if its process computes.
    deaf: float = 120.0
    # An idle engine is asked for one token at this interval and must answer within `beat_answer`. After two misses in
    # a row it counts as hanging.
    beat: float = 10.0
    beat_answer: float = 8.0
    hold: float = 300.0  # for a request that comes while the engine is away
    memory: float = 30.0  # for a card's memory to become free after a process ended
    # After an unanswered readiness question: an engine that crashed takes its API server down within three seconds, and
    # its last output has the cause.
    last_words: float = 5.0


def timeouts() -> Timeouts:
    """Return the timeouts, with overrides from the environment. Only positive finite numbers count."""
    found: dict[str, float] = {}
    for field in fields(Timeouts):
        with suppress(KeyError, ValueError):
            found[field.name] = float(os.environ[f"MAI_SERVER_{field.name.upper()}_SECONDS"])
    return Timeouts(**{name: value for name, value in found.items() if 0 < value < math.inf})


def processor_seconds(pid: int | None) -> float:
    """Return the CPU seconds of a process and its descendants; 0 if it is gone."""
    total = 0.0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                times = each.cpu_times()
                total += times.user + times.system
    return total


class StallWatch:
    """Detects a stuck start. `progress` returns values that change with progress: output lines, downloaded bytes."""

    def __init__(self, progress: Callable[[], tuple[object, ...]], timeouts: Timeouts) -> None:
        self._progress = progress
        self._limit = timeouts.stall
        self._silent = max(timeouts.silent, timeouts.stall)
        self._seen: tuple[object, ...] = ()
        self._memory: int | None = None
        self._next = 0.0
        self._changed = self._spoke = time.monotonic()
        self._cpu = processor_seconds(os.getpid())  # includes the supervisor's own time

    async def check(self) -> str:
        """Return the reason if the start is stuck, "" otherwise. Checks at most once a second."""
        now = time.monotonic()
        if now < self._next:
            return ""
        self._next = now + _LOOK_EVERY
        seen = self._progress()
        if seen != self._seen:
            self._seen = seen
            self._changed = self._spoke = now
            return ""
        if now - self._changed < self._limit / 2:
            return ""
        # CPU time and GPU memory are more expensive to read, so only after a long silence.
        cpu, memory = await asyncio.gather(
            asyncio.to_thread(processor_seconds, os.getpid()), asyncio.to_thread(_card_memory)
        )
        if cpu - self._cpu > 0.2 * self._limit or memory != self._memory:
            self._cpu, self._memory = cpu, memory
            self._changed = now
        if now - self._changed >= self._limit:
            return f"no line of output, no download, no work of the processor for {now - self._changed:.0f} s"
        if now - self._spoke >= self._silent:
            return f"no line of output for {now - self._spoke:.0f} s, though the processor was busy"
        return ""


def _card_memory() -> int | None:
    """Return the used memory of all cards in units of 64 MiB; None without cards."""
    answer = ask_nvml()
    if answer is None:
        return None
    return sum((gpu.total_bytes - (gpu.free_bytes or 0)) >> 26 for gpu in answer[0])


@dataclass(frozen=True, slots=True)
class Beat:
    """The result of one heartbeat check of the engine."""

    trouble: str = ""  # why the check failed; "" if the engine works
    seconds: float | None = None  # duration of the token; None if none was requested
    asked: bool = False  # whether a token was requested


class Watchdog:
    """Watches a ready server: its API server by `/health`, its engine by heartbeats. `heartbeat` is the last one.

    Changing counters and CPU time show that the engine computes. Otherwise it is asked for one token. A token may take
    `slow` seconds, as long as the readiness question took; on the CPU (`on_processor`) and on a busy machine much
    longer.
    """

    def __init__(
        self, server: Endpoint, pid: int | None, timeouts: Timeouts, slow: float = 0.0, on_processor: bool = False
    ) -> None:
        self._server, self._pid, self._timeouts, self._on_processor = server, pid, timeouts, on_processor
        self._patience = max(timeouts.beat_answer, min(slow, 60.0))
        self._seen: tuple[object, ...] = ()
        self._moved = self._looked = time.monotonic()
        self._worked = self._processor_time()
        self._deaf_since: float | None = None
        self._next_beat = time.monotonic() + timeouts.beat
        self._missed = ""
        self.heartbeat = Heartbeat(at=time.time())

    def look(self) -> tuple[str, str]:
        """Return the current problem, and why the server counts as dead; "" each if there is none. Blocking."""
        started = time.monotonic()
        healthy = probe.is_healthy(self._server, min(5.0, self._timeouts.deaf))
        self._deaf_since = None if healthy else self._deaf_since or started
        if time.monotonic() >= self._next_beat:
            self._take(self.beat())
        deaf = 0.0 if self._deaf_since is None else time.monotonic() - self._deaf_since
        trouble = f"A heartbeat was missed: {self._missed}." if self._missed else ""
        if deaf > _DEAF_TOLD:
            trouble = "Does not answer /health."
        if deaf >= self._timeouts.deaf:
            return trouble, f"no answer to /health for {self._timeouts.deaf:.0f} s"
        if self.heartbeat.missed >= _MOST_MISSED:
            return trouble, f"{self.heartbeat.missed} heartbeats missed in a row: {self._missed}"
        return trouble, ""

    def _take(self, beat: Beat) -> None:
        asked = self.heartbeat.asked + beat.asked
        self._missed = beat.trouble
        if beat.trouble:  # a token request already took its timeout, so repeat it at once; otherwise wait half a beat
            self._next_beat = time.monotonic() + (0.0 if beat.asked else self._timeouts.beat / 2)
            self.heartbeat = self.heartbeat.model_copy(update={"missed": self.heartbeat.missed + 1, "asked": asked})
            return
        self.heartbeat = Heartbeat(at=time.time(), seconds=beat.seconds, asked=asked)
        self._next_beat = time.monotonic() + self._timeouts.beat

    def beat(self) -> Beat:
        """Check once whether the engine works. Blocking, for up to the timeout of an answer."""
        metrics = probe.read_metrics(self._server)
        now = time.monotonic()
        worked, elapsed = self._processor_time(), now - self._looked
        busy = worked - self._worked > _IDLE * elapsed
        self._worked, self._looked = worked, now
        if metrics is None:  # no counters, or the API server does not answer: only the CPU time is left
            return Beat() if busy else self._ask()
        if metrics.sleeping or self._has_moved(metrics):
            return Beat()
        if not (metrics.running or metrics.waiting):
            return self._ask()
        silent = now - self._moved
        if busy and silent < self._timeouts.stall:
            return Beat()  # one step with a large image takes long on the CPU
        return Beat(f"requests wait in the engine, and nothing came of them for {silent:.0f} s")

    def _ask(self) -> Beat:
        began = time.monotonic()
        answer = probe.ask_model(self._server, image=False, seconds=self._patience)
        took = time.monotonic() - began
        alive = answer.status is not None and answer.status < 500
        if alive:
            time.sleep(_COUNTED)
        after = probe.read_metrics(self._server)
        moved = after is not None and self._has_moved(after)  # it was busy with another request
        if alive or moved:
            return Beat(seconds=took if alive else None, asked=True)
        worked, silent = self._processor_time() - self._worked, time.monotonic() - self._moved
        if self._on_processor and worked > _WORKS * took and silent < self._timeouts.stall:
            return Beat(asked=True)  # it still computes the token
        return Beat(f"the engine gave no token within {took:.0f} s", asked=True)

    def _has_moved(self, metrics: ServerMetrics) -> bool:
        """Return whether the engine's counters changed since the last check."""
        names = ("prompt_tokens", "generation_tokens", "finished", "kv_usage", "preemptions")
        seen = tuple(getattr(metrics, name) for name in names)
        moved = bool(self._seen) and seen != self._seen
        if moved or not self._seen:
            self._moved = time.monotonic()
        self._seen = seen
        return moved

    def _processor_time(self) -> float:
        return 0.0 if self._pid is None else processor_seconds(self._pid)


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
