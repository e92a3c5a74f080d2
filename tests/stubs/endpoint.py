"""A scripted OpenAI-compatible endpoint on loopback, in threads of the test's own process.

Every chat request takes the next behaviour of the script; a behaviour writes the response, well-formed or not. What a
vLLM checks before it answers (images per request, context length, images it holds by id) is checked here in its words.
"""

import json
import socket
import struct
import threading
from base64 import b64decode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from stubs.http_stub import Handler, HttpStub

MODEL = "MAI-UI-8B"


def act(action: str, thought: str = "I go on.", **arguments: Any) -> str:
    """An answer in MAI-UI's format."""
    call = json.dumps({"name": "mobile_use", "arguments": {"action": action, **arguments}})
    return f"<thinking>\n{thought}\n</thinking>\n<tool_call>\n{call}\n</tool_call>"


DONE = act("terminate", "It is done.", status="success")


class Exchange:
    """One chat request, and the means to answer it badly."""

    def __init__(self, handler: Handler, body: dict[str, Any], over: threading.Event) -> None:
        self.body = body
        self.over = over  # set when the endpoint closes
        self._handler = handler

    def respond(self, status: int, content: bytes, kind: str = "application/json", **headers: str) -> None:
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.send_header("Content-Type", kind)
        self._handler.send_header("Content-Length", str(len(content)))
        self._handler.end_headers()
        self._handler.wfile.write(content)

    def start_stream(self, kind: str = "text/event-stream", status: int = 200, encoding: str = "") -> None:
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", kind)
        if encoding:
            self._handler.send_header("Content-Encoding", encoding)
        self._handler.send_header("Transfer-Encoding", "chunked")
        self._handler.end_headers()

    def event(self, data: Any) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        self.chunk(f"data: {text}\n\n".encode())

    def chunk(self, data: bytes) -> None:
        self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self._handler.wfile.flush()

    def delta(self, text: str, finish: str | None = None) -> None:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
        self.event({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": MODEL, "choices": [choice]})

    def end_stream(self) -> None:
        self._handler.wfile.write(b"0\r\n\r\n")

    def hang_up(self) -> None:
        """Reset the connection, as the kernel does for a process that died."""
        self._handler.wfile.flush()
        self._handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._handler.connection.close()
        raise ConnectionAbortedError


Behaviour = Callable[[Exchange], None]


def say(
    text: str, *, prompt: int = 100, completion: int = 10, cached: int | None = None, finish: str = "stop"
) -> Behaviour:
    """A good answer in four pieces, with usage at the end where it was asked for."""

    def behave(exchange: Exchange) -> None:
        exchange.start_stream()
        step = max(1, -(-len(text) // 4))
        for start in range(0, len(text), step):
            exchange.delta(text[start : start + step])
        exchange.delta("", finish)
        if (exchange.body.get("stream_options") or {}).get("include_usage"):
            usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": completion}
            usage["total_tokens"] = prompt + completion
            if cached is not None:
                usage["prompt_tokens_details"] = {"cached_tokens": cached}
            exchange.event({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage})
        exchange.event("[DONE]")
        exchange.end_stream()

    return behave


def refuse(status: int, message: str, **headers: str) -> Behaviour:
    """An error response in the shape of vLLM's."""
    body = {"error": {"message": message, "type": "BadRequestError", "param": None, "code": status}}
    return lambda exchange: exchange.respond(status, json.dumps(body).encode(), **headers)


def whole(text: str, model: str = MODEL, **form: Any) -> bytes:
    """A completion as one JSON object, as an endpoint without streams writes it; `form` is for `json.dumps`."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    told = {"id": "c", "object": "chat.completion", "created": 0, "model": model, "choices": [choice], "usage": usage}
    return json.dumps(told, **form).encode()


def raw(status: int, content: bytes, kind: str = "text/html") -> Behaviour:
    """Any bytes as a response."""
    return lambda exchange: exchange.respond(status, content, kind)


def events(*data: Any, end: bool = True) -> Behaviour:
    """A stream of these events and nothing else; `end` closes it properly."""

    def behave(exchange: Exchange) -> None:
        exchange.start_stream()
        for item in data:
            exchange.event(item)
        if not end:
            exchange.hang_up()
        exchange.end_stream()

    return behave


def half(text: str) -> Behaviour:
    """The beginning of an answer, and then the connection is lost."""

    def behave(exchange: Exchange) -> None:
        exchange.start_stream()
        exchange.delta(text)
        exchange.hang_up()

    return behave


def silent(begun: str = "") -> Behaviour:
    """Says nothing (more) until the endpoint is closed."""

    def behave(exchange: Exchange) -> None:
        if begun:
            exchange.start_stream()
            exchange.delta(begun)
        exchange.over.wait(60)
        exchange.hang_up()

    return behave


def after(seconds: float, behaviour: Behaviour) -> Behaviour:
    """The same, later."""

    def behave(exchange: Exchange) -> None:
        exchange.over.wait(seconds)
        behaviour(exchange)

    return behave


@dataclass
class Checks:
    """What the server refuses, as a vLLM would."""

    images: int | None = None
    context: int | None = None
    bytes_per_token: float = 3.0  # of its tokenizer
    held: set[str] = field(default_factory=set)
    refusals: list[str] = field(default_factory=list)
    largest_images: int = 0
    largest_tokens: int = 0

    def refusal(self, body: dict[str, Any]) -> str | None:
        parts = [part for message in body["messages"] for part in message["content"]]
        pictures = [part for part in parts if part["type"] == "image_url"]
        sizes: list[int] = []
        for index, part in enumerate(pictures):
            if part["image_url"] is None:
                if part["uuid"] not in self.held:
                    return f"Cache miss for image at index {index} but data is not provided."
                sizes.append(0)
                continue
            data = b64decode(part["image_url"]["url"].partition(",")[2])
            width, height = struct.unpack(">II", data[16:24])
            sizes.append(width * height // 1024 + 2)
            if "uuid" in part:
                self.held.add(part["uuid"])
        if self.images is not None and len(pictures) > self.images:
            return f"At most {self.images} image(s) may be provided in one prompt."
        text = sum(len(part["text"].encode()) for part in parts if part["type"] == "text")
        tokens = sum(sizes) + int(text / self.bytes_per_token) + 5 * len(body["messages"])
        if self.context is not None and tokens + body["max_tokens"] > self.context:
            return (
                f"This model's maximum context length is {self.context} tokens. However, you requested "
                f"{tokens + body['max_tokens']} tokens ({tokens} in the messages, {body['max_tokens']} in the "
                "completion). Please reduce the length of the messages or completion."
            )
        self.largest_images = max(self.largest_images, len(pictures))
        self.largest_tokens = max(self.largest_tokens, tokens + body["max_tokens"])
        return None


class FakeEndpoint:
    """The endpoint; a context manager.

    Args:
        script: behaviours, one for each chat request; or a function from the request's number to a behaviour.
        models: what /v1/models lists; a number instead is a refusal with that status.
        checks: what is refused before the script is asked (a refused request takes nothing from the script).
        key: the bearer token that is asked for.
    """

    def __init__(
        self,
        script: Iterable[Behaviour] | Callable[[int], Behaviour] = (),
        models: Any = None,
        checks: Checks | None = None,
        key: str | None = None,
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []  # of the requests
        self.checks = checks or Checks()
        self.models = [{"id": MODEL, "object": "model", "owned_by": "other"}] if models is None else models
        self._key = key
        self._script = script if callable(script) else list(script)
        self._answered = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._server = HttpStub(self._list_models, self._chat)

    def __enter__(self) -> "FakeEndpoint":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """As given to --endpoint."""
        return self._server.url

    def close(self) -> None:
        """Stop listening and let go of whoever waits; safe to call twice."""
        if not self._over.is_set():
            self._over.set()
            self._server.close()

    def die(self) -> None:
        """Stop listening, from within a behaviour: what comes later is refused."""
        threading.Thread(target=self.close, daemon=True).start()

    def _list_models(self, handler: Handler) -> None:
        exchange = Exchange(handler, {}, self._over)
        if self._refuses_key(exchange, handler):
            return
        if isinstance(self.models, int):
            refuse(self.models, "no list of models here")(exchange)
        else:
            listing = self.models if isinstance(self.models, dict) else {"object": "list", "data": self.models}
            exchange.respond(200, json.dumps(listing).encode())

    def _chat(self, handler: Handler) -> None:
        body = json.loads(handler.body())
        exchange = Exchange(handler, body, self._over)
        if self._refuses_key(exchange, handler):
            return
        with self._lock:
            self.requests.append(body)
            self.headers.append(dict(handler.headers))
            refusal = self.checks.refusal(body)
            if refusal is None:
                behaviour = self._next()
        if refusal is not None:
            self.checks.refusals.append(refusal)
            refuse(400, refusal)(exchange)
        else:
            behaviour(exchange)

    def _next(self) -> Behaviour:
        number = self._answered
        self._answered += 1
        if callable(self._script):
            return self._script(number)
        if number < len(self._script):
            return self._script[number]
        return refuse(400, "the script of this test is over")

    def _refuses_key(self, exchange: Exchange, handler: Handler) -> bool:
        if self._key is None or handler.headers.get("Authorization") == f"Bearer {self._key}":
            return False
        refuse(401, "Unauthorized")(exchange)
        return True


def pictures(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The image parts of a request."""
    return [part for message in body["messages"] for part in message["content"] if part["type"] == "image_url"]


def texts(body: dict[str, Any], role: str | None = None) -> list[str]:
    """The texts of a request's messages, in order."""
    return [
        part["text"]
        for message in body["messages"]
        if role in (None, message["role"])
        for part in message["content"]
        if part["type"] == "text"
    ]
