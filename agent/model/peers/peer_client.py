"""The common base of cloud providers' clients: they check the model's name first, and parse answers from events."""

import asyncio
import json
from abc import ABC, abstractmethod
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

#: Seconds for a provider to describe a model.
_TELLS_WITHIN = 20.0


class PeerRefusalError(Exception):
    """An error event inside a stream."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


class PeerClient(PatientClient[Connection]):
    """A cloud provider's client. It sends only what its API knows, so nothing is omitted after an error."""

    async def discover(self, prefer: Callable[[str], object] = lambda _: False) -> Endpoint:  # noqa: ARG002
        """Return the endpoint with the model's context, if the provider reports it. The model must be named.

        Raises ModelError: the provider cannot be asked, rejects the key, or does not serve the model. UsageError: no
        model is named.
        """
        if self.endpoint.model is None:
            raise UsageError(f"{self.endpoint.base_url} serves many models.", "Name one with --model.")
        try:
            context = await asyncio.wait_for(self.context_of(self.endpoint.model), _TELLS_WITHIN)
        except Exception as error:  # the library and the transport raise many types
            raise self.explained(error) from error
        limits = self.endpoint.limits
        if context:
            self.endpoint = replace(
                self.endpoint, limits=replace(limits, context=min(context, limits.context or context))
            )
        return self.endpoint

    @abstractmethod
    async def context_of(self, model: str) -> int | None:
        """Return a model's context in tokens; None if the provider does not report it. Raises what the library does."""

    @abstractmethod
    def refusal(self, error: Exception) -> Refusal:
        """Convert an exception of the library or the transport to a refusal."""

    def explained(self, error: Exception) -> ModelError:
        """Convert an exception of the library or the transport to a ModelError."""
        if isinstance(error, ModelError):
            return error
        refusal = error.refusal if isinstance(error, PeerRefusalError) else self.refusal(error)
        return in_words(refusal, self.endpoint)


class EventReader(AnswerReader, ABC):
    """Assembles an answer from a provider's events. `max_tokens` is the limit that was sent to the provider."""

    def __init__(self, max_tokens: int) -> None:
        super().__init__(max_tokens=max_tokens)
        self.items: list[Any] = []  # the answer so far in the API's own format
        self.calls = 0  # so far

    @abstractmethod
    def chunks(self, event: Any) -> Iterable[Mapping[str, Any]]:
        """Convert an event to chunks of a chat completion. May raise PeerRefusalError."""

    def take(self, chunk: Any) -> list[Piece]:
        """Return what an event adds, in order."""
        take = super().take
        return [piece for each in self.chunks(chunk) for piece in take(dict(each))]

    def answer(self) -> Answer:
        """Return the answer so far."""
        return replace(super().answer(), items=tuple(self.items))


def said(content: str = "", reasoning: str = "", finish: str | None = None) -> dict[str, Any]:
    """Return a chunk with text, reasoning or the end of an answer."""
    delta = {"content": content or None, "reasoning_content": reasoning or None}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def called(index: int, identifier: str = "", name: str = "", arguments: Any = "") -> dict[str, Any]:
    """Return a chunk with a tool call, or with a piece of its arguments."""
    call = {"index": index, "id": identifier, "function": {"name": name, "arguments": arguments}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def used(prompt: int | None, completion: int | None, cached: int | None) -> dict[str, Any]:
    """Return a chunk with the token counts of a request."""
    details = {"cached_tokens": cached}
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details}}


def functions(tools: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Split a request's tools into functions, each as {name, description, parameters}, and the API's own tools."""
    ours = [tool["function"] for tool in tools if tool.get("type") == "function"]
    return ours, [tool for tool in tools if tool.get("type") != "function"]


def arguments_of(written: str) -> Any:
    """Parse the arguments of a call. Return an empty object if they are invalid."""
    try:
        read = json.loads(written or "{}")
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def turns(messages: Sequence[Message]) -> tuple[str, list[tuple[bool, list[Message]]]]:
    """Return the system prompt, and the other messages by turns: whether the assistant speaks, and its messages."""
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
