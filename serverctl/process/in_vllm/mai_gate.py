"""Guards every path of vLLM's API server by its key: `--middleware mai_gate.Gate`.

vLLM's own key guards only some prefixes: `/invocations`, `/tokenize` and others answer anybody. Here every path needs
`Authorization: Bearer` and the key of VLLM_API_KEY, known paths or not. Probers get /health and /metrics without it.

The gate can also be shut before the server goes away: a vLLM that was sent SIGTERM still accepts requests and answers
them with status 500. While the file that MAI_SERVER_GATE names exists, requests get status 503 and a Retry-After with
the seconds in that file; requests that are inside go on. INSIDE tells how many these are.

While a file NAME.look is beside it, the gate notes the shape of each chat request in NAME.seen, for `mai-server tune`:
lengths of texts, sizes of pictures, and which of them are alike, by a hash whose secret nobody keeps; no content.

The Python of vLLM's environment imports this file, also in exports: it uses the standard library only.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import struct
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

#: Names the file whose presence shuts the gate.
FILE = "MAI_SERVER_GATE"
#: Added to that name: the file that asks for shapes, and the one that gets them.
LOOK, SEEN = ".look", ".seen"
#: Most shapes to note, and characters of a text that are noted as one piece.
_MOST_SEEN, _PIECE = 64, 512
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
        self._secret = os.urandom(16)

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
        if self._file and scope["path"].endswith("/chat/completions") and os.path.exists(self._file + LOOK):  # noqa: PTH110
            receive = self._noting(receive)
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside -= 1

    def _has_key(self, scope: Scope) -> bool:
        scheme, _, given = _header(scope, "authorization").partition(b" ")
        known = hmac.compare_digest(given.strip(), self._key)
        return bool(self._key) and scheme.lower() == b"bearer" and known

    def _noting(self, receive: Receive) -> Receive:
        """Return what also notes the shape of the request that it receives."""
        body = bytearray()

        async def receive_and_note() -> MutableMapping[str, Any]:
            message = await receive()
            if message["type"] == "http.request":
                body.extend(message.get("body", b""))
                if not message.get("more_body"):
                    with contextlib.suppress(Exception):  # a request that vLLM will refuse, or a full disk
                        self._note(json.loads(body))
            return message

        return receive_and_note

    def _note(self, request: "dict[str, Any]") -> None:
        path = self._file + SEEN
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:  # noqa: PTH123
            if sum(1 for _ in file) >= _MOST_SEEN:
                return
        line = json.dumps([[message["role"], self._pieces(message["content"])] for message in request["messages"]])
        with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(line + "\n")

    def _pieces(self, content: Any) -> "list[list[Any]]":
        """Return the pieces of a message: [hash, characters] of a text, [hash, width, height] of a picture."""
        found: list[list[Any]] = []
        parts: list[Any] = [{"text": content}] if isinstance(content, str) else content or []
        for part in parts:
            if "text" in part:
                text = part["text"]
                for begin in range(0, len(text), _PIECE):
                    piece = text[begin : begin + _PIECE]
                    found.append([self._hash(piece), len(piece)])
            elif "image_url" in part:
                url = part["image_url"]["url"]
                found.append([self._hash(url), *picture_size(base64.b64decode(url.partition(",")[2]))])
        return found

    def _hash(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), digest_size=8, key=self._secret).hexdigest()

    def _again(self) -> str:
        """After how many seconds to come again; "" where the gate is open."""
        try:
            with open(self._file, encoding="ascii") as file:  # noqa: PTH123
                seconds = file.read().strip()
        except (OSError, ValueError):
            return ""
        return seconds if seconds.isdigit() else "1"


def picture_size(data: bytes) -> "tuple[int, int]":
    """Return width and height of a PNG, JPEG or WebP file. Raises ValueError, struct.error or IndexError."""
    if data.startswith(b"\x89PNG"):
        width, height = struct.unpack(">II", data[16:24])
        return width, height
    if data.startswith(b"RIFF") and data[12:16] == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if data.startswith(b"RIFF") and data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if data.startswith(b"RIFF"):
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    position = 2
    while data[position] == 0xFF:  # the segments of a JPEG
        kind, length = data[position + 1], int.from_bytes(data[position + 2 : position + 4], "big")
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return width, height
        position += 2 + length
    raise ValueError("no picture")


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
