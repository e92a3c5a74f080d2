"""Asking a model through any API: timeouts, progress, and the program's only retry layer.

Only transient errors are retried (connection refused or lost, 429, 5xx, a broken stream). Other errors are reported at
once. Each API's client builds the request and parses the answer.
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
from foundation.chat_stream import Answer, AnswerReader, AnswerTooLongError

T = TypeVar("T")
#: A connection object of a vendor's library.
Connection = TypeVar("Connection")

_TRANSIENT: frozenset[ErrorKind] = frozenset({"unreachable", "overloaded", "broken"})
#: Seconds between checks of a restarting server.
_COME_BACK_POLL = 0.25


@dataclass(frozen=True, slots=True)
class Patience:
    """Timeouts in seconds, long enough for slow local models."""

    connect: float = 5.0  # for the connection attempt
    #: from the request to the first token. A 2B model on two CPU cores needs 3 s for one small screenshot; an 8B model
    #: with several large ones needs minutes.
    first_token: float = 300.0
    between_tokens: float = 60.0  # silence within an answer
    #: for the whole request: a third of a run's own time limit. An 8B model on a CPU writes about one token a second,
    #: so the usual 150 tokens take a quarter of it.
    total: float = 600.0
    notice: float = 15.0  # silence after which the person is notified; repeated after the same time
    retries: int = 2  # maximum retries after a transient error
    backoff: float = 0.5  # pause before the first retry; doubles each time
    #: longest pause that a server may ask for (Retry-After). Services count requests by the minute, so theirs are
    #: shorter; a longer one means that a quota is used up.
    longest_pause: float = 120.0

    @classmethod
    def of(cls, seconds: float | None) -> "Patience":
        """Return the timeouts for a --patience value; None for the defaults."""
        if seconds is None:
            return cls()
        usual = cls()
        return cls(first_token=seconds, between_tokens=min(seconds, usual.between_tokens), total=seconds + usual.total)


USUAL_PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class ServerCondition:
    """The state of our own server, for a client whose request failed."""

    condition: Literal["ready", "coming", "gone"]
    words: str


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the streamed answer. `reasoning` marks the model's thinking before the answer."""

    text: str
    reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """The model has been silent, or the server wants a pause, for this many seconds."""

    seconds: float
    words: str  # this as a sentence


@dataclass(frozen=True, slots=True)
class Retrying:
    """The request is sent again. What was streamed so far is void."""

    reason: str
    attempt: int


Progress: TypeAlias = Delta | Waiting | Retrying
OnProgress: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Completion:
    """A complete answer."""

    answer: Answer  # what the model said
    ttft_ms: float | None  # milliseconds from the request to the first token; None without one
    total_ms: float  # milliseconds of the successful request
    images_sent: int  # images sent as bytes; the others were named by id


class ModelClient(Protocol):
    """Asks one endpoint. Bound to one event loop; close it with `aclose`."""

    @property
    def endpoint(self) -> Endpoint:
        """Return the endpoint with everything known about it."""

    async def discover(self, prefer: Callable[[str], object] = lambda _: False) -> Endpoint:
        """Ask the endpoint about itself, and return it with the details filled in.

        If it has several models, the one that `prefer` accepts may be taken. Raises ModelError: it cannot be asked, or
        does not serve the named model. UsageError: it serves several models, and none was chosen.
        """

    async def complete(self, request: ChatRequest, on_progress: OnProgress = lambda _: None) -> Completion:
        """Ask, and report the answer's progress.

        Raises ModelError: after the retries, or at once if retrying cannot help.
        """

    async def aclose(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prepared request."""

    opening: Awaitable[Any]  # sends the request, and returns the stream of the answer's chunks
    reader: AnswerReader  # parses the chunks
    images_sent: int  # images sent as bytes
    explain: Callable[[Exception], ModelError]  # converts an exception of the library or the transport to ours
    answered: Callable[[], None] = lambda: None  # called when the answer is complete


class PatientClient(ABC, Generic[Connection]):
    """The common base of all APIs' clients."""

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
        """Import the API's library, and open a connection."""

    @property
    def connection(self) -> Connection:
        """Return the connection, opened at first use."""
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
        """Return the connection arguments that the OpenAI and Anthropic libraries share.

        Args:
            library: the module of one of them.
        """
        from agent.model.transport import bounded

        # A proxy from the environment must not see traffic that stays on this machine. Redirects are off, so that
        # screenshots go to the named address only.
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
        """Build the request in the API's own format."""

    def forget(self) -> None:  # most servers keep nothing
        """Forget what the server knew: it was restarted."""

    @property
    def silence(self) -> float:
        """Return the seconds after which the transport times out, later than this program does."""
        return max(self.patience.first_token, self.patience.between_tokens) + 5

    async def complete(self, request: ChatRequest, on_progress: OnProgress = lambda _: None) -> Completion:
        """Ask, as `ModelClient.complete` says."""
        attempt = 0
        while True:
            try:
                return await self._attempt(request, on_progress)
            except ModelError as error:
                if error.kind in ("unsupported", "image_forgotten"):  # send the adapted request; this is not a failure
                    on_progress(Retrying(error.what, attempt))
                    continue
                if error.kind not in _TRANSIENT or attempt >= self.patience.retries:
                    raise
                if error.wait is not None and error.wait > self.patience.longest_pause:
                    again = f"It wants to be asked again in {error.wait / 60:.0f} minutes, which is too long to wait."
                    remedy = "Try again then, or use another model."
                    raise ModelError(error.kind, f"{error.what} {again}", remedy, wait=error.wait) from error
                attempt += 1
                on_progress(Retrying(error.what, attempt))
                if await self._come_back(on_progress):
                    # A restarted server gets all retries again; its supervisor ends that after two crashes in ten
                    # minutes.
                    attempt = 0
                await self._pause(self.patience.backoff * 2 ** max(0, attempt - 1), error.wait or 0.0, on_progress)

    async def _pause(self, backoff: float, wanted: float, on_progress: OnProgress) -> None:
        """Wait before a retry: at least `backoff` seconds, and as long as the server wants. Report what is left."""
        left = max(backoff, wanted)
        while left > 0:
            if wanted > backoff:
                words = f"The server asks for a pause: the request is sent again in {left:.0f} seconds."
                on_progress(Waiting(left, words))
            await asyncio.sleep(min(left, self.patience.notice))
            left -= self.patience.notice

    async def _come_back(self, on_progress: OnProgress) -> bool:
        """Wait while our own server restarts after a crash. Its supervisor limits how long that takes.

        Return whether it was away. Raises ModelError: it is not coming back, with the controller's reason.
        """
        if self._condition is None:
            return False
        last_words = ""
        while True:
            now = await asyncio.to_thread(self._condition)
            if now.condition == "gone":
                raise ModelError("gone", now.words, "`mai-server status` says more, `mai-server up` starts it again.")
            if now.condition == "ready":
                if last_words:
                    self.forget()
                return bool(last_words)
            if now.words != last_words:
                last_words = now.words
                on_progress(Retrying(f"The server is being started again: {last_words}.", 0))
            await asyncio.sleep(_COME_BACK_POLL)

    async def _attempt(self, request: ChatRequest, on_progress: OnProgress) -> Completion:
        exchange = self.exchange(request)  # imports libraries first; that time must not count as the model's silence
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
                    heard_at = time.monotonic()  # a server that repeats empty chunks is silent, too
                    first_at = first_at or heard_at
                    on_progress(Delta(piece.text, piece.kind == "reasoning"))
            answer = reader.answer()
            if answer.finish_reason is None:
                raise ModelError("broken", "The server ended the answer in the middle.", SEE_ITS_LOG)
        except ModelError:
            raise
        except AnswerTooLongError as error:
            raise _endless(time.monotonic() - began) from error
        except Exception as error:  # a broken stream raises errors of the transport or the JSON parser
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
        """Wait and report silence since `since`.

        Give up after too much silence, or when the whole answer takes too long.
        """
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
                silent = time.monotonic() - since
                on_progress(Waiting(silent, f"The model has been silent for {silent:.0f} seconds; still waiting."))
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=1)
            if task.done() and not task.cancelled():
                task.exception()  # else asyncio prints that the exception was never retrieved


def _endless(seconds: float) -> ModelError:
    return ModelError(
        "endless",
        f"The model's answer has no end: it was given up after {seconds:.0f} seconds.",
        "A model that repeats itself may need another chat template or quantization; a slow one gets more time with "
        "--patience SECONDS.",
    )
