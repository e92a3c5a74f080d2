"""Guards every path of vLLM's API server by its key: `--middleware mai_gate.Gate`.

vLLM's own key guards only some prefixes: `/invocations`, `/tokenize` and others answer anybody. Here every path needs
`Authorization: Bearer` and the key of VLLM_API_KEY, known paths or not. Probers get /health and /metrics without it.

The gate can also be shut before the server goes away: a vLLM that was sent SIGTERM still accepts requests and answers
them with status 500. While the file that MAI_SERVER_GATE names exists, requests get status 503 and a Retry-After with
the seconds in that file; requests that are inside go on. INSIDE tells how many these are.

The Python of vLLM's environment imports this file, also in exports: it uses the standard library only.
"""

import hmac
import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

#: Names the file whose presence shuts the gate.
FILE = "MAI_SERVER_GATE"
#: Holds the key. Without it nothing but the open paths answers.
KEY = "VLLM_API_KEY"
#: The controller sends this header with its own requests, which a shut gate lets in.
OURS = "x-mai-server"
#: Tells the number of requests inside.
INSIDE = "/mai-server/inside"
#: What load balancers and Prometheus ask for, without a key.
OPEN = ("/health", "/metrics")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Gate:
    """An ASGI middleware."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app
        self._file = os.environ.get(FILE, "")
        self._key = os.environ.get(KEY, "").encode()
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, websocket or lifespan event."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if not self._has_key(scope) and not _is_open(scope):
            await _refuse(scope, send)
            return
        if scope["type"] == "http" and scope["path"] == INSIDE:
            await _answer(send, 200, {"inside": self._inside})
            return
        if scope["type"] != "http" or scope["method"] != "POST" or _header(scope, OURS):
            await self._app(scope, receive, send)
            return
        again = self._again()
        if again:
            # A client that is still sending pictures when the connection ends would see a broken pipe, not the answer.
            while (await receive()).get("more_body"):
                pass
            message = f"The server is about to be away for a while: try again in {again} s."
            told = {"message": message, "type": "ServiceUnavailable", "code": 503}
            # A connection that is kept would break under the next request when the server goes.
            headers = [(b"retry-after", again.encode()), (b"connection", b"close")]
            await _answer(send, 503, {"error": told}, headers)
            return
        self._inside += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside -= 1

    def _has_key(self, scope: Scope) -> bool:
        scheme, _, given = _header(scope, "authorization").partition(b" ")
        known = hmac.compare_digest(given.strip(), self._key)
        return bool(self._key) and scheme.lower() == b"bearer" and known

    def _again(self) -> str:
        """After how many seconds to come again; "" where the gate is open."""
        try:
            with open(self._file, encoding="ascii") as file:  # noqa: PTH123
                seconds = file.read().strip()
        except (OSError, ValueError):
            return ""
        return seconds if seconds.isdigit() else "1"


def _is_open(scope: Scope) -> bool:
    """Whether a request needs no key."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return False
    return scope["path"].removeprefix(scope.get("root_path", "")) in OPEN


def _header(scope: Scope, name: str) -> bytes:
    """Return the value of a header; b"" if it is missing. A header that is sent twice counts as missing."""
    found = [value for key, value in scope["headers"] if key.lower() == name.encode()]
    return bytes(found[0]) if len(found) == 1 else b""


async def _refuse(scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})  # before it is accepted: HTTP status 403
        return
    message = "This server needs its key: send it as `Authorization: Bearer KEY`."
    headers = [(b"www-authenticate", b"Bearer"), (b"connection", b"close")]
    await _answer(send, 401, {"error": {"message": message, "type": "Unauthorized", "code": 401}}, headers)


async def _answer(send: Send, status: int, document: Any, headers: "list[tuple[bytes, bytes]] | None" = None) -> None:
    body = json.dumps(document).encode()
    known = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": known + (headers or [])})
    await send({"type": "http.response.body", "body": body})
