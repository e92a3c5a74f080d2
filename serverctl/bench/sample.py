"""One request, timed as a person feels it: when the first word comes, how fast the others follow, when it is over."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foundation.chat_stream import AnswerReader
from serverctl.chat import Endpoint, Failure, explain

if TYPE_CHECKING:
    from openai import AsyncOpenAI


@dataclass(frozen=True, slots=True)
class Sample:
    """What one request took. Times are in milliseconds; None is what the server did not tell or do.

    Args:
        sent_ms: when it was sent, from the beginning of its setting.
        ttft_ms: from sending to the first piece with text.
        total_ms: from sending to the end of the answer, or to the failure.
        gaps_ms: between pieces with text. A piece may hold several tokens (speculative decoding, characters of many
            bytes), so the time per token is `tpot_ms`.
        prompt_tokens: as the server counts them, image tokens included.
        completion_tokens: likewise.
        cached_tokens: of the prompt, those that came from the prefix cache.
        failure: why there is no answer.
    """

    sent_ms: float
    ttft_ms: float | None
    total_ms: float
    gaps_ms: tuple[float, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    failure: Failure | None = None

    @property
    def tpot_ms(self) -> float | None:
        """Time per output token after the first, in milliseconds: (total - first) / (tokens - 1)."""
        if self.ttft_ms is None or self.completion_tokens is None or self.completion_tokens < 2:
            return None
        return (self.total_ms - self.ttft_ms) / (self.completion_tokens - 1)


@dataclass(frozen=True, slots=True)
class Options:
    """The parts of a request that not every server knows.

    Args:
        equal_lengths: ask for answers of exactly the same length. Special tokens are kept as text too: what comes
            after an ignored end of text would otherwise be invisible, and its time with it.
        usage: ask for token counts.
    """

    equal_lengths: bool = True
    usage: bool = True


#: What is tried in turn with a server that refuses something.
_FALLBACKS = (Options(), Options(equal_lengths=False), Options(equal_lengths=False, usage=False))


@dataclass(slots=True)
class Asker:
    """Sends timed requests to one server.

    Args:
        client: of the server.
        endpoint: the server.
        max_tokens: length of every answer.
        options: what the server knows, as far as was found out.
    """

    client: "AsyncOpenAI"
    endpoint: Endpoint
    max_tokens: int
    options: Options = Options()

    async def negotiate(self, messages: Sequence[dict[str, Any]]) -> Sample:
        """Ask once without measuring, and leave out from then on what the server refuses to know."""
        known = self.options
        first: Sample | None = None
        for self.options in _FALLBACKS[_FALLBACKS.index(known) :]:
            sample = await self.ask(messages, time.perf_counter())
            if sample.failure is None:
                return sample
            first = first or sample
            if sample.failure.status not in (400, 422):
                break
        self.options = known  # it was not the options
        assert first is not None
        return first

    async def ask(self, messages: Sequence[dict[str, Any]], origin: float) -> Sample:
        """One timed request; whatever goes wrong is in the sample.

        Args:
            messages: the chat.
            origin: `time.perf_counter()` at the beginning of its setting.
        """
        reader = AnswerReader()
        pieces: list[float] = []  # when each came
        failure: Failure | None = None
        sent = ended = time.perf_counter()
        try:
            async with await self.client.chat.completions.create(**self._request(messages)) as stream:
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

    def _request(self, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": list(messages),
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "stream": True,
        }
        if self.options.usage:
            request["stream_options"] = {"include_usage": True}
        if self.options.equal_lengths:
            request["extra_body"] = {"ignore_eos": True, "skip_special_tokens": False}
        return request
