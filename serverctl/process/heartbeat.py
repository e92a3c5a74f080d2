"""Whether the engine of a server that is ready lives: `/health` only says that its API server does.

An engine that computes is left alone: its counters and its processor time tell. One in which nothing moves is asked for
one token.
"""

import time
from dataclasses import dataclass

import psutil

from serverctl.load.metrics import ServerMetrics
from serverctl.process import probe
from serverctl.process.state import Heartbeat
from serverctl.process.timeouts import Timeouts

#: Share of one processor below which processes do nothing (the answers to our own looks take less).
_IDLE = 0.02
#: And above which they compute.
_WORKS = 0.1
#: So many misses in a row, and the engine hangs.
_MOST_MISSED = 2
#: A server that does not answer `/health` for longer than this is told as one that does not, seconds.
_DEAF_TOLD = 2.0
#: vLLM counts a request a moment after it has answered it, seconds.
_COUNTED = 0.3


@dataclass(frozen=True, slots=True)
class Beat:
    """One look at the engine."""

    trouble: str = ""  # how it missed the beat; "" where it lives
    seconds: float | None = None  # how long one token took; None where none was asked for
    asked: bool = False  # whether one was


class Pulse:
    """Looks at one server's engine.

    Args:
        port, key, model, pid: of the server.
        timeouts: how long what may take.
        slow: how long an answer took when nobody else asked, seconds.
        on_processor: whether it computes on the processor, where a busy machine makes one token take very long.
    """

    def __init__(
        self,
        port: int,
        key: str,
        model: str,
        pid: int | None,
        timeouts: Timeouts,
        slow: float = 0.0,
        on_processor: bool = False,
    ) -> None:
        self._port, self._key, self._model, self._pid = port, key, model, pid
        self._on_processor = on_processor
        self._patience = max(timeouts.beat_answer, min(slow, 60.0))
        self._stall = timeouts.stall
        self._seen: tuple[object, ...] = ()
        self._moved = self._looked = time.monotonic()
        self._worked = self._processor_time()

    def look(self) -> Beat:
        """One beat; takes as long as the answer may."""
        metrics = probe.read_metrics(self._port, self._key, 3.0)
        now = time.monotonic()
        worked, elapsed = self._processor_time(), now - self._looked
        busy = worked - self._worked > _IDLE * elapsed
        self._worked, self._looked = worked, now
        if metrics is None:  # no counters, or an API server that does not answer: only the processor tells
            return Beat() if busy else self._ask()
        if metrics.sleeping or self._has_moved(metrics):
            return Beat()
        if not (metrics.running or metrics.waiting):
            return self._ask()
        silent = now - self._moved
        if busy and silent < self._stall:
            return Beat()  # one step of a large picture takes long on a processor
        return Beat(f"requests wait in the engine, and nothing came of them for {silent:.0f} s")

    def _ask(self) -> Beat:
        began = time.monotonic()
        answer = probe.ask_model(self._port, self._key, self._model, image=False, seconds=self._patience)
        took = time.monotonic() - began
        alive = answer.status is not None and answer.status < 500
        if alive:
            time.sleep(_COUNTED)
        after = probe.read_metrics(self._port, self._key, 3.0)
        if after is not None and (self._has_moved(after) or alive):
            return Beat(seconds=took if alive else None, asked=True)  # it was busy with somebody's request
        if alive:
            return Beat(seconds=took, asked=True)
        worked, silent = self._processor_time() - self._worked, time.monotonic() - self._moved
        if self._on_processor and worked > _WORKS * took and silent < self._stall:
            return Beat(asked=True)  # it is at it
        return Beat(f"the engine gave no token within {took:.0f} s", asked=True)

    def _has_moved(self, metrics: ServerMetrics) -> bool:
        """Whether the engine has done anything since the last look, by what it counts."""
        seen = (
            metrics.prompt_tokens,
            metrics.generation_tokens,
            metrics.finished,
            metrics.kv_usage,
            metrics.preemptions,
        )
        moved = bool(self._seen) and seen != self._seen
        if moved or not self._seen:
            self._moved = time.monotonic()
        self._seen = seen
        return moved

    def _processor_time(self) -> float:
        """Seconds that all of the server's processes have computed."""
        try:
            server = psutil.Process(self._pid) if self._pid is not None else None
            processes = [server, *server.children(recursive=True)] if server else []
        except psutil.Error:
            return 0.0
        total = 0.0
        for process in processes:
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system
        return total


@dataclass(frozen=True, slots=True)
class Sight:
    """What a look at a server showed."""

    trouble: str = ""  # a sentence on what is wrong for now
    end: str = ""  # why nothing more is to be expected of it; "" while it may recover


class Watch:
    """Watches a server that is ready, by `/health` and by its engine's pulse.

    `heartbeat` is the engine's last sign of life.
    """

    def __init__(self, port: int, pulse: Pulse, timeouts: Timeouts) -> None:
        self._port, self._pulse, self._timeouts = port, pulse, timeouts
        self._deaf_since: float | None = None
        self._next_beat = time.monotonic() + timeouts.beat
        self._missed = ""
        self.heartbeat = Heartbeat(at=time.time())

    def look(self) -> Sight:
        """One look. Blocking."""
        asked = time.monotonic()
        if probe.is_healthy(self._port, min(5.0, self._timeouts.deaf)):
            self._deaf_since = None
        else:
            self._deaf_since = self._deaf_since or asked
        if time.monotonic() >= self._next_beat:
            self._take(self._pulse.look())
        deaf = 0.0 if self._deaf_since is None else time.monotonic() - self._deaf_since
        trouble = f"A heartbeat was missed: {self._missed}." if self._missed else ""
        if deaf > _DEAF_TOLD:
            trouble = "Does not answer /health."
        if deaf >= self._timeouts.deaf:
            return Sight(trouble, f"no answer to /health for {self._timeouts.deaf:.0f} s")
        if self.heartbeat.missed >= _MOST_MISSED:
            return Sight(trouble, f"{self.heartbeat.missed} heartbeats missed in a row: {self._missed}")
        return Sight(trouble)

    def _take(self, beat: Beat) -> None:
        asked = self.heartbeat.asked + beat.asked
        self._missed = beat.trouble
        if beat.trouble:  # one that was asked had its time; one that was only looked at gets some more
            self._next_beat = time.monotonic() + (0.0 if beat.asked else self._timeouts.beat / 2)
            self.heartbeat = self.heartbeat.model_copy(update={"missed": self.heartbeat.missed + 1, "asked": asked})
            return
        self.heartbeat = Heartbeat(at=time.time(), seconds=beat.seconds, asked=asked)
        self._next_beat = time.monotonic() + self._timeouts.beat
