"""The engine as an OpenAI-compatible endpoint on loopback, so that the agent's path is the same as with any model.

Started by the agent itself, on a free port, with a key made at start. Answers are in MAI-UI's format.
"""

import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent.literal.conversation import BadRequestError, read_conversation
from agent.literal.engine import Engine, Reply
from agent.literal.reader import WHO
from agent.model import engine as model_engine
from agent.model.endpoint import Endpoint, Limits
from agent.screen.ocr import data_folder

MODEL = "mai-agent-literal"
#: A request of six 4K screenshots is about 30 MB.
_MOST_BYTES = 256 * 1024 * 1024
#: Characters per streamed piece.
_PIECE = 24


class LiteralServer:
    """The running endpoint; close it with `close`.

    Raises:
        EnvironmentLacksError: tesseract's data is missing.
    """

    def __init__(self, port: int = 0) -> None:
        data_folder(WHO)  # say at once what is missing
        self._key = secrets.token_urlsafe(24)
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.engine = Engine()
        self._server.key = self._key
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="literal", daemon=True)
        self._thread.start()

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
    return model_engine.Engine("literal", server.endpoint, server.close)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    engine: Engine
    key: str


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
        """Nothing is logged: the agent's own events tell everything."""

    def do_GET(self) -> None:
        """The list of models."""
        if not self._allowed():
            return
        if self.path.rstrip("/") == "/v1/models":
            model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "mai-agent"}
            self._send(HTTPStatus.OK, {"object": "list", "data": [model]})
        else:
            self._refuse(HTTPStatus.NOT_FOUND, f"there is no {self.path}")

    def do_POST(self) -> None:
        """A chat completion, streamed or whole."""
        body = self._body()
        if body is None or not self._allowed():
            return
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._refuse(HTTPStatus.NOT_FOUND, f"there is no {self.path}")
            return
        try:
            request = json.loads(body)
            messages = request["messages"]
            conversation = read_conversation(messages)
            reply = self.server.engine.reply(conversation)
        except (ValueError, KeyError, TypeError, BadRequestError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"this is no chat that the literal engine can answer: {error}")
            return
        text = render(reply)
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        if request.get("stream"):
            self._stream(text, usage)
        else:
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            self._send(HTTPStatus.OK, _completion("chat.completion", [choice], usage))

    def _body(self) -> bytes | None:
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "the request has no length")
            return None
        if not 0 <= length <= _MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
            return None
        return self.rfile.read(length)

    def _allowed(self) -> bool:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if hmac.compare_digest(given.encode(), self.server.key.encode()):
            return True
        self._refuse(HTTPStatus.UNAUTHORIZED, "the key is wrong")
        return False

    def _stream(self, text: str, usage: Mapping[str, int]) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for chunk in _chunks(text, usage):
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            pass  # the agent was stopped

    def _send(self, status: HTTPStatus, body: Mapping[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._send(status, {"error": {"message": message, "type": "invalid_request_error", "code": int(status)}})


def render(reply: Reply) -> str:
    """An answer in MAI-UI's format."""
    call = json.dumps({"name": "mobile_use", "arguments": reply.arguments}, ensure_ascii=False)
    thought = reply.thought.replace("<", "‹").replace(">", "›")  # read text must not close the tag
    return f"<thinking>\n{thought}\n</thinking>\n<tool_call>\n{call}\n</tool_call>"


def _chunks(text: str, usage: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for start in range(0, len(text), _PIECE):
        delta = {"role": "assistant", "content": text[start : start + _PIECE]}
        yield _completion("chat.completion.chunk", [{"index": 0, "delta": delta, "finish_reason": None}], None)
    yield _completion("chat.completion.chunk", [{"index": 0, "delta": {}, "finish_reason": "stop"}], None)
    yield _completion("chat.completion.chunk", [], usage)


def _completion(kind: str, choices: list[dict[str, Any]], usage: Mapping[str, int] | None) -> dict[str, Any]:
    return {
        "id": "literal",
        "object": kind,
        "created": int(time.time()),
        "model": MODEL,
        "choices": choices,
        "usage": usage,
    }
