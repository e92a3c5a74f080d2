"""One request, timed as a person feels it: when the first word comes, how fast the others follow, when it is over."""

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foundation.chat_stream import AnswerReader
from serverctl.load.client import Endpoint, Failure, explain

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_USAGE: Mapping[str, Any] = {"stream_options": {"include_usage": True}}
#: The parts of a request that not every server knows, and less and less of them for one that refuses. First answers of
#: exactly the same length: special tokens are kept as text then, because what comes after an ignored end of text would
#: otherwise be invisible, and its time with it.
_EXTRAS: Sequence[Mapping[str, Any]] = (
    {**_USAGE, "extra_body": {"ignore_eos": True, "skip_special_tokens": False}},
    _USAGE,
    {},
)


@dataclass(frozen=True, slots=True)
class Sample:
    """What one request took. Times are in milliseconds; None is what the server did not tell or do."""

    sent_ms: float  # from the beginning of its setting
    ttft_ms: float | None  # from sending to the first piece with text
    total_ms: float  # from sending to the end of the answer, or to the failure
    # Between pieces with text. A piece may hold several tokens (speculative decoding, characters of many bytes), so the
    # time per token is `tpot_ms`.
    gaps_ms: tuple[float, ...] = ()
    prompt_tokens: int | None = None  # as the server counts them, image tokens included
    completion_tokens: int | None = None
    cached_tokens: int | None = None  # of the prompt, those that came from the prefix cache
    failure: Failure | None = None  # why there is no answer
    number: int = 0  # which request of its setting it is

    @property
    def tpot_ms(self) -> float | None:
        """Time per output token after the first, in milliseconds: (total - first) / (tokens - 1)."""
        if self.ttft_ms is None or self.completion_tokens is None or self.completion_tokens < 2:
            return None
        return (self.total_ms - self.ttft_ms) / (self.completion_tokens - 1)


@dataclass(slots=True)
class Asker:
    """Sends timed requests to one server."""

    client: "AsyncOpenAI"
    endpoint: Endpoint
    max_tokens: int  # length of every answer
    left_out: int = 0  # how far down _EXTRAS the server had to be met

    @property
    def equal_lengths(self) -> bool:
        """Whether all answers have the same length."""
        return self.left_out == 0

    async def negotiate(self, messages: Sequence[dict[str, Any]]) -> Sample:
        """Ask once without measuring, and leave out from then on what the server refuses to know."""
        known, first = self.left_out, None
        for self.left_out in range(known, len(_EXTRAS)):
            sample = await self.ask(messages, time.perf_counter())
            if sample.failure is None:
                return sample
            first = first or sample
            if sample.failure.status not in (400, 422):
                break
        self.left_out = known  # it was not the options
        assert first is not None
        return first

    async def ask(self, messages: Sequence[dict[str, Any]], origin: float, max_tokens: int | None = None) -> Sample:
        """One timed request; whatever goes wrong is in the sample. Its setting began at `origin` (perf_counter).

        Its answer gets `max_tokens`, None for as many as the longest.
        """
        request: dict[str, Any] = {"model": self.endpoint.model, "messages": list(messages), "stream": True}
        request |= {"max_tokens": max_tokens or self.max_tokens, "temperature": 0, **_EXTRAS[self.left_out]}
        reader = AnswerReader()
        pieces: list[float] = []  # when each came
        failure: Failure | None = None
        sent = ended = time.perf_counter()
        try:
            async with await self.client.chat.completions.create(**request) as stream:
                async for chunk in stream:
                    now = time.perf_counter()
                    if reader.take(chunk):
                        pieces.append(now)
                    if chunk.choices:  # the last token may have no text, and token counts come after the end
                        ended = now
        except Exception as error:  # broken streams surface as whatever the transport or the JSON reader raises
            failure, ended = explain(error), time.perf_counter()
        answer = reader.answer()
        if failure is None and answer.finish_reason is None:
            failure, ended = Failure("broken", "The server ended the answer in the middle."), time.perf_counter()
        elif failure is None and not pieces:
            failure = Failure("broken", "The server's answer holds no text.")
        return Sample(
            sent_ms=(sent - origin) * 1000,
            ttft_ms=(pieces[0] - sent) * 1000 if pieces else None,
            total_ms=(ended - sent) * 1000,
            gaps_ms=tuple((later - earlier) * 1000 for earlier, later in itertools.pairwise(pieces)),
            prompt_tokens=answer.usage.prompt,
            completion_tokens=answer.usage.completion,
            cached_tokens=answer.usage.cached,
            failure=failure,
        )
