"""Carries a bench out: setting after setting, so many requests at once, within a time, until it is stopped."""

import asyncio
import gc
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from foundation.errors import MaiError, UsageError
from serverctl.bench.counters import ServerSide, read_counters, server_side
from serverctl.bench.report import Cut, Measurement, Report, ServerDiedError
from serverctl.bench.sample import Asker, Sample
from serverctl.bench.workload import Setting, Workload
from serverctl.chat import TRANSIENT, Endpoint, connect, is_alive
from serverctl.tasks import EndedEarlyError, together, unless_stopped

T = TypeVar("T")

#: A request is never waited for longer than this, in seconds: as long as the agent's own patience.
_SILENCE_S = 300.0
#: The server counts a request a moment after its last token was sent.
_SETTLE_S = 0.3


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a bench is."""

    setting: Setting  # what is being measured
    done: int  # measured requests of all settings
    total: int  # measured requests that there will be
    phase: str  # "preparing" while screenshots are drawn, then "measuring"


OnProgress: TypeAlias = Callable[[Progress], None]


class _CutError(Exception):
    """The run ends here: what a `Cut` is made from."""


async def measure(
    endpoint: Endpoint,
    workload: Workload,
    *,
    name: str = "server",
    progress: OnProgress = lambda _: None,
    stop: asyncio.Event | None = None,
    max_seconds: float = 1800.0,
    allow_remote: bool = False,
) -> Report:
    """Measure a running server, until `stop` is set or the time is up: then the report says that it was cut.

    Raises:
        UsageError: the server is not on this machine, and that was not allowed.
        ServerDiedError: the server died; it holds the report of what was measured.
        MaiError: the server refuses this workload.
    """
    if not endpoint.is_local and not allow_remote:
        raise UsageError(
            f"{endpoint.base_url} is not on this machine, and a bench loads a server fully.",
            "Allow it with --allow-remote where the server is yours.",
        )
    cut: Cut | None = None
    async with connect(endpoint, _SILENCE_S) as client:
        asker = Asker(client, endpoint, workload.max_tokens)
        bench = _Bench(asker, workload, progress, stop or asyncio.Event(), max_seconds)
        try:
            await bench.run()
        except _CutError as error:
            cut = Cut(*error.args)
    report = Report(
        name=name,
        model=endpoint.model,
        base_url=endpoint.base_url,
        workload=workload,
        run=bench.run_name,
        measurements=tuple(bench.measurements),
        notes=tuple(bench.notes),
        cut=cut,
    )
    if cut is not None and cut.kind == "server":
        raise ServerDiedError(report)
    return report


@dataclass(slots=True)
class _Bench:
    """The state of one run."""

    asker: Asker
    workload: Workload
    progress: OnProgress
    stop: asyncio.Event
    max_seconds: float
    run_name: str = field(default_factory=lambda: secrets.token_hex(8))
    measurements: list[Measurement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    before: int = 0  # requests measured in the settings before this one
    answered: bool = False  # whether the server has answered at all

    async def run(self) -> None:
        """Every setting. Raises _CutError, and MaiError where the server refuses them all."""
        refusals: list[str] = []
        for setting in self.workload.settings():
            refusal = await self._measure(setting)
            if refusal is not None:
                refusals.append(refusal)
                self.notes.append(f"{setting}: not measured. {refusal}")
            self.before += self.workload.requests
        if refusals and not self.measurements:
            raise MaiError(
                f"The server cannot be measured with this workload. {refusals[0]}",
                "Change --size, --images, --text-tokens or --max-tokens, or start it with other limits.",
            )

    async def _measure(self, setting: Setting) -> str | None:
        """Measure one setting; the reason where the server refuses it. Raises _CutError."""

        def tell(done: int, phase: str) -> None:
            self.progress(Progress(setting, self.before + done, self.workload.total, phase))

        tell(0, "preparing")
        # The first one is not measured; the chats of a warm setting are all the same.
        numbers = range(-1, 0 if setting.cache == "warm" else self.workload.requests)
        first, *cold = [await self._until_cut(asyncio.to_thread(self._chat, setting, number)) for number in numbers]
        chats = cold or [first]
        refusal = await self._until_cut(self._warm_up(first))
        if refusal is not None:
            return refusal
        before = await self._counters()
        samples: list[Sample] = []
        tell(0, "measuring")
        origin = time.perf_counter()
        left = iter(range(self.workload.requests))

        async def work() -> None:
            for number in left:
                sample = await self.asker.ask(chats[number % len(chats)], origin)
                samples.append(sample)
                tell(len(samples), "measuring")
                await self._check_alive(sample)

        cut: _CutError | None = None
        lag = _Lag()
        gc.collect()
        gc.freeze()  # a collection of everything takes 20 ms, which would be taken for the server's
        try:
            async with lag:
                await self._until_cut(together([work() for _ in range(setting.concurrency)]))
        except _CutError as error:
            cut = error
        finally:
            gc.unfreeze()
        seconds = max((sample.sent_ms + sample.total_ms for sample in samples), default=0.0) / 1000
        died = cut is not None and cut.args[0] == "server"
        if not died:
            await asyncio.sleep(_SETTLE_S)
        server = ServerSide() if died else server_side(before, await self._counters())
        if samples:
            asked, complete = self.workload.max_tokens, cut is None
            measurement = Measurement(setting, tuple(samples), seconds, server, asked, lag.most_ms, complete)
            self.measurements.append(measurement)
        if cut is not None:
            raise cut
        return None

    def _chat(self, setting: Setting, number: int) -> list[dict[str, Any]]:
        return self.workload.messages(setting, number, self.run_name)

    async def _warm_up(self, chat: list[dict[str, Any]]) -> str | None:
        """Send one request that is not measured: it fills the caches of a warm setting, and loads what loads late.

        Returns:
            Why the server refuses it, in one sentence; None where it was answered.
        """
        sample = await (self.asker.ask(chat, 0.0) if self.answered else self.asker.negotiate(chat))
        if await self._check_alive(sample):
            sample = await self.asker.negotiate(chat)  # a hiccup while nothing is measured is worth a second try
        if sample.failure is not None:
            return sample.failure.message
        if not self.answered:
            self.answered = True
            if not self.asker.equal_lengths:
                self.notes.append("the server cannot be told to ignore the end of text: answers differ in length.")
            if sample.completion_tokens is None:
                self.notes.append("the server tells no token counts: times per token and token rates are unknown.")
        return None

    async def _check_alive(self, sample: Sample) -> bool:
        """Whether a request failed by something that may be over in a moment. Raises _CutError where it is not."""
        if sample.failure is None or sample.failure.kind not in TRANSIENT:
            return False
        endpoint = self.asker.endpoint
        if not await is_alive(self.asker.client, endpoint):
            raise _CutError("server", f"The server at {endpoint.base_url} died during the measurement.")
        return True

    async def _counters(self) -> Mapping[str, float] | None:
        return await asyncio.to_thread(read_counters, self.asker.endpoint)

    async def _until_cut(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for something, unless the run is stopped or its time is up first. Raises _CutError."""
        left = max(0.0, self.began + self.max_seconds - time.monotonic())
        try:
            return await unless_stopped(self.stop, work, left)
        except EndedEarlyError:
            raise _CutError("stopped", "The bench was stopped.") from None
        except TimeoutError:
            raise _CutError("time", f"The bench was cut off after its {self.max_seconds:.0f} seconds.") from None


class _Lag:
    """How long the event loop was held up at most while this context lasted: what the server did not take."""

    _BEAT_S = 0.01

    def __init__(self) -> None:
        self.most_ms = 0.0

    async def __aenter__(self) -> None:
        self._task = asyncio.ensure_future(self._watch())

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(self._BEAT_S)
            self.most_ms = max(self.most_ms, (time.perf_counter() - began - self._BEAT_S) * 1000)
