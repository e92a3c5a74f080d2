"""The door, a server's reverse proxy: passes each request to the engine, and holds requests while the engine is away.

vLLM listens on another port, which changes with every start. The door keeps the clients' port open from the first start
to the last, so that a restart refuses nobody. A connection carries one request: the next one may need another engine.
"""

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass, field, replace
from typing import Any

import h11

from serverctl.load.client import OURS
from serverctl.process.in_vllm.mai_gate import OPEN, Headers, has_key, header, not_authorized
from serverctl.process.probe import INSIDE
from serverctl.process.state import Folder

#: Most requests that may wait at once; further ones get a 503 with Retry-After.
MOST_HELD = 256
#: Retry-After in seconds: of a refused request, and of a request for a model that does not start.
AGAIN_S, _BROKEN_S = 10, 60
#: A model that has requests keeps the engine for this long while others wait, seconds.
TURN_S = 20.0
#: Limits for the head of a request: seconds until it must be complete, and its size in bytes.
_HEAD_S, _HEAD_BYTES = 30.0, 256 * 1024
#: Clients that connect at once, as many as vLLM itself allows.
_BACKLOG = 2048
#: Size of one read, bytes.
_CHUNK = 65_536
#: A refused client may still be sending pictures: read them for this long, seconds, so that it sees the answer.
_LINGER_S = 5.0
#: Seconds before an engine that does not listen any more is tried again. Its end is noticed in the meantime.
_GONE_S = 0.2
#: Headers about the client's connection, which the engine's connection does not share.
_OF_A_CONNECTION = (b"connection", b"keep-alive", b"proxy-connection")
#: Headers about how the client sends a body, which the door has read.
_OF_A_BODY = (b"content-length", b"transfer-encoding", b"expect")
#: Largest body of a request (vLLM takes 32 MiB), and largest sum of all waiting bodies, bytes.
_MOST_BODY, _MOST_BODIES = 64 * 1024**2, 1024**3


@dataclass(frozen=True, slots=True)
class _Head:
    """A request, with its body if that was read already."""

    request: h11.Request
    connection: h11.Connection  # parses its body if the door reads it
    body: bytes | None = None  # None while the client's connection still has it

    @property
    def headers(self) -> Headers:
        return list(self.request.headers)

    @property
    def path(self) -> str:
        return self.request.target.decode("ascii", "replace").partition("?")[0]

    @property
    def is_open(self) -> bool:
        """Whether it is a probe, which needs no key and is never held."""
        return self.request.method in (b"GET", b"HEAD") and self.path in OPEN

    @property
    def is_ours(self) -> bool:
        return bool(header(self.headers, OURS))

    def to_bytes(self) -> bytes:
        """Return what the engine gets: the same request on a connection of its own."""
        upgrades = bool(header(self.headers, "upgrade"))
        other = () if upgrades else _OF_A_CONNECTION if self.body is None else (*_OF_A_CONNECTION, *_OF_A_BODY)
        lines = [b"%s %s HTTP/%s" % (self.request.method, self.request.target, self.request.http_version)]
        for name, value in self.request.headers.raw_items():
            if name.lower() not in other:
                lines.append(b"%s: %s" % (name, value))
        if not upgrades:
            lines.append(b"connection: close")
        if self.body is not None:
            lines.append(b"content-length: %d" % len(self.body))
        return b"\r\n".join(lines) + b"\r\n\r\n" + (self.body or b"")


@dataclass(eq=False, slots=True)
class _Waiting:
    """A request that waits for its model, "" for any."""

    model: str
    size: int = 0  # bytes of its body that the door holds
    since: float = field(default_factory=time.monotonic)
    let_in: asyncio.Event = field(default_factory=asyncio.Event)


class Door:
    """Listens for clients from `listen` to `close`. Requests wait at most `hold` seconds for an engine."""

    def __init__(self, folder: Folder, hold: float) -> None:
        self._folder = folder
        self._hold = hold
        self._key = b""
        self._engine: int | None = None  # the port of the engine that serves
        self._draining = self._leaving = False
        self._waiting: list[_Waiting] = []  # in the order in which they came
        self._model, self._model_since = "", 0.0  # what the engine serves
        self._broken: dict[str, tuple[str, float]] = {}  # why a model does not start, and until when it is refused
        #: The entry of each model in /v1/models, by its name, if clients choose between several models.
        self.models: dict[str, dict[str, Any]] = {}
        self._server: asyncio.Server | None = None
        self.is_listening = False
        self._connections: set[asyncio.Task[None]] = set()
        self.inside = 0  # clients' requests that run

    async def listen(self, port: int | None, key: str) -> int:
        """Listen on a port of loopback (None for any free one), and return it. Raises OSError if it is taken."""
        self._key = key.encode()
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", port or 0, limit=_HEAD_BYTES, backlog=_BACKLOG
        )
        self.is_listening = True
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def held(self) -> int:
        """The number of requests that wait."""
        return len(self._waiting)

    def connect(self, engine: int, model: str = "") -> None:
        """Pass requests to the engine on this port from now on, first those that wait."""
        self._engine, self._draining = engine, False
        self._model, self._model_since = model, time.monotonic()
        self.look()

    def wanted(self) -> str:
        """Return the model to swap in; "" for none.

        It is the model that waits longest, once the engine's model is idle or has had its turn.
        """
        others = [each for each in self._waiting if each.model not in ("", self._model)]
        if not others:
            return ""
        is_idle = not self.inside and len(others) == len(self._waiting)
        had_its_turn = time.monotonic() - max(others[0].since, self._model_since) >= TURN_S
        return others[0].model if is_idle or had_its_turn else ""

    def give_up(self, model: str, because: str) -> None:
        """Refuse requests for a model that does not start, for a while."""
        self._broken[model] = (because, time.monotonic() + _BROKEN_S)
        self.look()

    def disconnect(self) -> None:
        """Hold requests: the engine is away."""
        self._engine = None
        self.look()

    async def drain(self, seconds: float, leaving: bool = False) -> None:
        """Hold new requests, or refuse them if `leaving`. Wait at most `seconds` until the running requests end."""
        self._draining, self._leaving = True, leaving
        self.look()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.inside:
                    await asyncio.sleep(0.05)

    def look(self) -> None:
        """Wake requests that may pass now or are refused. Polled, because `tune` closes the gate by a file."""
        is_open = self._is_open
        for each in self._waiting:
            if self._leaving or self._trouble(each.model) or (is_open and each.model in ("", self._model)):
                each.let_in.set()

    @property
    def _is_open(self) -> bool:
        return self._engine is not None and not self._draining and not self._folder.gate_file.exists()

    def _trouble(self, model: str) -> str:
        """Return why requests for a model are refused at the moment; "" if they are not."""
        because, until = self._broken.get(model, ("", 0.0))
        return because if time.monotonic() < until else ""

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=1.0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except h11.RemoteProtocolError as error:
            with contextlib.suppress(OSError, TimeoutError):
                await _answer(reader, writer, error.error_status_hint, {"error": {"message": str(error)}})
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client disconnected, or sent no complete request
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_S):
            head = await _read_head(reader)
        if not head.is_open and not has_key(head.headers, self._key):
            status, document, headers = not_authorized()
            return await _answer(reader, writer, status, document, headers)
        if head.path == INSIDE:
            return await _answer(reader, writer, 200, {"inside": self.inside, "held": self.held})
        model = ""
        if self.models and not head.is_ours:
            if head.path == "/v1/models":
                own = {"object": "model", "owned_by": "mai-server"}
                listed = [{"id": name, **own, **about} for name, about in self.models.items()]
                return await _answer(reader, writer, 200, {"object": "list", "data": listed})
            if head.request.method == b"POST":
                head = await _with_body(head, reader, writer)
                model = _model_of(head.body or b"")
            if model and model not in self.models:
                message = f"The model {model[:200]!r} is not served here. These are: {', '.join(self.models)}."
                error = {"message": message, "type": "NotFoundError", "param": "model", "code": 404}
                return await _answer(reader, writer, 404, {"error": error})
        while (engine := await self._admit(head, model)) is not None:
            counts = head.request.method == b"POST" and not head.is_ours
            self.inside += counts
            try:
                if await self._relay(engine, head, reader, writer):
                    return None
            finally:
                self.inside -= counts
            await asyncio.sleep(_GONE_S)
        trouble = self._trouble(model)
        return await _refuse(reader, writer, trouble, _BROKEN_S if trouble else AGAIN_S)

    async def _admit(self, head: _Head, model: str) -> int | None:
        """Return the engine's port as soon as a request may pass; None if the client should retry later."""
        if head.is_open or head.is_ours:
            return self._engine
        if head.request.method != b"POST" and self._engine is not None:
            return self._engine  # questions about the server: /v1/models
        until = time.monotonic() + self._hold
        while not self._leaving and not self._trouble(model):
            if self._is_open and model in ("", self._model):
                return self._engine
            me = _Waiting(model, len(head.body or b""))
            if self.held >= MOST_HELD or me.size + sum(each.size for each in self._waiting) > _MOST_BODIES:
                return None
            self._waiting.append(me)
            try:
                await asyncio.wait_for(me.let_in.wait(), until - time.monotonic())
            except TimeoutError:
                return None
            finally:
                self._waiting.remove(me)
        return None

    async def _relay(
        self, engine: int, head: _Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Pass a request to the engine and its answer back. Return False if the engine does not listen any more."""
        try:
            answer, request = await asyncio.open_connection("127.0.0.1", engine, limit=_CHUNK)
        except OSError:
            return False
        request.write(head.to_bytes())
        request_task = asyncio.create_task(_pass_on(reader, request))
        answer_task = asyncio.create_task(_pass_on(answer, writer))
        try:
            await asyncio.wait((request_task, answer_task), return_when=asyncio.FIRST_COMPLETED)
            if not answer_task.done() and not reader.at_eof() and reader.exception() is None:
                await asyncio.wait((answer_task,))  # the engine answered before it had read everything
            is_silent = answer_task.done() and not answer_task.result()
        finally:
            request.close()  # vLLM stops computing an answer that nobody reads
            for task in (request_task, answer_task):
                task.cancel()
            await asyncio.wait((request_task, answer_task))
        if is_silent:  # the engine died
            await _refuse(reader, writer)
        return True


async def _read_head(reader: asyncio.StreamReader) -> _Head:
    """Read the head of a request. Raises RemoteProtocolError if it is none."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(await reader.readuntil(b"\r\n\r\n"))
    request = connection.next_event()
    if not isinstance(request, h11.Request):
        raise h11.RemoteProtocolError("no request")
    return _Head(request, connection)


async def _with_body(head: _Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Head:
    """Read the body of a request. Raises RemoteProtocolError if it is too large or breaks off."""
    connection, body = head.connection, bytearray()
    if connection.they_are_waiting_for_100_continue:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_CHUNK))
        elif isinstance(event, h11.Data):
            body += event.data
        if len(body) > _MOST_BODY:
            raise h11.RemoteProtocolError("the request is too large", 413)
    return replace(head, body=bytes(body))


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> int:
    """Copy bytes until the source ends or the sink breaks. Return their number."""
    passed = 0
    with contextlib.suppress(OSError):
        while data := await source.read(_CHUNK):
            sink.write(data)
            passed += len(data)
            await sink.drain()
    return passed


def _model_of(body: bytes) -> str:
    """Return the model that a request names; "" if it names none."""
    try:
        named = json.loads(body).get("model")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return named if isinstance(named, str) else ""


async def _refuse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, because: str = "", again: int = AGAIN_S
) -> None:
    """Answer 503, with the time after which the client should retry."""
    message = f"{because or 'The server is away for a while'}: try again in {again} s."
    document = {"error": {"message": message, "type": "ServiceUnavailable", "code": 503}}
    await _answer(reader, writer, 503, document, [(b"retry-after", b"%d" % again)])


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: int, document: Any, headers: Headers = ()
) -> None:
    """Answer a request by ourselves, then read what the client still sends."""
    body = json.dumps(document).encode()
    about = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    lines = [b"HTTP/1.1 %d " % status, *(b"%s: %s" % each for each in (*about, *headers))]
    writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
    await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while await reader.read(_CHUNK):
                pass
