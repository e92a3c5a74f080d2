"""Scripted cloud peers on loopback: each one's HTTP API as its public documentation has it, in the test's own process.

Every request for an answer takes the next behaviour of the script. What is sent is kept: paths, headers and bodies.
"""

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any

from stubs.endpoint import Exchange
from stubs.http_stub import Handler, HttpStub

from agent.model.asking import Patience

Behaviour = Callable[["PeerExchange"], None]
KEY = "peer-key-4711"
#: The libraries are imported, and build what they read answers with, while the first one is waited for.
PATIENT = Patience(connect=5, first_token=60, between_tokens=60, notice=60, retries=1, backoff=0.01)
PEERS = ("openai", "anthropic", "gemini")
MODELS = {"openai": "gpt-5.4", "anthropic": "claude-opus-4-8", "gemini": "gemini-3.5-flash"}


class PeerExchange(Exchange):
    """One request, and the means to answer it."""

    def typed(self, event: dict[str, Any]) -> None:
        """An event with its name, as OpenAI and Anthropic stream them; Gemini's have none."""
        name = f"event: {event['type']}\n" if "type" in event else ""
        line = f"{name}data: {json.dumps(event)}\n\n".encode()
        self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self._handler.wfile.flush()


def stream(*events: dict[str, Any], end: bool = True) -> Behaviour:
    """An answer of these events; without its `end` the connection is lost after them."""

    def behave(exchange: PeerExchange) -> None:
        exchange.start_stream()
        for event in events:
            exchange.typed(event)
        if not end:
            exchange.hang_up()
        exchange.end_stream()

    return behave


def refuse(status: int, message: str, kind: str = "invalid_request_error") -> Behaviour:
    """An error response, in a shape that holds what each of the three looks for."""
    error = {"message": message, "type": kind, "code": status, "status": kind.upper()}
    body = json.dumps({"type": "error", "error": error}).encode()
    return lambda exchange: exchange.respond(status, body)


# OpenAI -----------------------------------------------------------------------------------------------------------


def openai_events(*items: dict[str, Any], reason: str | None = None, prompt: int = 100) -> list[dict[str, Any]]:
    """The events of an answer of these output items; `reason` says why it is incomplete."""
    details = {"input_tokens_details": {"cached_tokens": 7}, "output_tokens_details": {"reasoning_tokens": 0}}
    response: dict[str, Any] = {
        "id": "resp_1", "object": "response", "created_at": 0, "model": MODELS["openai"], "output": list(items),
        "status": "incomplete" if reason else "completed", "parallel_tool_calls": True, "tool_choice": "auto",
        "tools": [], "incomplete_details": {"reason": reason} if reason else None,
        "usage": {"input_tokens": prompt, "output_tokens": 20, "total_tokens": prompt + 20, **details},
    }  # fmt: skip
    events: list[dict[str, Any]] = [{"type": "response.created", "response": response | {"output": []}}]
    for index, item in enumerate(items):
        where = {"output_index": index, "item_id": item.get("id", "")}
        events.append({"type": "response.output_item.added", "item": item, **where})
        if item["type"] == "message":
            for part in item["content"]:
                kind = "response.output_text.delta" if part["type"] == "output_text" else "response.refusal.delta"
                text = part.get("text", part.get("refusal", ""))
                events += [
                    {"type": kind, "delta": piece, "content_index": 0, "logprobs": [], **where}
                    for piece in (text[: len(text) // 2], text[len(text) // 2 :])
                ]
        if item["type"] == "reasoning":
            events += [
                {"type": "response.reasoning_summary_text.delta", "delta": part["text"], "summary_index": 0, **where}
                for part in item["summary"]
            ]
        events.append({"type": "response.output_item.done", "item": item, **where})
    kind = "response.incomplete" if reason else "response.completed"
    events.append({"type": kind, "response": response})
    return [event | {"sequence_number": number} for number, event in enumerate(events)]


def computer_call(number: int, *actions: dict[str, Any], checks: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    return {
        "type": "computer_call", "id": f"cu_{number}", "call_id": f"call_{number}", "status": "completed",
        "actions": list(actions), "pending_safety_checks": list(checks),
    }  # fmt: skip


def reasoning(number: int, text: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": f"sealed-{number}"}


def message(text: str, refusal: bool = False) -> dict[str, Any]:
    part = {"type": "refusal", "refusal": text} if refusal else {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


# Anthropic --------------------------------------------------------------------------------------------------------


def anthropic_events(*blocks: dict[str, Any], stop: str | None = None, prompt: int = 100) -> list[dict[str, Any]]:
    """The events of an answer of these content blocks."""
    usage = {"input_tokens": prompt, "output_tokens": 1, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 0}
    begun = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": MODELS["anthropic"],
             "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(blocks):
        empty, deltas = _pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    if stop is None:
        stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    delta = {"stop_reason": stop, "stop_sequence": None}
    return [
        *events,
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    ]


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if block["type"] == "text":
        return block | {"text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "thinking":
        thought = {"type": "thinking_delta", "thinking": block["thinking"]}
        sealed = {"type": "signature_delta", "signature": block["signature"]}
        return block | {"thinking": "", "signature": ""}, [thought, sealed]
    written = json.dumps(block["input"])
    halves = (written[:5], written[5:])
    return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": half} for half in halves]


def tool_use(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}


def thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": f"sealed-{len(text)}"}


# Gemini -----------------------------------------------------------------------------------------------------------


def gemini_events(*parts: dict[str, Any], finish: str | None = "STOP", prompt: int = 100) -> list[dict[str, Any]]:
    """The streamed responses of an answer of these parts, one a response."""
    usage = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": 15,
        "thoughtsTokenCount": 5,
        "cachedContentTokenCount": 7,
    }
    events: list[dict[str, Any]] = [
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in parts
    ]
    ended: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": []}}
    return [*events, {"candidates": [ended | ({"finishReason": finish} if finish else {})], "usageMetadata": usage}]


def function_call(name: str, signature: str = "", **args: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"functionCall": {"name": name, "args": args}}
    return part | ({"thoughtSignature": signature} if signature else {})


# The same for all --------------------------------------------------------------------------------------------------


def says(peer: str, text: str) -> Behaviour:
    """An answer of words alone."""
    match peer:
        case "openai":
            return stream(*openai_events(message(text)))
        case "anthropic":
            return stream(*anthropic_events({"type": "text", "text": text}))
    return stream(*gemini_events({"text": text}))


def clicks(peer: str, number: int, x: int, y: int, thought: str = "I click.") -> Behaviour:
    """An answer of a thought and a click, on the peer's own grid."""
    match peer:
        case "openai":
            click = {"type": "click", "x": x, "y": y, "button": "left"}
            return stream(*openai_events(reasoning(number, thought), computer_call(number, click)))
        case "anthropic":
            return stream(*anthropic_events(thinking(thought), tool_use(number, "left_click", coordinate=[x, y])))
    part = {"text": thought, "thought": True}
    sealed = b64encode(f"sealed-{number}".encode()).decode()
    return stream(*gemini_events(part, function_call("click", sealed, x=x, y=y)))


class FakePeer:
    """The peer; a context manager.

    Args:
        peer: which one's API.
        script: behaviours, one for each request for an answer.
        context: the tokens that its models take, where its API tells that.
    """

    def __init__(self, peer: str, script: Iterable[Behaviour] = (), context: int | None = None) -> None:
        self.peer = peer
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._script = list(script)
        self._context = context
        self._over = threading.Event()
        self._server = HttpStub(self._model, self._answer)

    def __enter__(self) -> "FakePeer":
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.close()

    @property
    def base_url(self) -> str:
        """Where its API is."""
        return self._server.url + ("/v1" if self.peer == "openai" else "")

    @property
    def url(self) -> str:
        """As given to --endpoint."""
        return f"{self.peer}+{self.base_url}"

    def _refused(self, handler: Handler, exchange: PeerExchange) -> bool:
        told = {name.lower(): value for name, value in handler.headers.items()}
        bearer = told.get("authorization", "").removeprefix("Bearer ")
        if (told.get("x-goog-api-key") if self.peer == "gemini" else bearer) == KEY:
            return False
        wrong = "API key not valid. Please pass a valid API key." if self.peer == "gemini" else "invalid x-api-key"
        refuse(400 if self.peer == "gemini" else 401, wrong, "authentication_error")(exchange)
        return True

    def _model(self, handler: Handler) -> None:
        exchange = PeerExchange(handler, {}, self._over)
        if self._refused(handler, exchange):
            return
        name = handler.path.rpartition("/")[2].partition("?")[0]
        if not any(name.startswith(known.partition("-")[0]) for known in MODELS.values()):
            refuse(404, f"There is no model {name}.", "not_found_error")(exchange)
            return
        told: dict[str, Any] = {"id": name, "name": f"models/{name}", "object": "model", "type": "model",
                                "created": 0, "owned_by": "peer", "display_name": name,
                                "created_at": "2026-01-01T00:00:00Z"}  # fmt: skip
        if self._context is not None:
            told |= {"max_input_tokens": self._context, "inputTokenLimit": self._context}
        exchange.respond(200, json.dumps(told).encode())

    def _answer(self, handler: Handler) -> None:
        body = json.loads(handler.body())
        exchange = PeerExchange(handler, body, self._over)
        if self._refused(handler, exchange):
            return
        self.bodies.append(body)
        self.paths.append(handler.path)
        self.headers.append({name.lower(): value for name, value in handler.headers.items()})
        number = len(self.bodies) - 1
        behave = self._script[number] if number < len(self._script) else refuse(400, "the script is over")
        behave(exchange)
