"""The OpenAI-compatible client: streaming, usage, readable errors, and the only retry layer of the program.

Retried here, and nowhere else: what is transient (connection refused or lost, 429, 5xx, a broken stream). Everything
else is explained at once. Servers differ in what they accept, so optional parts of a request (usage in streams,
sampling beyond OpenAI's, images by id) are left out from the first refusal on.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from agent.model.endpoint import Endpoint, ServerKind
from agent.model.engine import ServerCondition
from agent.model.messages import to_openai
from agent.model.refusals import SEE_ITS_LOG, ErrorKind, ModelError, explain
from agent.model.request import ChatRequest
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer, AnswerReader, AnswerTooLongError
from foundation.errors import UsageError
from foundation.refusals import refusal_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")

_TRANSIENT: frozenset[ErrorKind] = frozenset({"unreachable", "overloaded", "broken"})
#: A server that forgets images more often than this is sent their bytes always: asking twice costs more.
_MOST_MISSES = 2
_KIND_OF_OWNER: dict[str, ServerKind] = {"vllm": "vllm", "mai-agent": "literal"}
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


class ChatClient:
    """Asks one endpoint. Made for one event loop; close it with `aclose`."""

    def __init__(
        self,
        endpoint: Endpoint,
        patience: Patience = Patience(),
        condition: Callable[[], ServerCondition] | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._condition = condition
        self._patience = patience
        self._openai: AsyncOpenAI | None = None
        self._dropped: set[str] = set()  # optional request parts that this server refused
        self._remembered: set[str] = set()  # digests of images that the server holds
        self._misses = 0

    def _connection(self) -> "AsyncOpenAI":
        if self._openai is None:
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

            silence = max(self._patience.first_token, self._patience.between_tokens) + 5
            self._openai = AsyncOpenAI(
                base_url=self.endpoint.base_url,
                api_key=self.endpoint.api_key or "none",
                max_retries=0,  # this class is the retry layer
                timeout=Timeout(silence, connect=self._patience.connect),
                # A proxy of the environment is for the way out: what stays on this machine must not take it. And what
                # was named is where screenshots go: no redirection takes them elsewhere.
                http_client=DefaultAsyncHttpxClient(trust_env=not self.endpoint.is_local, follow_redirects=False),
            )
        return self._openai

    async def aclose(self) -> None:
        """Close the connections."""
        if self._openai is not None:
            await self._openai.close()

    async def discover(self, prefer: Callable[[str], object] = lambda _: False) -> Endpoint:
        """The endpoint with model, kind and context filled in from /v1/models, as far as the server tells.

        Where it has several models, one that is preferred by its name is taken. Raises ModelError: it cannot be asked,
        or serves no such model; UsageError: it serves several and none was chosen.
        """
        where = self.endpoint.base_url
        try:
            listing = await asyncio.wait_for(self._connection().models.list(), 20)
            models = {entry.id: entry for entry in listing.data if isinstance(getattr(entry, "id", None), str)}
        except TimeoutError as error:
            raise ModelError("silent", f"{where} does not answer.", "Is the server still starting, or hung?") from error
        except Exception as error:  # whatever a foreign server makes of this question
            problem = explain(error, self.endpoint)
            if problem.kind in ("unreachable", "bad_key", "overloaded", "silent"):
                raise problem from error
            if self.endpoint.model is None:
                raise ModelError(
                    "unknown_model",
                    f"{where} does not list its models ({refusal_of(error).reason}).",
                    "Is that the address of an OpenAI-compatible API? Its model can be named with --model.",
                ) from error
            return self.endpoint  # a server without /v1/models can still chat
        model = self.endpoint.model or _only_model(where, list(models), prefer)
        if models and model not in models:
            served = ", ".join([*models][:8])
            raise ModelError("unknown_model", f"{where} does not serve {model!r}.", f"It serves: {served}.")
        entry = models.get(model)
        context = ((entry.model_extra or {}) if entry is not None else {}).get("max_model_len")
        limits = self.endpoint.limits
        if isinstance(context, int) and context > 0:
            limits = replace(limits, context=min(context, limits.context or context))
        owner = getattr(entry, "owned_by", "")  # foreign servers leave fields out
        kind = _KIND_OF_OWNER.get(str(owner), self.endpoint.kind)
        self.endpoint = replace(self.endpoint, model=model, kind=kind, limits=limits)
        return self.endpoint

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
                if error.kind not in _TRANSIENT or attempt >= self._patience.retries:
                    raise
                attempt += 1
                on_progress(Retrying(error.what, attempt))
                if await self._come_back(on_progress):
                    attempt = 0  # a server that came back is asked afresh; two crashes in ten minutes end that
                await asyncio.sleep(self._patience.backoff * 2 ** max(0, attempt - 1))

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
                    self._remembered.clear()  # a new process has none of the images
                return bool(said)
            if now.words != said:
                said = now.words
                on_progress(Retrying(f"The server is being started again: {said}.", 0))
            await asyncio.sleep(_COME_BACK_POLL)

    async def _attempt(self, request: ChatRequest, on_progress: OnProgress) -> Completion:
        began = time.monotonic()
        images = request.images()
        named = [image for image in images if self._holds(image)]
        optional = request.optional_parts(self.endpoint.kind)
        optional = {name: part for name, part in optional.items() if name not in self._dropped}
        extra = {name: value for part in optional.values() for name, value in part.items()}
        # As they are: the library would walk through every part of every message, to rename none of them; that takes
        # 40 ms of every request late in a long run.
        extra["messages"] = to_openai(request.messages, self._image_part)
        required = {"model": self.endpoint.model, "messages": [], **request.required_parts()}
        sent = {*optional, *(["image_id"] if self._by_id else []), *(["tools"] if request.tools else [])}
        reader = AnswerReader(max_tokens=required["max_tokens"])
        first_at: float | None = None
        heard_at = began
        stream: Any = None
        try:
            opening = self._connection().chat.completions.create(**required, extra_body=extra)
            stream = await self._patiently(opening, began, began, on_progress, first=True)
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
            if named and "cache miss for image" in str(error).lower():
                raise self._forgotten() from error
            problem = explain(error, self.endpoint, sent)
            if problem.part is not None:
                self._dropped.add(problem.part)
            raise problem from error
        finally:
            if stream is not None:
                await stream.close()
        self._remembered.update(image.digest for image in images if self._by_id)
        return Completion(
            answer=answer,
            ttft_ms=None if first_at is None else (first_at - began) * 1000,
            total_ms=(time.monotonic() - began) * 1000,
            images_sent=len(images) - len(named),
        )

    async def _patiently(
        self, coming: Awaitable[T], began: float, since: float, on_progress: OnProgress, *, first: bool
    ) -> T:
        """Wait, telling of silence since something was heard; give up when that or the whole answer lasts too long."""
        limit = self._patience.first_token if first else self._patience.between_tokens
        task = asyncio.ensure_future(coming)
        try:
            while True:
                now = time.monotonic()
                if now - began >= self._patience.total:
                    raise _endless(now - began)
                waited = now - since
                if waited >= limit:
                    raise ModelError(
                        "silent",
                        f"The model has said nothing for {waited:.0f} seconds.",
                        "Is the server overloaded or hung? A longer wait can be set with --patience SECONDS.",
                    )
                left = min(limit - waited, began + self._patience.total - now)
                done, _ = await asyncio.wait({task}, timeout=min(self._patience.notice, left))
                if done:
                    return task.result()
                on_progress(Silence(time.monotonic() - since))
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=1)

    @property
    def _by_id(self) -> bool:
        """Whether images are named by id once the server has them (vLLM's `uuid`)."""
        return self.endpoint.kind == "vllm" and "image_id" not in self._dropped

    def _holds(self, image: EncodedImage) -> bool:
        """Whether the server has the image, so that it need only be named."""
        return self._by_id and image.digest in self._remembered

    def _image_part(self, image: EncodedImage | None) -> dict[str, Any]:
        assert image is not None, "a request needs its images"
        url = None if self._holds(image) else {"url": image.data_url}
        return {"type": "image_url", "image_url": url} | ({"uuid": image.digest} if self._by_id else {})

    def _forgotten(self) -> ModelError:
        """The server dropped an image that the request only named: from now on all are sent anew."""
        self._remembered.clear()
        self._misses += 1
        if self._misses > _MOST_MISSES:
            self._dropped.add("image_id")
        return ModelError("image_forgotten", "The server no longer has an image: it is sent again.", "")


def _endless(seconds: float) -> ModelError:
    return ModelError(
        "endless",
        f"The model's answer has no end: it was given up after {seconds:.0f} seconds.",
        "A model that repeats itself may need another chat template or quantization; a slow one gets more time with "
        "--patience SECONDS.",
    )


def _only_model(where: str, names: list[str], prefer: Callable[[str], object]) -> str:
    """The model to take where none was named: the only one, or the only one that is preferred."""
    choice = [name for name in names if prefer(name)] or names
    if not choice:
        raise ModelError("unknown_model", f"{where} serves no model.", "Load one there first.")
    if len(choice) > 1:
        raise UsageError(f"{where} serves several models: {', '.join(choice[:8])}.", "Choose one with --model.")
    return choice[0]
