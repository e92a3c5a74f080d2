"""The OpenAI-compatible client: streaming, usage, readable errors, and the only retry layer of the program.

Retried here, and nowhere else: what is transient (connection refused or lost, 429, 5xx, a broken stream). Everything
else is explained at once. Servers differ in what they accept, so optional parts of a request (usage in streams,
sampling beyond OpenAI's, images by id) are left out from the first refusal on.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from agent.families.base import Message, Sampling, to_openai
from agent.model.endpoint import Endpoint, ServerKind
from agent.model.refusals import SEE_ITS_LOG, ErrorKind, ModelError, explain, reason_of
from agent.model.serving import ServerCondition
from agent.screen.encode import EncodedImage
from foundation.errors import UsageError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_TRANSIENT: frozenset[ErrorKind] = frozenset({"unreachable", "overloaded", "broken"})
#: A server that forgets images more often than this is sent their bytes always: asking twice costs more.
_MOST_MISSES = 2
#: How often a server that comes back is asked after, seconds.
_COME_BACK_POLL = 0.25


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds; chosen so that a slow local model is never cut off.

    Args:
        connect: for the connection.
        first_token: from the request to the first token. A 2B model on two CPU cores needs 3 s for one small
            screenshot (facts/desktop.md), an 8B model with several large ones minutes.
        between_tokens: silence in the middle of an answer.
        notice: after this much silence the person is told, again each time it has passed.
        retries: further tries after something transient.
        backoff: pause before the first retry; doubled each time.
    """

    connect: float = 5.0
    first_token: float = 300.0
    between_tokens: float = 60.0
    notice: float = 15.0
    retries: int = 2
    backoff: float = 0.5


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request; None where the server does not say."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer as it streams in."""

    text: str


@dataclass(frozen=True, slots=True)
class Silence:
    """The model has said nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Retrying:
    """The request is sent again; what streamed in so far is void."""

    reason: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer.

    Args:
        text: what the model said.
        usage: tokens.
        finish_reason: "length" when the token limit cut the answer off.
        ttft_ms: milliseconds from the request to the first token; None when there was none.
        total_ms: milliseconds of the request that succeeded.
        images_sent: images whose bytes travelled; the others were named by id.
    """

    text: str
    usage: Usage
    finish_reason: str | None
    ttft_ms: float | None
    total_ms: float
    images_sent: int


StreamItem: TypeAlias = Delta | Silence | Retrying | Completion


@dataclass(slots=True)
class _Images:
    """The images of one request: those whose bytes travel in it, and those it only names."""

    sent: list[EncodedImage] = field(default_factory=list)
    named: list[EncodedImage] = field(default_factory=list)


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

    async def discover(self) -> Endpoint:
        """The endpoint with model, kind and context filled in from /v1/models, as far as the server tells.

        Raises:
            ModelError: the server cannot be asked, or serves no such model.
            UsageError: it serves several models and none was chosen.
        """
        from agent.families.registry import detect_family

        try:
            listing = await asyncio.wait_for(self._connection().models.list(), 20)
            models = {entry.id: entry for entry in listing.data if isinstance(getattr(entry, "id", None), str)}
        except TimeoutError as error:
            raise ModelError(
                "silent", f"{self.endpoint.base_url} does not answer.", "Is the server still starting, or hung?"
            ) from error
        except Exception as error:  # whatever a foreign server makes of this question
            problem = self._explain(error)
            if problem.kind in ("unreachable", "bad_key", "overloaded", "silent"):
                raise problem from error
            if self.endpoint.model is None:
                raise ModelError(
                    "unknown_model",
                    f"{self.endpoint.base_url} does not list its models ({reason_of(error)}).",
                    "Is that the address of an OpenAI-compatible API? Its model can be named with --model.",
                ) from error
            return self.endpoint  # a server without /v1/models can still chat
        names = list(models)
        model = self.endpoint.model
        if model is None:
            known = [name for name in names if detect_family(name)]
            choice = known or names
            if not choice:
                raise ModelError("unknown_model", f"{self.endpoint.base_url} serves no model.", "Load one there first.")
            if len(choice) > 1:
                raise UsageError(
                    f"{self.endpoint.base_url} serves several models: {', '.join(choice[:8])}.",
                    "Choose one with --model.",
                )
            model = choice[0]
        entry = models.get(model)
        if entry is None and names:
            raise ModelError(
                "unknown_model",
                f"{self.endpoint.base_url} does not serve {model!r}.",
                f"It serves: {', '.join(names[:8])}.",
            )
        extra = (entry.model_extra or {}) if entry is not None else {}
        context = extra.get("max_model_len")
        limits = self.endpoint.limits
        if isinstance(context, int) and context > 0:
            limits = replace(limits, context=min(context, limits.context or context))
        owner = str(getattr(entry, "owned_by", ""))  # foreign servers leave fields out
        self.endpoint = replace(self.endpoint, model=model, kind=_kind(owner, self.endpoint.kind), limits=limits)
        return self.endpoint

    async def stream(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        max_tokens: int,
        constraint: str | None = None,
    ) -> AsyncIterator[StreamItem]:
        """Ask, and yield the answer as it comes; the last item is the `Completion`.

        Args:
            messages: the chat.
            sampling: as the family asks for it.
            max_tokens: limit of the answer.
            constraint: a regular expression the answer must match, used where the server can (vLLM).

        Raises:
            ModelError: after the retries, or at once where retrying cannot help.
        """
        attempt = 0
        while True:
            try:
                async for item in self._attempt(messages, sampling, max_tokens, constraint):
                    yield item
                return
            except ModelError as error:
                if error.kind in ("unsupported", "image_forgotten"):  # ask again without it; not a failure
                    yield Retrying(error.what, attempt)
                    continue
                if error.kind not in _TRANSIENT or attempt >= self._patience.retries:
                    raise
                attempt += 1
                yield Retrying(error.what, attempt)
                async for item in self._come_back():
                    attempt = 0  # a server that came back is asked afresh; two crashes in ten minutes end that
                    yield item
                await asyncio.sleep(self._patience.backoff * 2 ** max(0, attempt - 1))

    async def _come_back(self) -> AsyncIterator[Retrying]:
        """Waits while a server of ours is started again after a crash; its supervisor bounds how long that takes.

        Raises:
            ModelError: it is not coming back; with the controller's reason.
        """
        if self._condition is None:
            return
        said = ""
        while True:
            now = await asyncio.to_thread(self._condition)
            if now.condition == "gone":
                raise ModelError("gone", now.words, "`mai-server status` says more, `mai-server up` starts it again.")
            if now.condition == "ready":
                if said:
                    self._remembered.clear()  # a new process has none of the images
                return
            if now.words != said:
                said = now.words
                yield Retrying(f"The server is being started again: {said}.", 0)
            await asyncio.sleep(_COME_BACK_POLL)

    async def _attempt(
        self, messages: Sequence[Message], sampling: Sampling, max_tokens: int, constraint: str | None
    ) -> AsyncIterator[StreamItem]:
        began = time.monotonic()
        images = _Images()
        request = self._request(messages, sampling, max_tokens, constraint, images)
        pieces: list[str] = []
        usage, finish_reason, first_at = Usage(), None, None
        stream: Any = None
        try:
            opening = asyncio.ensure_future(self._connection().chat.completions.create(**request))
            async for item in self._patiently(opening, began, first=True):
                yield item
            stream = opening.result()
            chunks = aiter(stream)
            while True:
                coming = asyncio.ensure_future(anext(chunks, None))
                since = began if first_at is None else time.monotonic()
                async for item in self._patiently(coming, since, first=first_at is None):
                    yield item
                if (chunk := coming.result()) is None:
                    break
                usage = _usage(chunk) or usage
                for choice in getattr(chunk, "choices", None) or []:
                    text = getattr(choice.delta, "content", None)
                    finish_reason = getattr(choice, "finish_reason", None) or finish_reason
                    if text and isinstance(text, str):
                        first_at = first_at or time.monotonic()
                        pieces.append(text)
                        yield Delta(text)
            if finish_reason is None:
                raise ModelError("broken", "The server ended the answer in the middle.", SEE_ITS_LOG)
        except ModelError:
            raise
        except Exception as error:  # broken streams surface as whatever the transport or the JSON reader raises
            if images.named and "cache miss for image" in str(error).lower():
                raise self._forgotten() from error
            raise self._explain(error) from error
        finally:
            if stream is not None:
                await stream.close()
        self._remembered.update(image.digest for image in images.sent if self._by_id)
        ended = time.monotonic()
        yield Completion(
            text="".join(pieces),
            usage=usage,
            finish_reason=finish_reason,
            ttft_ms=None if first_at is None else (first_at - began) * 1000,
            total_ms=(ended - began) * 1000,
            images_sent=len(images.sent),
        )

    async def _patiently(self, task: "asyncio.Future[Any]", since: float, *, first: bool) -> AsyncIterator[Silence]:
        """Wait for the task, telling of silence, and give up after the family of waits that applies."""
        limit = self._patience.first_token if first else self._patience.between_tokens
        try:
            while True:
                waited = time.monotonic() - since
                if waited >= limit:
                    raise ModelError(
                        "silent",
                        f"The model has said nothing for {waited:.0f} seconds.",
                        "Is the server overloaded or hung? A longer wait can be set with --patience SECONDS.",
                    )
                done, _ = await asyncio.wait({task}, timeout=min(self._patience.notice, limit - waited))
                if done:
                    return
                yield Silence(time.monotonic() - since)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=1)

    @property
    def _by_id(self) -> bool:
        """Whether images are named by id once the server has them (vLLM's `uuid`)."""
        return self.endpoint.kind == "vllm" and "image_id" not in self._dropped

    def _request(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        max_tokens: int,
        constraint: str | None,
        images: "_Images",
    ) -> dict[str, Any]:
        """The request; `images` receives what becomes of its images."""

        def image_part(image: EncodedImage | None) -> dict[str, Any]:
            assert image is not None, "a request needs its images"
            if self._by_id and image.digest in self._remembered:
                images.named.append(image)
                return {"type": "image_url", "image_url": None, "uuid": image.digest}
            images.sent.append(image)
            part: dict[str, Any] = {"type": "image_url", "image_url": {"url": image.data_url}}
            return part | {"uuid": image.digest} if self._by_id else part

        request: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": to_openai(messages, image_part),
            "stream": True,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": max_tokens,
        }
        if "seed" not in self._dropped:
            request["seed"] = sampling.seed
        if "stream_options" not in self._dropped:
            request["stream_options"] = {"include_usage": True}
        extra: dict[str, Any] = {}
        if "sampling" not in self._dropped and self.endpoint.kind == "vllm":
            extra |= {"top_k": sampling.top_k, "repetition_penalty": sampling.repetition_penalty}
        if constraint is not None and self.endpoint.kind == "vllm" and "constraint" not in self._dropped:
            extra["structured_outputs"] = {"regex": constraint}
        return request | {"extra_body": extra} if extra else request

    def _forgotten(self) -> ModelError:
        """The server dropped an image that the request only named: from now on all are sent anew."""
        self._remembered.clear()
        self._misses += 1
        if self._misses > _MOST_MISSES:
            self._dropped.add("image_id")
        return ModelError("image_forgotten", "The server no longer has an image: it is sent again.", "")

    def _explain(self, error: Exception) -> ModelError:
        problem = explain(error, self.endpoint, self._dropped)
        if problem.part is not None:
            self._dropped.add(problem.part)
        return problem


def _kind(owner: str, known: ServerKind) -> ServerKind:
    if owner == "vllm":
        return "vllm"
    return "literal" if owner == "mai-agent" else known


def _usage(chunk: Any) -> Usage | None:
    usage = getattr(chunk, "usage", None)
    if usage is None:
        return None
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(_count(usage, "prompt_tokens"), _count(usage, "completion_tokens"), _count(details, "cached_tokens"))


def _count(holder: Any, name: str) -> int | None:
    value = getattr(holder, name, None)
    return value if isinstance(value, int) else None
