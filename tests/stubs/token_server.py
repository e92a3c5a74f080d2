"""A server that streams tokens with delays, remembers prompts and images as a vLLM does, and counts it in /metrics.

An asyncio server in a thread of the test's own process. What a request is answered with is decided by `behave`.
"""

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MODEL = "MAI-UI-8B"
KEY = "a-secret-key"

#: A prefix cache works in blocks of so many characters here.
_BLOCK = 64


@dataclass(frozen=True)
class Refuse:
    status: int
    message: str


@dataclass(frozen=True)
class Hang:
    """Begins an answer and never ends it."""


@dataclass(frozen=True)
class Die:
    """The whole server is gone from now on."""


@dataclass(frozen=True)
class Say:
    text: str = "word "
    tokens: int | None = None  # None: as many as were asked for


Behaviour = Say | Refuse | Hang | Die


@dataclass
class Traits:
    """What this server is like.

    Args:
        ttft_s: before the first token.
        gap_s: before each of the others.
        usage: whether it counts tokens.
        details: whether it tells cached tokens.
        metrics: whether it has /metrics.
        unknown: request fields that it refuses.
        dead_engine: whether /health says so.
    """

    ttft_s: float = 0.0
    gap_s: float = 0.0
    usage: bool = True
    details: bool = True
    metrics: bool = True
    unknown: tuple[str, ...] = ()
    dead_engine: bool = False


@dataclass
class Seen:
    requests: list[dict[str, Any]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    finished: int = 0
    blocks: set[str] = field(default_factory=set)
    images: set[str] = field(default_factory=set)
    prefix: list[int] = field(default_factory=lambda: [0, 0])  # hits, queries
    mm: list[int] = field(default_factory=lambda: [0, 0])


class TokenServer:
    """The server; a context manager.

    Args:
        behave: from a request's number and body to what becomes of it; None is Say().
        traits: what the server is like.
    """

    def __init__(
        self,
        behave: Callable[[int, dict[str, Any]], Behaviour | None] = lambda _n, _b: None,
        traits: Traits | None = None,
    ) -> None:
        self.seen = Seen()
        self.traits = traits or Traits()
        self._behave = behave
        self._writers: set[asyncio.StreamWriter] = set()
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._started.wait(10)

    def __enter__(self) -> "TokenServer":
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def chats(self) -> list[dict[str, Any]]:
        """The chat requests, in the order in which they came."""
        return self.seen.requests

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=64 * 1024 * 1024)
        self.port = server.sockets[0].getsockname()[1]
        self._server = server
        self._started.set()
        await self._stopping.wait()
        self._end()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self) -> None:
        """No new connections, and the ones there are reset."""
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while line := await reader.readline():
                method, path, _ = line.decode().split(" ", 2)
                headers: dict[str, str] = {}
                while (header := await reader.readline()) not in (b"\r\n", b""):
                    name, _, value = header.decode().partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                if method == "POST":
                    await self._chat(json.loads(body), writer)
                else:
                    self._get(path, headers, writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    def _get(self, path: str, headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        if path.endswith("/models"):
            if headers.get("authorization") != f"Bearer {KEY}":
                respond(writer, 401, {"error": {"message": "Unauthorized"}})
            else:
                respond(writer, 200, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "vllm"}]})
        elif path.endswith("/health"):
            respond(writer, 503 if self.traits.dead_engine else 200, {})
        elif path.endswith("/metrics") and self.traits.metrics:
            respond(writer, 200, self._metrics())
        else:
            respond(writer, 404, {"error": {"message": "Not Found"}})

    def _metrics(self) -> str:
        seen = self.seen
        counters = {
            "vllm:prefix_cache_hits": seen.prefix[0], "vllm:prefix_cache_queries": seen.prefix[1],
            "vllm:mm_cache_hits": seen.mm[0], "vllm:mm_cache_queries": seen.mm[1],
            "vllm:num_preemptions": 0, "vllm:request_success": seen.finished,
        }  # fmt: skip
        lines: list[str] = []
        for name, value in counters.items():
            # Two engines, as with data parallelism: their counters belong together.
            lines += [f"# TYPE {name} counter", f'{name}_total{{engine="0"}} {value}', f'{name}_total{{engine="1"}} 0']
        return "\n".join(lines) + "\n"

    async def _chat(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        seen = self.seen
        number = len(seen.requests)
        seen.requests.append(body)
        seen.in_flight += 1
        seen.most_in_flight = max(seen.most_in_flight, seen.in_flight)
        try:
            if unknown := [name for name in self.traits.unknown if name in body]:
                respond(writer, 400, {"error": {"message": f"Unrecognized request argument: {unknown[0]}"}})
                return
            behaviour = self._behave(number, body) or Say()
            match behaviour:
                case Refuse(status, message):
                    respond(writer, status, {"error": {"message": message}})
                case Die():
                    self._end()
                case Hang():
                    await asyncio.sleep(3600)
                case Say():
                    await self._say(behaviour, body, writer)
                    seen.finished += 1
        finally:
            seen.in_flight -= 1

    async def _say(self, say: Say, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        tokens = say.tokens or body["max_tokens"]
        usage = self._usage(body, tokens)
        await asyncio.sleep(self.traits.ttft_s)
        if not body.get("stream"):
            await asyncio.sleep(self.traits.gap_s * (tokens - 1))
            choice = {"index": 0, "message": {"role": "assistant", "content": say.text}, "finish_reason": "stop"}
            respond(writer, 200, {"id": "c", "object": "chat.completion", "created": 0, "model": MODEL,
                                  "choices": [choice], "usage": usage})  # fmt: skip
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        event(writer, {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
        for token in range(tokens):
            if token:
                await asyncio.sleep(self.traits.gap_s)
            finish = "length" if token == tokens - 1 else None
            event(writer, {"choices": [{"index": 0, "delta": {"content": say.text}, "finish_reason": finish}]})
            await writer.drain()
        if (body.get("stream_options") or {}).get("include_usage") and self.traits.usage:
            event(writer, {"choices": [], "usage": usage})
        event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")

    def _usage(self, body: dict[str, Any], tokens: int) -> dict[str, Any]:
        """Counts as a vLLM with a prefix cache and a cache of images."""
        prompt = json.dumps(body["messages"])
        chain, hits = "", 0
        blocks = [prompt[start : start + _BLOCK] for start in range(0, len(prompt) - _BLOCK, _BLOCK)]
        for block in blocks:
            chain = hashlib.sha256((chain + block).encode()).hexdigest()
            hits += chain in self.seen.blocks
            self.seen.blocks.add(chain)
        self.seen.prefix[0] += hits
        self.seen.prefix[1] += len(blocks)
        for image in images(body):
            digest = hashlib.sha256(image.encode()).hexdigest()
            self.seen.mm[0] += digest in self.seen.images
            self.seen.mm[1] += 1
            self.seen.images.add(digest)
        usage: dict[str, Any] = {"prompt_tokens": len(blocks), "completion_tokens": tokens, "total_tokens": 0}
        if self.traits.details:
            usage["prompt_tokens_details"] = {"cached_tokens": hits}
        return usage


def respond(writer: asyncio.StreamWriter, status: int, content: dict[str, Any] | str) -> None:
    body = (content if isinstance(content, str) else json.dumps(content)).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


def event(writer: asyncio.StreamWriter, content: dict[str, Any] | str) -> None:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    text = content if isinstance(content, str) else json.dumps({**head, **content})
    line = f"data: {text}\n\n".encode()
    writer.write(b"%x\r\n%s\r\n" % (len(line), line))


def images(body: dict[str, Any]) -> list[str]:
    """The image URLs of a request."""
    return [
        part["image_url"]["url"]
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


def texts(body: dict[str, Any]) -> list[str]:
    """The texts of a request, in order."""
    found: list[str] = []
    for message in body["messages"]:
        content = message["content"]
        found += [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
    return found
