"""Asks a running server, and is the one place of a batch where anything is tried again."""

import asyncio
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from foundation.chat_stream import AnswerReader
from foundation.errors import EnvironmentLacksError
from serverctl.load.batch.answers import Answer
from serverctl.load.batch.prepare import Prepared
from serverctl.load.client import TRANSIENT, Endpoint, Failure, ServerGoneError, explain, is_alive

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: Pause before the first retry, in seconds; doubled each time, up to the most.
_BACKOFF_S = 0.5
_MOST_BACKOFF_S = 30.0


class Asker(Protocol):
    """Answers requests, many at once."""

    async def ask(self, prepared: Prepared) -> Answer:
        """The answer, or the failure as an answer.

        Raises:
            EnvironmentLacksError: nobody would answer any request of this batch, or (ServerGoneError) nobody is left.
        """
        ...


@dataclass(slots=True)
class HttpAsker:
    """Asks an OpenAI-compatible server."""

    client: "AsyncOpenAI"
    endpoint: Endpoint
    retries: int  # further tries after something transient: a lost connection, no room, a server's own error
    say: Callable[[str], None]  # told when the server is waited for
    waiting: bool = False

    async def ask(self, prepared: Prepared) -> Answer:
        """As `Asker.ask`."""
        for attempt in range(self.retries + 1):
            began = time.monotonic()
            try:
                completion = await self.client.chat.completions.create(**_request(prepared, self.endpoint.model))
                answer = _answer(prepared.id, completion, time.monotonic() - began)
                self.waiting = False
                return answer
            except Exception as error:  # whatever the transport or the JSON reader raises
                failure = explain(error)
            if failure.kind not in TRANSIENT or attempt == self.retries:
                break
            if failure.kind == "unreachable" and not self.waiting:
                self.waiting = True
                self.say(f"{failure.message} Trying again.")
            pause = min(_BACKOFF_S * 2**attempt, _MOST_BACKOFF_S)
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311  # so that not all come back at once
        await self._give_up_on_a_dead_server(failure)
        return Answer(prepared.id, kind=failure.kind, message=failure.message)

    async def _give_up_on_a_dead_server(self, failure: Failure) -> None:
        """Raises where the failure is every request's and not this one's."""
        if failure.kind in ("bad_key", "unknown_model"):
            raise EnvironmentLacksError(failure.message, "Name the right --api-key and --model.")
        if failure.kind in TRANSIENT and not await is_alive(self.client, self.endpoint):
            raise ServerGoneError(
                f"The server at {self.endpoint.base_url} is gone ({failure.message})",
                "Start it again (`mai-server up`), then run the same command: it goes on where it stopped.",
            )


def _request(prepared: Prepared, model: str) -> dict[str, Any]:
    request: dict[str, Any] = {"model": model, "messages": prepared.messages}
    request |= {"max_tokens": prepared.max_tokens, "temperature": prepared.temperature}
    if prepared.schema is not None:
        schema = {"name": "answer", "schema": prepared.schema}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    if prepared.regex is not None:
        request["extra_body"] = {"structured_outputs": {"regex": prepared.regex}}
    return request


def _answer(name: str, completion: Any, seconds: float) -> Answer:
    """An answer out of a completion. Raises ValueError where it holds none."""
    reader = AnswerReader(max_chars=sys.maxsize)  # all of it is here already
    reader.take(completion)
    said = reader.answer()
    if not (said.content or said.reasoning or said.finish_reason):
        raise ValueError("there is no answer in it")
    usage = {
        "prompt_tokens": said.usage.prompt,
        "completion_tokens": said.usage.completion,
        "cached_tokens": said.usage.cached,
    }
    return Answer(name, said.content, said.reasoning or None, said.finish_reason, usage, seconds)
