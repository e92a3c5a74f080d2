"""Asking a model, whatever its API: patience, progress, and the only retry layer of the program.

Retried here, and nowhere else: what is transient (connection refused or lost, 429, 5xx, a broken stream). Everything
else is explained at once. What is sent and how the answer is read, each API's client says itself.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from agent.model.endpoint import Endpoint
from agent.model.refusals import SEE_ITS_LOG, ErrorKind, ModelError
from agent.model.request import ChatRequest
from foundation.chat_stream import Answer, AnswerTooLongError, Piece

T = TypeVar("T")
#: The connection of a maker's library.
Connection = TypeVar("Connection")

_TRANSIENT: frozenset[ErrorKind] = frozenset({"unreachable", "overloaded", "broken"})
#: How often a server that comes back is asked after, seconds.
_COME_BACK_POLL = 0.25


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds; chosen so that a slow local model is never cut off."""

    connect: float = 5.0  # for the connection
    #: from the request to the first token. A 2B model on two CPU cores needs 3 s for one small screenshot, an 8B model
    #: with several large ones minutes.
    first_token: float = 300.0
    between_tokens: float = 60.0  # silence in the middle of an answer
    #: the longest answer, with all that goes before it: a third of a run's own limit. The usual 150 tokens at one a
    #: second, as an 8B model on a processor has it, take a quarter of it.
    total: float = 600.0
    notice: float = 15.0  # after this much silence the person is told, again each time it has passed
    retries: int = 2  # further tries after something transient
    backoff: float = 0.5  # pause before the first retry; doubled each time

    @classmethod
    def of(cls, seconds: float | None) -> "Patience":
        """As a person sets it with --patience; None for the default."""
        if seconds is None:
            return cls()
        usual = cls()
        return cls(first_token=seconds, between_tokens=min(seconds, usual.between_tokens), total=seconds + usual.total)


USUAL_PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class ServerCondition:
    """What became of a server of ours, for a client whose request failed."""

    condition: Literal["ready", "coming", "gone"]
    words: str


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer as it streams in; `reasoning` marks what the model thinks before it answers."""

    text: str
    reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Silence:
    """The model has said nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Retrying:
    """The request is sent again; what streamed in so far is void."""

    reason: str
    attempt: int


Progress: TypeAlias = Delta | Silence | Retrying
OnProgress: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer."""

    answer: Answer  # what the model said
    ttft_ms: float | None  # milliseconds from the request to the first token; None when there was none
    total_ms: float  # milliseconds of the request that succeeded
    images_sent: int  # images whose bytes travelled; the others were named by id


class ModelClient(Protocol):
    """Asks one endpoint. Made for one event loop; close it with `aclose`."""

    @property
    def endpoint(self) -> Endpoint:
        """Where, with everything that is known of it."""
        ...

    async def discover(self, prefer: Callable[[str], object] = lambda _: False) -> Endpoint:
        """The endpoint with what it tells of itself filled in.

        Where it has several models, one that is preferred by its name may be taken. Raises ModelError: it cannot be
        asked, or serves no such model; UsageError: it serves several and none was chosen.
        """
        ...

    async def complete(self, request: ChatRequest, on_progress: OnProgress = lambda _: None) -> Completion:
        """Ask, and tell of the answer as it comes.

        Raises ModelError: after the retries, or at once where retrying cannot help.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class Reader(Protocol):
    """Puts one streamed answer together."""

    def take(self, chunk: Any) -> list[Piece]:
        """What a chunk of the stream adds, in order. Raises AnswerTooLongError."""
        ...

    def answer(self) -> Answer:
        """What was said so far."""
        ...


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, ready to go."""

    opening: Awaitable[Any]  # sends it, and gives the stream of the answer's chunks
    reader: Reader  # reads them
    images_sent: int  # images whose bytes travel
    explain: Callable[[Exception], ModelError]  # what the library or the transport raised, as one of ours
    answered: Callable[[], None] = lambda: None  # called when the whole answer is there


class PatientClient(ABC, Generic[Connection]):
    """What the clients of all APIs share."""

    def __init__(
        self,
        endpoint: Endpoint,
        patience: Patience = USUAL_PATIENCE,
        condition: Callable[[], ServerCondition] | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.patience = patience
        self._condition = condition
        self._connected: Connection | None = None

    @abstractmethod
    def connect(self) -> Connection:
        """A connection of the API's own library, which is imported now."""

    @property
    def connection(self) -> Connection:
        """The one connection, made when it is first needed."""
        if self._connected is None:
            self._connected = self.connect()
        return self._connected

    async def aclose(self) -> None:
        """Close the connections."""
        if self._connected is not None:
            await self.disconnect(self._connected)

    async def disconnect(self, connection: Any) -> None:
        """Close a connection, as most libraries do it."""
        await connection.close()

    def connecting(self, library: Any) -> dict[str, Any]:
        """The arguments of a connection that the libraries of OpenAI and Anthropic have in common.

        Args:
            library: the module of one of them.
        """
        from agent.model.transport import bounded

        # A proxy of the environment is for the way out: what stays on this machine must not take it. And what was named
        # is where screenshots go: no redirection takes them elsewhere.
        transport = library.DefaultAsyncHttpxClient(trust_env=not self.endpoint.is_local, follow_redirects=False)
        return {
            "base_url": self.endpoint.base_url,
            "api_key": self.endpoint.api_key or "none",
            "max_retries": 0,  # `complete` is the retry layer
            "timeout": library.Timeout(self.silence, connect=self.patience.connect),
            "http_client": bounded(transport),
        }

    @abstractmethod
    def exchange(self, request: ChatRequest) -> Exchange:
        """The request in the API's own words."""

    def forget(self) -> None:  # most servers hold nothing
        """The server was started anew: it has nothing any more of what was sent."""

    @property
    def silence(self) -> float:
        """Seconds after which a transport may give up by itself: later than this program does."""
        return max(self.patience.first_token, self.patience.between_tokens) + 5

    async def complete(self, request: ChatRequest, on_progress: OnProgress = lambda _: None) -> Completion:
        """Ask, and tell of the answer as it comes.

        Raises ModelError: after the retries, or at once where retrying cannot help.
        """
        attempt = 0
        while True:
            try:
                return await self._attempt(request, on_progress)
            except ModelError as error:
                if error.kind in ("unsupported", "image_forgotten"):  # ask again without it; not a failure
                    on_progress(Retrying(error.what, attempt))
                    continue
                if error.kind not in _TRANSIENT or attempt >= self.patience.retries:
                    raise
                attempt += 1
                on_progress(Retrying(error.what, attempt))
                if await self._come_back(on_progress):
                    attempt = 0  # a server that came back is asked afresh; two crashes in ten minutes end that
                await asyncio.sleep(self.patience.backoff * 2 ** max(0, attempt - 1))

    async def _come_back(self, on_progress: OnProgress) -> bool:
        """Waits while a server of ours is started again after a crash; its supervisor bounds how long that takes.

        Gives whether it was away. Raises ModelError: it is not coming back; with the controller's reason.
        """
        if self._condition is None:
            return False
        said = ""
        while True:
            now = await asyncio.to_thread(self._condition)
            if now.condition == "gone":
                raise ModelError("gone", now.words, "`mai-server status` says more, `mai-server up` starts it again.")
            if now.condition == "ready":
                if said:
                    self.forget()
                return bool(said)
            if now.words != said:
                said = now.words
                on_progress(Retrying(f"The server is being started again: {said}.", 0))
            await asyncio.sleep(_COME_BACK_POLL)

    async def _attempt(self, request: ChatRequest, on_progress: OnProgress) -> Completion:
        exchange = self.exchange(request)  # where libraries are imported first, which is no silence of the model
        began = time.monotonic()
        reader = exchange.reader
        first_at: float | None = None
        heard_at = began
        stream: Any = None
        try:
            stream = await self._patiently(exchange.opening, began, began, on_progress, first=True)
            chunks = aiter(stream)
            while True:
                coming = anext(chunks, None)
                chunk = await self._patiently(coming, began, heard_at, on_progress, first=first_at is None)
                if chunk is None:
                    break
                for piece in reader.take(chunk):
                    heard_at = time.monotonic()  # a server that sends nothing again and again is silent too
                    first_at = first_at or heard_at
                    on_progress(Delta(piece.text, piece.kind == "reasoning"))
            answer = reader.answer()
            if answer.finish_reason is None:
                raise ModelError("broken", "The server ended the answer in the middle.", SEE_ITS_LOG)
        except ModelError:
            raise
        except AnswerTooLongError as error:
            raise _endless(time.monotonic() - began) from error
        except Exception as error:  # broken streams surface as whatever the transport or the JSON reader raises
            raise exchange.explain(error) from error
        finally:
            if stream is not None:
                await (stream.close() if hasattr(stream, "close") else stream.aclose())
        exchange.answered()
        return Completion(
            answer=answer,
            ttft_ms=None if first_at is None else (first_at - began) * 1000,
            total_ms=(time.monotonic() - began) * 1000,
            images_sent=exchange.images_sent,
        )

    async def _patiently(
        self, coming: Awaitable[T], began: float, since: float, on_progress: OnProgress, *, first: bool
    ) -> T:
        """Wait, telling of silence since something was heard; give up when that or the whole answer lasts too long."""
        limit = self.patience.first_token if first else self.patience.between_tokens
        task = asyncio.ensure_future(coming)
        try:
            while True:
                now = time.monotonic()
                if now - began >= self.patience.total:
                    raise _endless(now - began)
                waited = now - since
                if waited >= limit:
                    raise ModelError(
                        "silent",
                        f"The model has said nothing for {waited:.0f} seconds.",
                        "Is the server overloaded or hung? A longer wait can be set with --patience SECONDS.",
                    )
                left = min(limit - waited, began + self.patience.total - now)
                done, _ = await asyncio.wait({task}, timeout=min(self.patience.notice, left))
                if done:
                    return task.result()
                on_progress(Silence(time.monotonic() - since))
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=1)


def _endless(seconds: float) -> ModelError:
    return ModelError(
        "endless",
        f"The model's answer has no end: it was given up after {seconds:.0f} seconds.",
        "A model that repeats itself may need another chat template or quantization; a slow one gets more time with "
        "--patience SECONDS.",
    )
