"""Carries a bench out: setting after setting, so many requests at once, within a time, until it is stopped."""

import asyncio
import gc
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from foundation.errors import MaiError, UsageError
from serverctl.load.bench.counters import ServerSide, read_counters, server_side
from serverctl.load.bench.report import Cut, Measurement, Report, ServerDiedError
from serverctl.load.bench.sample import Asker, Sample
from serverctl.load.bench.workload import Load, Setting
from serverctl.load.client import TRANSIENT, Endpoint, connect, is_alive
from serverctl.load.tasks import EndedEarlyError, together, unless_stopped

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
    workload: Load,
    *,
    name: str = "server",
    progress: OnProgress = lambda _: None,
    stop: asyncio.Event | None = None,
    max_seconds: float = 1800.0,
    allow_remote: bool = False,
    part: tuple[int, int] = (0, 1),
    run_name: str | None = None,
) -> Report:
    """Measure a running server, until `stop` is set or the time is up: then the report says that it was cut.

    Args:
        endpoint: the server.
        workload: what is sent.
        name: of the server among others.
        progress: is told.
        stop: ends it.
        max_seconds: ends it, too.
        allow_remote: whether the server may be on another machine.
        part: which block of how many: (1, 3) sends the second third of the requests.
        run_name: what makes its requests new; the same name makes the same requests. None for a new one.

    Raises:
        UsageError: the server is not on this machine, and that was not allowed.
        ServerDiedError: the server died; it holds the report of what was measured.
        MaiError: the server refuses this workload.
    """
    reports = await measure_together(
        {name: endpoint}, workload, progress=progress, stop=stop, max_seconds=max_seconds,
        allow_remote=allow_remote, part=part, run_name=run_name,
    )  # fmt: skip
    return reports[0]


async def measure_together(
    endpoints: Mapping[str, Endpoint],
    workload: Load,
    *,
    progress: OnProgress = lambda _: None,
    stop: asyncio.Event | None = None,
    max_seconds: float = 1800.0,
    allow_remote: bool = False,
    part: tuple[int, int] = (0, 1),
    run_name: str | None = None,
) -> list[Report]:
    """Measure running servers with the same requests in turn, a few to each, in an order that goes round.

    What the machine does besides meets all of them alike then. Only one server has requests at a time. Arguments and
    exceptions are those of `measure`; a server that dies ends it for all, and ServerDiedError holds its own report.
    """
    for endpoint in endpoints.values():
        if not endpoint.is_local and not allow_remote:
            raise UsageError(
                f"{endpoint.base_url} is not on this machine, and a bench loads a server fully.",
                "Allow it with --allow-remote where the server is yours.",
            )
    run_name, stop = run_name or secrets.token_hex(8), stop or asyncio.Event()
    cut: Cut | None = None
    died: _Bench | None = None
    async with AsyncExitStack() as stack:
        benches: list[_Bench] = []
        for name, endpoint in endpoints.items():
            client = await stack.enter_async_context(connect(endpoint, _SILENCE_S))
            asker = Asker(client, endpoint, workload.max_tokens)
            benches.append(_Bench(name, asker, workload, progress, stop, max_seconds, part, run_name))
        try:
            await _run(benches, workload)
        except _CutError as error:
            cut = Cut(*error.args)
            died = next((bench for bench in benches if bench.died), None)
    reports = [bench.report(cut) for bench in benches]
    if died is not None:
        raise ServerDiedError(reports[benches.index(died)], reports)
    return reports


async def _run(benches: "Sequence[_Bench]", workload: Load) -> None:
    """Every setting. Raises _CutError, and MaiError where a server refuses them all."""
    for setting in workload.settings():
        chats: dict[int, list[dict[str, Any]]] = {}
        ready: list[_Bench] = []
        for bench in benches:
            refusal = await bench.begin(setting, chats)
            if refusal is None:
                ready.append(bench)
            else:
                bench.refusals.append(refusal)
                bench.notes.append(f"{setting}: not measured. {refusal}")
        try:
            for turn, block in enumerate(_blocks(ready, setting)):
                shift = turn % len(ready)
                for bench in (*ready[shift:], *ready[:shift]):
                    await bench.block(block)
        finally:
            for bench in ready:
                await bench.end()
    for bench in benches:
        if bench.refusals and not bench.measurements:
            raise MaiError(
                f"The server cannot be measured with this workload. {bench.refusals[0]}",
                "Change --size, --images, --text-tokens or --max-tokens, or start it with other limits.",
            )


def _blocks(benches: "Sequence[_Bench]", setting: Setting) -> list[list[tuple[int, ...]]]:
    """Groups of requests that one server gets before the next one has its turn: all of them where there is only one."""
    if not benches:
        return []
    groups = benches[0].groups
    size = len(groups) if len(benches) == 1 else setting.concurrency
    return [groups[begin : begin + size] for begin in range(0, len(groups), max(1, size))]


@dataclass(slots=True)
class _Bench:
    """The state of one server's run."""

    name: str
    asker: Asker
    workload: Load
    progress: OnProgress
    stop: asyncio.Event
    max_seconds: float
    part: tuple[int, int]
    run_name: str
    measurements: list[Measurement] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    done: int = 0  # requests measured in the settings before this one
    answered: bool = False  # whether the server has answered at all
    died: bool = False
    setting: Setting | None = None  # that is being measured
    chats: Mapping[int, list[dict[str, Any]]] = field(default_factory=dict)  # its requests, by number
    samples: list[Sample] = field(default_factory=list)
    seconds: float = 0.0  # in which this server had requests
    lag_ms: float = 0.0
    before: Mapping[str, float] | None = None  # its counters

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The numbers of the requests of this part: each group is one client's, in order."""
        index, count = self.part
        groups = list(self.workload.groups)
        return groups[len(groups) * index // count : len(groups) * (index + 1) // count]

    def report(self, cut: Cut | None) -> Report:
        """What was measured."""
        return Report(
            name=self.name,
            model=self.asker.endpoint.model,
            base_url=self.asker.endpoint.base_url,
            workload=self.workload,
            run=self.run_name,
            measurements=tuple(self.measurements),
            notes=tuple(self.notes),
            cut=cut,
        )

    def _tell(self, phase: str) -> None:
        assert self.setting is not None
        total = self.workload.total // self.part[1]
        self.progress(Progress(self.setting, self.done + len(self.samples), total, phase))

    async def begin(self, setting: Setting, chats: dict[int, list[dict[str, Any]]]) -> str | None:
        """Prepare a setting: its chats (only where another server has not), and one request that is not measured.

        Returns:
            Why the server refuses it, in one sentence; None where it was answered. Raises _CutError.
        """
        self.setting, self.samples, self.seconds, self.lag_ms, self.chats = setting, [], 0.0, 0.0, chats
        self._tell("preparing")
        for number in (-1, *(number for group in self.groups for number in group)):
            # All requests of a warm setting are the same.
            if number not in chats:
                if setting.cache == "warm" and number >= 0:
                    chats[number] = chats[-1]
                else:
                    chats[number] = await self._until_cut(asyncio.to_thread(self._chat, setting, number))
        refusal = await self._until_cut(self._warm_up(chats[-1]))
        if refusal is None:
            self.before = await self._counters()
            self._tell("measuring")
        return refusal

    async def block(self, groups: Sequence[tuple[int, ...]]) -> None:
        """Send some groups of requests, as many groups at once as the setting says. Raises _CutError."""
        assert self.setting is not None
        origin = time.perf_counter()
        left = iter(groups)
        first = len(self.samples)

        async def work() -> None:
            for group in left:
                for number in group:
                    tokens = self.workload.answer_tokens(number)
                    sample = await self.asker.ask(self.chats[number], origin, tokens)
                    self.samples.append(replace(sample, number=number))
                    self._tell("measuring")
                    await self._check_alive(sample)
                    await asyncio.sleep(self.workload.pause_after(number))

        lag = _Lag()
        gc.collect()
        gc.freeze()  # a collection of everything takes 20 ms, which would be taken for the server's
        try:
            async with lag:
                await self._until_cut(together([work() for _ in range(self.setting.concurrency)]))
        finally:
            gc.unfreeze()
            ends = [sample.sent_ms + sample.total_ms for sample in self.samples[first:]]
            self.seconds += max(ends, default=0.0) / 1000
            self.lag_ms = max(self.lag_ms, lag.most_ms)

    async def end(self) -> None:
        """Keep what was measured of a setting."""
        assert self.setting is not None
        if not self.died:
            await asyncio.sleep(_SETTLE_S)
        server = ServerSide() if self.died else server_side(self.before, await self._counters())
        if self.samples:
            whole = len(self.samples) == sum(map(len, self.groups))
            asked = self.workload.max_tokens if self.setting.cache != "replayed" else 0
            self.measurements.append(
                Measurement(self.setting, tuple(self.samples), self.seconds, server, asked, self.lag_ms, whole)
            )
        self.done += sum(map(len, self.groups))

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
            self.died = True
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
