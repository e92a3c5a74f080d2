"""What the clients of cloud peers share: the model's name is checked first, and answers are read as events come."""

import asyncio
import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.model.asking import Connection, PatientClient
from agent.model.endpoint import Endpoint
from agent.model.refusals import ModelError, in_words
from agent.model.request import Message
from foundation.chat_stream import Answer, AnswerReader, Piece
from foundation.errors import UsageError
from foundation.refusals import Refusal

#: How long a peer may take to tell of a model, in seconds.
_TELLS_WITHIN = 20.0


class PeerRefusalError(Exception):
    """An event inside of a stream that says why there will be no answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


class PeerClient(PatientClient[Connection]):
    """A cloud peer's client. What it is sent is always its API's own; nothing is left out after a refusal."""

    async def discover(self, prefer: Callable[[str], object] = lambda _: False) -> Endpoint:  # noqa: ARG002
        """The endpoint with the model's context, as far as the peer tells; it must be named.

        Raises ModelError: the peer cannot be asked, refuses the key, or does not serve the model; UsageError: no model
        is named.
        """
        if self.endpoint.model is None:
            raise UsageError(f"{self.endpoint.base_url} serves many models.", "Name one with --model.")
        try:
            context = await asyncio.wait_for(self.context_of(self.endpoint.model), _TELLS_WITHIN)
        except Exception as error:  # whatever the library or the transport raises
            raise self.explained(error) from error
        limits = self.endpoint.limits
        if context:
            self.endpoint = replace(
                self.endpoint, limits=replace(limits, context=min(context, limits.context or context))
            )
        return self.endpoint

    @abstractmethod
    async def context_of(self, model: str) -> int | None:
        """How many tokens a model takes; None where the peer does not say. Raises what the library does."""

    @abstractmethod
    def refusal(self, error: Exception) -> Refusal:
        """What the library or the transport raised, as data."""

    def explained(self, error: Exception) -> ModelError:
        """What the library or the transport raised, as one of ours."""
        if isinstance(error, ModelError):
            return error
        refusal = error.refusal if isinstance(error, PeerRefusalError) else self.refusal(error)
        return in_words(refusal, self.endpoint)


class EventReader:
    """Puts an answer together from a peer's events, each told as a chunk of a chat completion.

    Args:
        told: what an event adds to the answer, in the shape of chunks of chat completions. May raise PeerRefusalError.
        items: the answer so far in the API's own shape.
        max_tokens: the limit that the peer was told.
    """

    def __init__(
        self,
        told: Callable[[Any], Iterable[Mapping[str, Any]]],
        items: Callable[[], Sequence[Any]],
        max_tokens: int,
    ) -> None:
        self._reader = AnswerReader(max_tokens=max_tokens)
        self._told = told
        self._items = items

    def take(self, chunk: Any) -> list[Piece]:
        """What an event adds, in order."""
        return [piece for each in self._told(chunk) for piece in self._reader.take(dict(each))]

    def answer(self) -> Answer:
        """What was said so far."""
        return replace(self._reader.answer(), items=tuple(self._items()))


def said(content: str = "", reasoning: str = "", finish: str | None = None) -> dict[str, Any]:
    """Text, reasoning or the end of an answer as a chunk."""
    delta = {"content": content or None, "reasoning_content": reasoning or None}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def called(index: int, identifier: str = "", name: str = "", arguments: Any = "") -> dict[str, Any]:
    """A tool call, or a piece of its arguments, as a chunk."""
    call = {"index": index, "id": identifier, "function": {"name": name, "arguments": arguments}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def used(prompt: int | None, completion: int | None, cached: int | None) -> dict[str, Any]:
    """The tokens of a request as a chunk."""
    details = {"cached_tokens": cached}
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details}}


def functions(tools: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The functions among a request's tools, each as {name, description, parameters}; and the API's own tools."""
    ours = [tool["function"] for tool in tools if tool.get("type") == "function"]
    return ours, [tool for tool in tools if tool.get("type") != "function"]


def arguments_of(written: str) -> Any:
    """The arguments of a call as an object; an empty one where they cannot be read."""
    try:
        read = json.loads(written or "{}")
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def turns(messages: Sequence[Message]) -> tuple[str, list[tuple[bool, list[Message]]]]:
    """The system text, and the rest by turns: whether the assistant speaks, and its messages in order."""
    system = "\n\n".join(message.said for message in messages if message.role == "system")
    grouped: list[tuple[bool, list[Message]]] = []
    for message in messages:
        if message.role == "system":
            continue
        ours = message.role == "assistant"
        if not grouped or grouped[-1][0] != ours:
            grouped.append((ours, []))
        grouped[-1][1].append(message)
    return system, grouped
