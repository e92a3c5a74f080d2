"""A client that masks secrets in every text of a request before it is sent."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from typing_extensions import override

from agent.model.asking import Completion, ModelClient, OnProgress
from agent.model.endpoint import Endpoint
from agent.model.request import ChatRequest, ImagePart, Message, TextPart


class MaskedClient(ModelClient):
    """A `ModelClient` that applies `mask` to every text of a request. Images are sent unchanged."""

    def __init__(self, client: ModelClient, mask: Callable[[str], str]) -> None:
        self._client = client
        self._mask = mask

    @property
    @override
    def endpoint(self) -> Endpoint:
        return self._client.endpoint

    @override
    async def discover(self, prefer: Callable[[str], object] = lambda _: False) -> Endpoint:
        return await self._client.discover(prefer)

    @override
    async def complete(self, request: ChatRequest, on_progress: OnProgress = lambda _: None) -> Completion:
        return await self._client.complete(self._masked(request), on_progress)

    @override
    async def aclose(self) -> None:
        await self._client.aclose()

    def _masked(self, request: ChatRequest) -> ChatRequest:
        return replace(
            request,
            messages=[self._message(one) for one in request.messages],
            tools=self._value(request.tools),
            schema=self._value(request.schema),
            native=self._value(request.native),
            template_arguments=self._value(request.template_arguments),
        )

    def _message(self, message: Message) -> Message:
        parts = tuple(one if isinstance(one, ImagePart) else TextPart(self._mask(one.text)) for one in message.parts)
        calls = tuple(replace(call, arguments=self._mask(call.arguments)) for call in message.tool_calls)
        return replace(
            message, parts=parts, tool_calls=calls, reasoning=self._mask(message.reasoning),
            items=self._value(message.items), extra=self._value(message.extra),
        )  # fmt: skip

    def _value(self, value: Any) -> Any:
        match value:
            case str():
                return self._mask(value)
            case Mapping():
                return {name: self._value(item) for name, item in value.items()}
            case list() | tuple():
                return type(value)(map(self._value, value))
        return value
