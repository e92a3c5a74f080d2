"""Guards every path of vLLM's API server by its key: `--middleware mai_gate.Gate`.

vLLM's own key guards only some prefixes: `/invocations`, `/tokenize` and others answer anybody. Here every path needs
`Authorization: Bearer` and the key of VLLM_API_KEY, known paths or not. Probers get /health and /metrics without it.

The Python of vLLM's environment imports this file, also in exports: it uses the standard library only.
"""

import hmac
import json
import os
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

#: The variable with the key. If it is unset, only the open paths answer.
KEY = "VLLM_API_KEY"
#: Paths that load balancers and Prometheus request without a key.
OPEN = ("/health", "/metrics")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
#: Names in small letters, with their values.
Headers = Iterable["tuple[bytes, bytes]"]


class Gate:
    """An ASGI middleware."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app
        self._key = os.environ.get(KEY, "").encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, websocket or lifespan event."""
        if scope["type"] in ("http", "websocket") and not _is_open(scope) and not has_key(scope["headers"], self._key):
            await _refuse(scope, send)
        else:
            await self._app(scope, receive, send)


def has_key(headers: Headers, key: bytes) -> bool:
    """Whether a request has the key."""
    scheme, _, token = header(headers, "authorization").partition(b" ")
    known = hmac.compare_digest(token.strip(), key)
    return bool(key) and scheme.lower() == b"bearer" and known


def header(headers: Headers, name: str) -> bytes:
    """Return the value of a header; b"" if it is missing. A header that is sent twice counts as missing."""
    found = [value for key, value in headers if key.lower() == name.encode()]
    return bytes(found[0]) if len(found) == 1 else b""


def not_authorized() -> "tuple[int, dict[str, Any], list[tuple[bytes, bytes]]]":
    """Return status, document and headers for a request without the key."""
    message = "This server needs its key: send it as `Authorization: Bearer KEY`."
    document = {"error": {"message": message, "type": "Unauthorized", "code": 401}}
    return 401, document, [(b"www-authenticate", b"Bearer")]


def _is_open(scope: Scope) -> bool:
    """Whether a request needs no key."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return False
    return scope["path"].removeprefix(scope.get("root_path", "")) in OPEN


async def _refuse(scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})  # before it is accepted: HTTP status 403
        return
    status, document, headers = not_authorized()
    body = json.dumps(document).encode()
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
