"""The engine as an OpenAI-compatible endpoint on loopback, so that the agent's path is the same as with any model.

Started by the agent itself, on a free port, with a key made at start. How it is asked and answers is in
`agent.families.literal`.
"""

import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent.families.base import Call
from agent.families.literal.family import FUNCTION, render
from agent.literal.conversation import BadRequestError, read_conversation
from agent.literal.engine import Engine
from agent.literal.reader import WHO
from agent.model import engine as model_engine
from agent.model.endpoint import Endpoint, Limits
from agent.screen.ocr import data_folder

MODEL = "mai-agent-literal"
#: A request of six 4K screenshots is about 30 MB.
_MOST_BYTES = 256 * 1024 * 1024
_MODELS = {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "mai-agent"}]}
_NO_TOKENS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


class LiteralServer:
    """The running endpoint; close it with `close`. Raises EnvironmentLacksError where tesseract's data is missing."""

    def __init__(self, port: int = 0) -> None:
        data_folder(WHO)  # say at once what is missing
        self._key = secrets.token_urlsafe(24)
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.engine, self._server.key = Engine(), self._key
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="literal", daemon=True).start()

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens. Its eye wants the screen as sharp as it is: no pixel budget."""
        host, port = self._server.server_address[:2]
        return Endpoint(f"http://{host!s}:{port}/v1", self._key, MODEL, "literal", Limits(max_pixels=16_777_216))

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


def literal_engine() -> model_engine.Engine:
    """The literal engine, started. Raises EnvironmentLacksError as `LiteralServer` does."""
    server = LiteralServer()
    return model_engine.Engine("literal", server.endpoint, server.close, family="literal")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    engine: Engine
    key: str


class _RefusedError(Exception):
    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
        """Nothing is logged: the agent's own events tell everything."""

    def do_GET(self) -> None:
        """The list of models."""
        self._answer("/v1/models", lambda _: _MODELS)

    def do_POST(self) -> None:
        """A chat completion, streamed or whole."""
        self._answer("/v1/chat/completions", self._complete)

    def _answer(self, path: str, make: Callable[[bytes], dict[str, Any] | bytes]) -> None:
        """Send what `make` makes of the request: an object, or the lines of a stream."""
        status = HTTPStatus.OK
        try:
            answer = make(self._checked_body(path))
        except _RefusedError as error:
            status = error.status
            answer = {"error": {"message": str(error), "type": "invalid_request_error", "code": int(status)}}
        streams = isinstance(answer, bytes)
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        with suppress(OSError):  # the agent was stopped
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def _checked_body(self, path: str) -> bytes:
        length = self.headers.get("Content-Length", "" if self.command == "POST" else "0")
        if not length.isdecimal():
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "the request has no length")
        if int(length) > _MOST_BYTES:
            self.close_connection = True  # the body stays unread
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
        body = self.rfile.read(int(length))
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self.server.key.encode()):
            raise _RefusedError(HTTPStatus.UNAUTHORIZED, "the key is wrong")
        if self.path.rstrip("/") != path:
            raise _RefusedError(HTTPStatus.NOT_FOUND, f"there is no {self.path}")
        return body

    def _complete(self, body: bytes) -> dict[str, Any] | bytes:
        try:
            request = json.loads(body)
            reply = self.server.engine.reply(read_conversation(request["messages"]))
            text = render(reply.thought, Call(FUNCTION, reply.arguments))
        except (ValueError, KeyError, TypeError, BadRequestError) as error:
            words = f"this is no chat that the literal engine can answer: {error}"
            raise _RefusedError(HTTPStatus.BAD_REQUEST, words) from error
        except Exception as error:  # a mistake of ours must be told, not end the connection
            words = f"the literal engine made a mistake: {type(error).__name__}: {error}"
            raise _RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, words) from error
        message = {"role": "assistant", "content": text}
        if not request.get("stream"):
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            return _completion("chat.completion", [choice], _NO_TOKENS)
        choice = {"index": 0, "finish_reason": "stop", "delta": message}
        kind = "chat.completion.chunk"
        chunks = (_completion(kind, [choice], None), _completion(kind, [], _NO_TOKENS))
        return "".join(f"data: {line}\n\n" for line in [*map(json.dumps, chunks), "[DONE]"]).encode()


def _completion(kind: str, choices: list[dict[str, Any]], usage: Mapping[str, int] | None) -> dict[str, Any]:
    return {
        "id": "literal",
        "object": kind,
        "created": int(time.time()),
        "model": MODEL,
        "choices": choices,
        "usage": usage,
    }
