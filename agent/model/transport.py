"""Limits response sizes, so that a broken or hostile server cannot exhaust memory, and makes streams of whole answers.

The answer itself is limited where it is parsed. This module changes and limits the bytes before parsing.
"""

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from agent.model.refusals import ModelError
from foundation.chat_stream import AnswerTooLongError

_MIB = 1 << 20
#: Bytes of one response. 32,000 tokens streamed one by one are about 11 MiB; a list of a thousand models is 1 MiB.
_MOST = 24 * _MIB
#: Bytes of an answer, or of one event of its stream. Libraries assemble these line by line, and copy them each time.
_MOST_EVENT = _MIB


def bounded(client: Any) -> Any:
    """Limit the response sizes of an `httpx2.AsyncClient`, let it read whole answers as streams, and return it."""
    # A few compressed bytes can expand to gigabytes.
    client.headers["accept-encoding"] = "identity"
    client.event_hooks = {**client.event_hooks, "response": [*client.event_hooks["response"], _bound]}
    return client


async def _bound(response: httpx2.Response) -> None:
    """Limit a response. Raises ModelError: it is compressed, although that was declined."""
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise ModelError("refused", "The server compresses its answers unasked.", "Is there a proxy that does it?")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Bounded(response.stream, _MOST if response.request.method == "GET" else _MOST_EVENT)
    if response.is_success and response.request.url.path.endswith("/chat/completions"):
        response.stream = _AsEvents(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    """Raises AnswerTooLongError for more than `_MOST` bytes, or an event of more than `most_event` bytes."""

    def __init__(self, inner: httpx2.AsyncByteStream, most_event: int) -> None:
        self._inner = inner
        self._most_event = most_event

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = event = 0
        async for piece in self._inner:
            total += len(piece)
            ended = max(piece.rfind(end) for end in (b"\n\n", b"\r\n\r\n", b"\r\r"))
            event = event + len(piece) if ended < 0 else len(piece) - ended
            if total > _MOST or event > self._most_event:
                raise AnswerTooLongError("the server sends more than an answer can be")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class _AsEvents(httpx2.AsyncByteStream):
    """Turns one JSON object, with which some servers answer a request for a stream, into a stream of one event.

    The content type does not distinguish the two, because some servers always name a stream's. A brace at the beginning
    does: no line of a stream begins with one.
    """

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        begun = is_object = False
        async for piece in self._inner:
            if not begun and (rest := piece.lstrip()):
                begun, is_object = True, rest.startswith(b"{")
                if is_object:
                    yield b"data: "
            # The library joins the lines of one event again.
            yield piece.replace(b"\n", b"\ndata: ") if is_object else piece
        if is_object:
            yield b"\n\ndata: [DONE]\n\n"

    async def aclose(self) -> None:
        await self._inner.aclose()
