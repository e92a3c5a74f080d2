"""OpenAI's Responses API: items in, items out, streamed as typed events.

The service keeps nothing (`store` is false), so every request holds the whole conversation. Past answers are sent as
the items they came as, with encrypted reasoning. A `computer_call` must be answered with a screenshot; if the history
dropped it, the call is described in words.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from agent.model.asking import Exchange
from agent.model.peers.peer_client import (
    EventReader,
    PeerClient,
    PeerRefusalError,
    arguments_of,
    called,
    functions,
    said,
    turns,
    used,
)
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from foundation.chat_stream import ToolCall
from foundation.refusals import Refusal, of_status, refusal_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: The API's own tool. Its calls are items of their own type.
COMPUTER = "computer"
#: The key of the safety checks in a computer call, from which the family makes a question.
_CHECKS = "pending_safety_checks"
#: HTTP statuses of error codes in stream events.
_STATUS_OF_CODE = {"rate_limit_exceeded": 429, "server_error": 500, "invalid_prompt": 400}
_DROPPED = "(What was done earlier, its screenshots left out.)"


class OpenAiClient(PeerClient["AsyncOpenAI"]):
    """Client of OpenAI's API."""

    @override
    def connect(self) -> "AsyncOpenAI":
        import openai

        return openai.AsyncOpenAI(**self.connecting(openai))

    async def context_of(self, model: str) -> int | None:
        """Check key and model. Always None, because OpenAI does not report the context length."""
        await self.connection.models.retrieve(model)
        return None

    def refusal(self, error: Exception) -> Refusal:
        """Convert an exception of the library to a refusal."""
        return refusal_of(error)

    def exchange(self, request: ChatRequest) -> Exchange:
        """Build the request as items."""
        system, grouped = turns(request.messages)
        limit = request.max_tokens or request.sampling.max_tokens
        ours, own = functions(request.tools)
        known = _Known(grouped)
        body: dict[str, Any] = {
            "model": self.endpoint.model,
            "input": [item for answers, turn in grouped for item in (_answers if answers else _results)(turn, known)],
            "max_output_tokens": limit,
            "store": False,
            **request.native,
        }
        if system:
            body["instructions"] = system
        if own or ours:
            body["tools"] = [*own, *({"type": "function", "strict": False, **function} for function in ours)]
        opening = self.connection.responses.create(**body, stream=True)
        return Exchange(opening, _Events(limit), len(request.images()), self.explained)


class _Known:
    """The calls of the API's own tool in a conversation, and those answered with a screenshot."""

    def __init__(self, grouped: Sequence[tuple[bool, list[Message]]]) -> None:
        calls = [call for ours, turn in grouped if ours for message in turn for call in message.tool_calls]
        self.computer = {call.id for call in calls if call.name == COMPUTER}
        self.shown = {
            message.call_id
            for _, turn in grouped
            if any(isinstance(part, ImagePart) for message in turn for part in message.parts)
            for message in turn
            if message.call_id in self.computer
        }

    def is_dropped(self, call: ToolCall) -> bool:
        """Whether the call can only be described in words."""
        return call.id in self.computer and call.id not in self.shown


def _answers(turn: Sequence[Message], known: _Known) -> Iterator[Any]:
    for message in turn:
        dropped = [call for call in message.tool_calls if known.is_dropped(call)]
        if message.items and not dropped:
            yield from message.items
            continue
        lines = [message.said, *([_DROPPED] if dropped else []), *(call.arguments for call in dropped)]
        if text := "\n".join(filter(None, lines)):
            yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        yield from (_call(call) for call in message.tool_calls if call not in dropped)


def _call(call: ToolCall) -> dict[str, Any]:
    """Build a call item whose original item is unknown."""
    if call.name != COMPUTER:
        return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments or "{}"}
    arguments = {_CHECKS: [], **arguments_of(call.arguments)}
    return {"type": "computer_call", "id": f"cu_{call.id}", "call_id": call.id, "status": "completed", **arguments}


def _results(turn: Sequence[Message], known: _Known) -> Iterator[Any]:
    """Yield the results of calls, then everything else: a screenshot output cannot contain text."""
    images = [part for message in turn for part in message.parts if isinstance(part, ImagePart)]
    outputs: list[dict[str, Any]] = []
    words: list[TextPart | ImagePart] = []
    for message in turn:
        texts = [part for part in message.parts if isinstance(part, TextPart)]
        if message.call_id in known.shown:
            screenshot = {"type": "computer_screenshot", "image_url": _url(images[-1]), "detail": "original"}
            outputs.append(
                {"type": "computer_call_output", "call_id": message.call_id, "output": screenshot, **message.extra}
            )
            words += texts
        elif message.role == "tool" and message.call_id not in known.computer:
            outputs.append(
                {"type": "function_call_output", "call_id": message.call_id, "output": message.said or "Done."}
            )
        else:
            words += texts
    if images and not any(output["type"] == "computer_call_output" for output in outputs):
        words += images
    yield from outputs
    if words:
        yield {"type": "message", "role": "user", "content": [*map(_part, words)]}


def _part(part: TextPart | ImagePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    return {"type": "input_image", "image_url": _url(part), "detail": "original"}


def _url(part: ImagePart) -> str:
    assert part.image is not None, "a request needs its images"
    return part.image.data_url


class _Events(EventReader):
    """Parses the events of one answer."""

    @override
    def chunks(self, event: Any) -> Iterator[Mapping[str, Any]]:
        match event.type:
            case "response.output_text.delta":
                yield said(event.delta)
            case "response.refusal.delta":
                yield said(event.delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield said(reasoning=event.delta)
            case "response.output_item.done":
                yield from self._item(event.item)
            case "response.completed" | "response.incomplete":
                yield from self._ended(event.response)
            case "response.failed":
                raise _failed(event.response.error)
            case "error":
                raise _failed(event)

    def _item(self, item: Any) -> Iterator[Mapping[str, Any]]:
        self.items.append(item.to_dict(mode="json"))
        if item.type == "function_call":
            self.calls += 1
            yield called(self.calls, item.call_id, item.name, item.arguments)
        elif item.type == "computer_call":
            self.calls += 1
            written = self.items[-1]
            actions = written.get("actions") or ([written["action"]] if written.get("action") else [])
            checks = {_CHECKS: written[_CHECKS]} if written.get(_CHECKS) else {}
            yield called(self.calls, item.call_id, COMPUTER, {"actions": actions, **checks})

    def _ended(self, response: Any) -> Iterator[Mapping[str, Any]]:
        refused = any(
            part.get("type") == "refusal"
            for item in self.items
            if item.get("type") == "message"
            for part in item.get("content", ())
        )
        reason = response.incomplete_details.reason if response.incomplete_details else None
        finish = {"max_output_tokens": "length", "content_filter": "refusal"}.get(reason or "", "stop")
        yield said(finish="refusal" if refused else finish)
        if response.usage is not None:
            details = response.usage.input_tokens_details
            yield used(
                response.usage.input_tokens,
                response.usage.output_tokens,
                None if details is None else details.cached_tokens,
            )


def _failed(error: Any) -> PeerRefusalError:
    """Return the error that a stream event reports."""
    words = " ".join(str(getattr(error, "message", None) or "no reason is told").split())[:400].rstrip(".")
    return PeerRefusalError(of_status(words, _STATUS_OF_CODE.get(str(getattr(error, "code", "")), 400)))
