"""Anthropic's Messages API: turns of content blocks, streamed as events.

The service caches the whole conversation (`cache_control`), so a request costs little more than its new part. No
sampling parameters are sent, because newer models accept none.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from typing_extensions import override

from agent.model.asking import Exchange
from agent.model.peers.peer_client import EventReader, PeerClient, arguments_of, called, functions, said, turns, used
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from foundation.refusals import Refusal, cause_of, of_status

#: HTTP statuses of error types, for errors inside a stream of status 200.
_STATUS_OF_TYPE = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504,
    "overloaded_error": 529,
}  # fmt: skip
_FINISH = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal"}
_CACHED = {"type": "ephemeral"}


class AnthropicClient(PeerClient[Any]):
    """Client of Anthropic's API."""

    @override
    def connect(self) -> Any:
        import anthropic

        return anthropic.AsyncAnthropic(**self.connecting(anthropic))

    async def context_of(self, model: str) -> int | None:
        """Return the token limit of a prompt; None if unknown."""
        info = await self.connection.models.retrieve(model)
        most = getattr(info, "max_input_tokens", None)
        return most if isinstance(most, int) else None

    def refusal(self, error: Exception) -> Refusal:
        """Convert an exception of the library to a refusal."""
        import anthropic

        if isinstance(error, anthropic.APIStatusError):
            words = error.api_message or error.message
            status = int(error.status_code)
            if status < 400:  # the stream had begun
                status = _STATUS_OF_TYPE.get(str(error.type), 500)
            return of_status(" ".join(str(words).split())[:400].rstrip("."), status, error.response.headers)
        silent = isinstance(error, anthropic.APITimeoutError | TimeoutError)
        unreachable = isinstance(error, anthropic.APIConnectionError)
        return Refusal("silent" if silent else "unreachable" if unreachable else "broken", cause_of(error))

    def exchange(self, request: ChatRequest) -> Exchange:
        """Build the request as turns of blocks."""
        system, grouped = turns(request.messages)
        limit = request.max_tokens or request.sampling.max_tokens
        messages = [_turn(ours, turn) for ours, turn in grouped]
        if messages and messages[-1]["content"]:
            messages[-1]["content"][-1]["cache_control"] = _CACHED
        functions_of_ours, own = functions(request.tools)
        body: dict[str, Any] = {"model": self.endpoint.model, "max_tokens": limit, "messages": messages}
        body |= request.native
        if system:
            body["system"] = [{"type": "text", "text": system, "cache_control": _CACHED}]
        if own or functions_of_ours:
            body["tools"] = [*own, *map(_function, functions_of_ours)]
        if request.stop:
            body["stop_sequences"] = list(request.stop)
        opening = self.connection.beta.messages.stream(**body).__aenter__()
        return Exchange(opening, _Events(limit), len(request.images()), self.explained)


def _function(function: Mapping[str, Any]) -> dict[str, Any]:
    definition = {"name": function["name"], "description": function.get("description", "")}
    return definition | {"input_schema": function.get("parameters") or {"type": "object", "properties": {}}}


def _turn(ours: bool, turn: Sequence[Message]) -> dict[str, Any]:
    """Build one turn: first the results of calls, as the API requires, then everything else."""
    if ours:
        return {"role": "assistant", "content": [block for message in turn for block in _answer(message)]}
    results = [_result(message) for message in turn if message.role == "tool"]
    said_besides = [_part(part) for message in turn if message.role != "tool" for part in message.parts]
    return {"role": "user", "content": [*results, *said_besides]}


def _answer(message: Message) -> Iterator[dict[str, Any]]:
    if message.items:
        yield from map(dict, message.items)
        return
    if message.said.strip():
        yield {"type": "text", "text": message.said}
    for call in message.tool_calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_of(call.arguments)}


def _result(message: Message) -> dict[str, Any]:
    content = [_part(part) for part in message.parts]
    return {"type": "tool_result", "tool_use_id": message.call_id, "content": content, **message.extra}


def _part(part: TextPart | ImagePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    assert part.image is not None, "a request needs its images"
    kind, _, data = part.image.data_url.removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


class _Events(EventReader):
    """Parses the events of one answer. The library assembles its blocks, which later requests need."""

    @override
    def chunks(self, event: Any) -> Iterator[Mapping[str, Any]]:
        match event.type:
            case "text":
                yield said(event.text)
            case "thinking":
                yield said(reasoning=event.thinking)
            case "message_stop":
                yield from self._ended(event.message)

    def _ended(self, message: Any) -> Iterator[Mapping[str, Any]]:
        finish = _FINISH.get(message.stop_reason, "stop")
        blocks = [block.to_dict(mode="json") for block in message.content]
        # Empty texts are omitted, because the API rejects them.
        self.items = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
        for index, block in enumerate(blocks):
            if block["type"] == "tool_use" and finish != "length":  # the last call may be cut off
                yield called(index, block["id"], block["name"], block["input"])
        usage = message.usage
        prompt = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        yield used(prompt, usage.output_tokens, usage.cache_read_input_tokens)
        yield said(finish=finish)
