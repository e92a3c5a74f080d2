"""Runs a bench: setting after setting, several requests at once, within a time limit, until it is stopped.

The client is ours, because guidellm 0.8 would install PyTorch with CUDA beside the agent (seen with pip, 2026).
"""

import asyncio
import gc
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from foundation.chat_stream import AnswerReader
from foundation.errors import MaiError, UsageError
from serverctl.load.bench.report import Cut, Measurement, Report, Sample, ServerDiedError, ServerSide, server_side
from serverctl.load.bench.workload import Load, Setting
from serverctl.load.client import TRANSIENT, Endpoint, Failure, connect, explain, is_alive
from serverctl.load.tasks import EndedEarlyError, together, unless_stopped
from serverctl.load.window import Snapshot, snapshot_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")

#: The longest wait for a piece of an answer, in seconds: the agent's own patience.
_SILENCE_S = 300.0
#: Seconds to wait, because the server counts a request shortly after its last token.
_SETTLE_S = 0.3

_USAGE: Mapping[str, Any] = {"stream_options": {"include_usage": True}}
#: Optional parts of a request, to try in this order until the server accepts one. The first asks for answers of equal
#: length. It also keeps special tokens as text: otherwise, text after an ignored end-of-text token would be invisible,
#: and its time would be lost.
_EXTRAS: Sequence[Mapping[str, Any]] = (
    {**_USAGE, "extra_body": {"ignore_eos": True, "skip_special_tokens": False}},
    _USAGE,
    {},
)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a bench."""

    setting: Setting  # that is being measured
    done: int  # measured requests of all settings
    total: int  # measured requests that there will be
    phase: str  # "preparing" while screenshots are drawn, then "measuring"


OnProgress: TypeAlias = Callable[[Progress], None]


class _CutError(Exception):
    """The run ends here; the arguments are those of `Cut`."""


async def measure(
    name: str,
    endpoint: Endpoint,
    workload: Load,
    *,
    progress: OnProgress = lambda _: None,
    stop: asyncio.Event | None = None,
    max_seconds: float = 1800.0,
    allow_remote: bool = False,
    part: tuple[int, int] = (0, 1),
    run_name: str | None = None,
) -> Report:
    """Measure a running server. If `stop` is set or the time is up, the report says that it was cut.

    The `part` (1, 3) sends the second third of the requests. The same `run_name` gives the same requests, which are new
    only to a server that has not had them. None makes a new name.

    Raises UsageError for a server on another machine unless that is allowed, ServerDiedError with the report if it
    died, and MaiError if it refuses this workload.
    """
    if not endpoint.is_local and not allow_remote:
        raise UsageError(
            f"{endpoint.base_url} is not on this machine, and a bench loads a server fully.",
            "Allow it with --allow-remote where the server is yours.",
        )
    run_name, stop = run_name or secrets.token_hex(8), stop or asyncio.Event()
    cut: Cut | None = None
    async with connect(endpoint, _SILENCE_S) as client:
        bench = _Bench(name, client, endpoint, workload, progress, stop, max_seconds, part, run_name)
        try:
            await bench.run()
        except _CutError as error:
            cut = Cut(*error.args)
    report = bench.report(cut)
    if cut is not None and cut.kind == "server":
        raise ServerDiedError(cut.message, report)
    return report


@dataclass(slots=True)
class _Bench:
    """Sends requests to one server, and measures how long a user would wait."""

    name: str
    client: "AsyncOpenAI"
    endpoint: Endpoint
    workload: Load
    progress: OnProgress
    stop: asyncio.Event
    max_seconds: float
    part: tuple[int, int]
    run_name: str
    left_out: int = 0  # index in _EXTRAS of the options that the server accepts
    measurements: list[Measurement] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    done: int = 0  # requests measured in the settings before this one
    answered: bool = False  # whether the server has answered at all
    died: bool = False
    setting: Setting = field(init=False)  # that is being measured
    chats: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # its requests, by number
    samples: list[Sample] = field(default_factory=list)
    seconds: float = 0.0  # in which this server had requests
    before: Snapshot | None = None  # its counters

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The numbers of the requests of this part: each group is one client's, in order."""
        index, count = self.part
        groups = list(self.workload.groups)
        return groups[len(groups) * index // count : len(groups) * (index + 1) // count]

    def report(self, cut: Cut | None) -> Report:
        measured, notes, server = tuple(self.measurements), tuple(self.notes), self.endpoint
        return Report(self.name, server.model, server.base_url, self.workload, self.run_name, measured, notes, cut)

    def _tell(self, phase: str) -> None:
        total = self.workload.total // self.part[1]
        self.progress(Progress(self.setting, self.done + len(self.samples), total, phase))

    async def run(self) -> None:
        """Measure every setting. Raises _CutError, and MaiError if the server refuses them all."""
        for setting in self.workload.settings():
            if await self._begin(setting):
                try:
                    await self._send()
                finally:
                    await self._end()
        if self.refusals and not self.measurements:
            raise MaiError(
                f"The server cannot be measured with this workload. {self.refusals[0]}",
                "Change --size, --images, --text-tokens or --max-tokens, or start it with other limits.",
            )

    async def _begin(self, setting: Setting) -> bool:
        """Prepare a setting: its chats, and one unmeasured request.

        Return whether the server accepts the setting. Raises _CutError.
        """
        self.setting, self.samples, self.chats = setting, [], {}
        self._tell("preparing")
        for number in (-1, *(number for group in self.groups for number in group)):
            if setting.cache == "warm" and number >= 0:  # all requests of a warm setting are the same
                self.chats[number] = self.chats[-1]
            else:
                drawing = asyncio.to_thread(self.workload.messages, setting, number, self.run_name)
                self.chats[number] = await self._until_cut(drawing)
        if (failure := await self._until_cut(self._warm_up(self.chats[-1]))) is not None:
            self.refusals.append(failure.message)
            self.notes.append(f"{setting}: not measured. {failure.message}")
            return False
        self.before = await asyncio.to_thread(snapshot_of, self.endpoint)
        self._tell("measuring")
        return True

    async def _send(self) -> None:
        """Send the groups of requests, as many groups at once as the setting says. Raises _CutError."""
        origin = time.perf_counter()
        left = iter(self.groups)

        async def work() -> None:
            for group in left:
                for number in group:
                    sample = await self.ask(self.chats[number], origin, number)
                    self.samples.append(sample)
                    self._tell("measuring")
                    await self._check_alive(sample)
                    await asyncio.sleep(self.workload.pause_after(number))

        gc.collect()
        gc.freeze()  # a full collection takes 20 ms, which would count as the server's time
        try:
            await self._until_cut(together([work() for _ in range(self.setting.concurrency)]))
        finally:
            gc.unfreeze()
            ends = [sample.sent_ms + sample.total_ms for sample in self.samples]
            self.seconds = max(ends, default=0.0) / 1000

    async def _end(self) -> None:
        server = ServerSide()
        if not self.died:
            await asyncio.sleep(_SETTLE_S)
            server = server_side(self.before, await asyncio.to_thread(snapshot_of, self.endpoint))
        planned = sum(map(len, self.groups))
        if self.samples:
            complete = len(self.samples) == planned
            max_tokens = self.workload.max_tokens if self.setting.cache != "replayed" else 0
            self.measurements.append(
                Measurement(self.setting, tuple(self.samples), self.seconds, server, max_tokens, complete)
            )
        self.done += planned

    async def negotiate(self, messages: Sequence[dict[str, Any]]) -> Sample:
        """Ask once without measuring, and omit optional parts that the server rejects from then on."""
        known = self.left_out
        first = sample = await self.ask(messages, 0.0)
        while sample.failure and sample.failure.status in (400, 422) and self.left_out + 1 < len(_EXTRAS):
            self.left_out += 1
            sample = await self.ask(messages, 0.0)
        if sample.failure is not None:
            self.left_out, sample = known, first  # the options were not the cause
        return sample

    async def ask(self, messages: Sequence[dict[str, Any]], origin: float, number: int | None = None) -> Sample:
        """Send one timed request; failures are in the sample. Its setting began at `origin` (perf_counter)."""
        tokens = self.workload.max_tokens if number is None else self.workload.answer_tokens(number)
        request: dict[str, Any] = {"model": self.endpoint.model, "messages": list(messages), "stream": True}
        request |= {"max_tokens": tokens, "temperature": 0, **_EXTRAS[self.left_out]}
        reader = AnswerReader()
        first: float | None = None  # when the first piece with text came
        failure: Failure | None = None
        sent = ended = time.perf_counter()
        try:
            async with await self.client.chat.completions.create(**request) as stream:
                async for chunk in stream:
                    now = time.perf_counter()
                    if reader.take(chunk) and first is None:
                        first = now
                    if chunk.choices:  # the last token may have no text, and token counts come after the end
                        ended = now
        except Exception as error:  # broken streams surface as whatever the transport or the JSON reader raises
            failure, ended = explain(error), time.perf_counter()
        answer = reader.answer()
        if failure is None and answer.finish_reason is None:
            failure, ended = Failure("broken", "The server ended the answer in the middle."), time.perf_counter()
        elif failure is None and first is None:
            failure = Failure("broken", "The server's answer holds no text.")
        return Sample(
            sent_ms=(sent - origin) * 1000,
            ttft_ms=None if first is None else (first - sent) * 1000,
            total_ms=(ended - sent) * 1000,
            prompt_tokens=answer.usage.prompt,
            completion_tokens=answer.usage.completion,
            cached_tokens=answer.usage.cached,
            failure=failure,
            number=number or 0,
        )

    async def _warm_up(self, chat: list[dict[str, Any]]) -> Failure | None:
        """Send one request that is not measured: it fills the caches of a warm setting, and triggers late loading."""
        sample = await (self.ask(chat, 0.0) if self.answered else self.negotiate(chat))
        if await self._check_alive(sample):
            sample = await self.negotiate(chat)  # retry once: nothing is measured yet
        if sample.failure is None and not self.answered:
            self.answered = True
            if self.left_out:
                self.notes.append("the server cannot be told to ignore the end of text: answers differ in length.")
            if sample.completion_tokens is None:
                self.notes.append("the server tells no token counts: times per token and token rates are unknown.")
        return sample.failure

    async def _check_alive(self, sample: Sample) -> bool:
        """Whether a request failed with a transient error. Raises _CutError for a dead server."""
        if sample.failure is None or sample.failure.kind not in TRANSIENT:
            return False
        if not await is_alive(self.endpoint):
            self.died = True
            raise _CutError("server", f"The server at {self.endpoint.base_url} died during the measurement.")
        return True

    async def _until_cut(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for something, unless the run is stopped or its time is up first. Raises _CutError."""
        left = max(0.0, self.began + self.max_seconds - time.monotonic())
        try:
            return await unless_stopped(self.stop, work, left)
        except EndedEarlyError:
            raise _CutError("stopped", "The bench was stopped.") from None
        except TimeoutError:
            raise _CutError("time", f"The bench was cut off after its {self.max_seconds:.0f} seconds.") from None
