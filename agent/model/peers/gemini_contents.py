"""Gemini's generateContent: contents of parts, streamed as whole responses that add up.

The parts of a past answer are sent back unchanged, with their thought signatures. A screenshot is part of the response
of the function whose effect it shows.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from typing_extensions import override

from agent.model.asking import Exchange
from agent.model.peers.peer_client import EventReader, PeerClient, arguments_of, called, functions, said, turns, used
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from foundation.refusals import Refusal, cause_of, of_status

_FINISH = {"STOP": "stop", "MAX_TOKENS": "length", "MALFORMED_FUNCTION_CALL": "malformed",
           "UNEXPECTED_TOOL_CALL": "malformed", "MALFORMED_RESPONSE": "malformed"}  # fmt: skip
#: Finish reasons that are no refusal, although the answer is unusable.
_NO_REASON = ("FINISH_REASON_UNSPECIFIED", "OTHER")


class GeminiClient(PeerClient[Any]):
    """Client of Google's Gemini API."""

    _transport: Any = None

    @override
    def connect(self) -> Any:
        import httpx2
        from google import genai

        from agent.model.transport import bounded

        timeout = httpx2.Timeout(self.silence, connect=self.patience.connect)
        self._transport = bounded(
            httpx2.AsyncClient(trust_env=not self.endpoint.is_local, follow_redirects=False, timeout=timeout)
        )
        # The library's own retries are off by default: `complete` is the retry layer.
        options = {
            "base_url": self.endpoint.base_url,
            "httpx_async_client": self._transport,
            "timeout": int(self.silence * 1000),
        }
        return genai.Client(api_key=self.endpoint.api_key or "none", enterprise=False, http_options=options).aio

    async def disconnect(self, connection: Any) -> None:
        """Close a connection and its transport, which is ours."""
        await connection.aclose()
        await self._transport.aclose()

    async def context_of(self, model: str) -> int | None:
        """Return the token limit of a prompt."""
        info = await self.connection.models.get(model=model)
        most = info.input_token_limit
        return most if isinstance(most, int) else None

    def refusal(self, error: Exception) -> Refusal:
        """Convert an exception of the library or the transport to a refusal."""
        import httpx2
        from google.genai import errors

        if isinstance(error, errors.APIError):
            words = " ".join(str(error.message or error.status or error).split())[:400].rstrip(".")
            code = error.code if isinstance(error.code, int) else 500
            headers = getattr(error.response, "headers", None)
            return of_status(words, 401 if code == 400 and "api key" in words.lower() else code, headers)
        silent = isinstance(error, httpx2.TimeoutException | TimeoutError)
        unreachable = isinstance(error, httpx2.NetworkError)
        return Refusal("silent" if silent else "unreachable" if unreachable else "broken", cause_of(error))

    def exchange(self, request: ChatRequest) -> Exchange:
        """Build the request as contents."""
        system, grouped = turns(request.messages)
        sampling = request.sampling
        limit = request.max_tokens or sampling.max_tokens
        ours, own = functions(request.tools)
        config: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_output_tokens": limit,
            **({"top_k": sampling.top_k} if sampling.top_k > 0 else {}),
            **({"system_instruction": system} if system else {}),
            **({"stop_sequences": list(request.stop)} if request.stop else {}),
            "automatic_function_calling": {"disable": True},  # calls only go through the policy
            **request.native,
        }
        if own or ours:  # the API wants a separate tool for each kind
            config["tools"] = [*map(dict, own), *([{"function_declarations": [*map(_function, ours)]}] if ours else [])]
        contents = [_answer(turn) if ours else _turn(turn, grouped[index - 1][1] if index else ())
                    for index, (ours, turn) in enumerate(grouped)]  # fmt: skip
        return Exchange(self._open(contents, config), _Responses(limit), len(request.images()), self.explained)

    async def _open(self, contents: list[dict[str, Any]], config: dict[str, Any]) -> Any:
        models = self.connection.models
        from google.genai import types

        return await models.generate_content_stream(
            model=self.endpoint.model,
            contents=[types.Content.model_validate(content) for content in contents],
            config=types.GenerateContentConfig.model_validate(config),
        )


def _function(function: Mapping[str, Any]) -> dict[str, Any]:
    definition = {"name": function["name"], "description": function.get("description", "")}
    return definition | {"parameters_json_schema": function.get("parameters") or {"type": "object", "properties": {}}}


def _answer(turn: Sequence[Message]) -> dict[str, Any]:
    parts: list[Any] = []
    for message in turn:
        if message.items:
            parts += message.items
            continue
        parts += [{"text": message.said}] if message.said else []
        parts += [
            {"function_call": {"name": call.name, "args": arguments_of(call.arguments)} | _identified(call.id)}
            for call in message.tool_calls
        ]
    return {"role": "model", "parts": parts}


def _turn(turn: Sequence[Message], before: Sequence[Message]) -> dict[str, Any]:
    """Build one turn: function responses by name, then everything else."""
    names = {call.id: call.name for message in before for call in message.tool_calls}
    # Only ids from the model are sent back with a response, and not our own.
    model_ids = {
        item["function_call"].get("id") for message in before for item in message.items if item.get("function_call")
    }
    parts: list[dict[str, Any]] = []
    for message in turn:
        if message.role != "tool":
            parts += map(_part, message.parts)
            continue
        images = [part for part in message.parts if isinstance(part, ImagePart)]
        response: dict[str, Any] = {
            "name": names.get(message.call_id or "", ""),
            "response": {"output": message.said or "Done.", **message.extra},
        }
        if images:
            response["parts"] = [{"inline_data": _part(image)["inline_data"]} for image in images]
        response |= _identified(message.call_id or "") if message.call_id in model_ids else {}
        parts.append({"function_response": response})
    return {"role": "user", "parts": parts}


def _identified(identifier: str) -> dict[str, str]:
    return {"id": identifier} if identifier else {}


def _part(part: TextPart | ImagePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"text": part.text}
    assert part.image is not None, "a request needs its images"
    return {"inline_data": {"mime_type": f"image/{part.image.format}", "data": part.image.data}}


class _Responses(EventReader):
    """Parses the responses of one answer, and keeps its parts for later requests."""

    @override
    def chunks(self, response: Any) -> Iterator[Mapping[str, Any]]:
        blocked = getattr(response.prompt_feedback, "block_reason", None)
        if blocked:
            yield said(f"The service declines the request ({_name(blocked)}).", finish="refusal")
        for candidate in (response.candidates or ())[:1]:
            for part in (candidate.content and candidate.content.parts) or ():
                yield from self._part(part)
            if candidate.finish_reason:
                yield said(finish=_finish(_name(candidate.finish_reason)))
        if (usage := response.usage_metadata) is not None:
            answered = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
            yield used(usage.prompt_token_count, answered, usage.cached_content_token_count)

    def _part(self, part: Any) -> Iterator[Mapping[str, Any]]:
        self.items.append(part.model_dump(exclude_none=True))
        if part.function_call is not None:
            self.calls += 1
            call = part.function_call
            written = json.dumps(call.args or {}, ensure_ascii=False, default=str)
            yield called(self.calls, call.id or f"call_{self.calls}", call.name or "", written)
        elif part.text:
            yield said(reasoning=part.text) if part.thought else said(part.text)


def _finish(reason: str) -> str:
    return _FINISH.get(reason, "stop" if reason in _NO_REASON else "refusal")


def _name(value: Any) -> str:
    return str(getattr(value, "value", value))
