"""Lets requests into vLLM, or asks them to come again: `--middleware mai_gate.Gate`, in vLLM's API server.

A vLLM that is asked to end (SIGTERM) goes on to take requests while its engine takes none any more, and answers them
with status 500. So the gate is shut before: while the file that MAI_SERVER_GATE names is there, requests get status 503
and Retry-After, the seconds in that file; those that are inside go on. How many these are is told under INSIDE.

It is imported by the Python of vLLM's environment: only the standard library is there for sure.
"""

import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

#: Names the file whose presence shuts the gate.
FILE = "MAI_SERVER_GATE"
#: Whoever sends this header is the controller itself: heartbeats and trials are let in at all times.
OURS = "x-mai-server"
#: Where the number of requests inside is told.
INSIDE = "/mai-server/inside"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Gate:
    """An ASGI middleware."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app
        self._file = os.environ.get(FILE, "")
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or whatever else the server tells its applications."""
        if scope["type"] == "http" and scope["path"] == INSIDE:
            await _answer(send, 200, {"inside": self._inside})
            return
        if scope["type"] != "http" or scope["method"] != "POST" or _is_ours(scope):
            await self._app(scope, receive, send)
            return
        again = self._again()
        if again:
            # Whoever is still sending pictures when the connection ends would see a broken pipe instead of the answer.
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

    def _again(self) -> str:
        """After how many seconds to come again; "" where the gate is open."""
        try:
            with open(self._file, encoding="ascii") as file:  # noqa: PTH123
                seconds = file.read().strip()
        except (OSError, ValueError):
            return ""
        return seconds if seconds.isdigit() else "1"


def _is_ours(scope: Scope) -> bool:
    return any(name == OURS.encode() for name, _ in scope["headers"])


async def _answer(send: Send, status: int, document: Any, headers: "list[tuple[bytes, bytes]] | None" = None) -> None:
    body = json.dumps(document).encode()
    known = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": known + (headers or [])})
    await send({"type": "http.response.body", "body": body})
