"""The OpenAI-compatible client: streaming, usage, readable errors, and the only retry layer of the program.

Retried here, and nowhere else: what is transient (connection refused or lost, 429, 5xx, a broken stream). Everything
else is explained at once. Servers differ in what they accept, so optional parts of a request (usage in streams,
sampling beyond OpenAI's, images by id) are left out from the first refusal on.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agent.endpoint import Endpoint, ServerKind
from agent.errors import AgentError, ExitStatus, UsageError
from agent.families.base import Message, Sampling, to_openai
from agent.screen.encode import EncodedImage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ErrorKind: TypeAlias = Literal[
    "unreachable", "overloaded", "broken", "silent", "bad_key", "unknown_model", "too_many_images",
    "context_too_long", "image_forgotten", "unsupported", "refused",
]  # fmt: skip
_TRANSIENT: frozenset[ErrorKind] = frozenset({"unreachable", "overloaded", "broken"})

_IMAGES_LIMIT = re.compile(r"At most (\d+) image", re.IGNORECASE)
_CONTEXT_LIMIT = re.compile(r"(?:context length|model length|max_model_len)[^0-9]{0,40}(\d{3,})", re.IGNORECASE)
_CONTEXT_WORDS = re.compile(
    r"context length|context window|max(?:imum)? model len|prompt is too long|n_ctx", re.IGNORECASE
)
_UNSUPPORTED = re.compile(
    r"unrecognized|unsupported|unknown|not (?:permitted|supported|allowed)|extra (?:inputs|fields)|unexpected",
    re.IGNORECASE,
)


class ModelError(AgentError):
    """The model could not be asked; `kind` for programs, two sentences for the person."""

    exit_status = ExitStatus.ENVIRONMENT

    def __init__(self, kind: ErrorKind, what: str, remedy: str, limit: int | None = None) -> None:
        super().__init__(what, remedy)
        self.kind: ErrorKind = kind
        self.limit = limit


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


class ChatClient:
    """Asks one endpoint. Made for one event loop; close it with `aclose`."""

    def __init__(self, endpoint: Endpoint, patience: Patience = Patience()) -> None:
        self.endpoint = endpoint
        self._patience = patience
        self._openai: AsyncOpenAI | None = None
        self._dropped: set[str] = set()  # optional request parts that this server refused
        self._remembered: set[str] = set()  # digests of images that the server holds
        self._misses = 0

    def _connection(self) -> "AsyncOpenAI":
        if self._openai is None:
            from openai import AsyncOpenAI, Timeout

            silence = max(self._patience.first_token, self._patience.between_tokens) + 5
            self._openai = AsyncOpenAI(
                base_url=self.endpoint.base_url,
                api_key=self.endpoint.api_key or "none",
                max_retries=0,  # this class is the retry layer
                timeout=Timeout(silence, connect=self._patience.connect),
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
            models = [entry for entry in listing.data if getattr(entry, "id", None)]
        except TimeoutError as error:
            raise ModelError(
                "silent", f"{self.endpoint.base_url} does not answer.", "Is the server still starting, or hung?"
            ) from error
        except Exception as error:  # whatever a foreign server makes of this question
            problem = self._explain(error)
            if problem.kind in ("unreachable", "bad_key", "overloaded") or self.endpoint.model is None:
                raise problem from error
            return self.endpoint  # a server without /v1/models can still chat
        names = [entry.id for entry in models]
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
        entry = next((item for item in models if item.id == model), None)
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
        owner = entry.owned_by if entry is not None else ""
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
                await asyncio.sleep(self._patience.backoff * 2 ** (attempt - 1))

    async def _attempt(
        self, messages: Sequence[Message], sampling: Sampling, max_tokens: int, constraint: str | None
    ) -> AsyncIterator[StreamItem]:
        began = time.monotonic()
        sent: list[EncodedImage] = []
        request = self._request(messages, sampling, max_tokens, constraint, sent)
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
                async for item in self._patiently(coming, time.monotonic(), first=first_at is None):
                    yield item
                if (chunk := coming.result()) is None:
                    break
                usage = _usage(chunk) or usage
                for choice in chunk.choices or []:
                    text = (choice.delta.content if choice.delta else None) or ""
                    finish_reason = choice.finish_reason or finish_reason
                    if text:
                        first_at = first_at or time.monotonic()
                        pieces.append(text)
                        yield Delta(text)
            if finish_reason is None:
                raise ModelError("broken", "The server ended the answer in the middle.", _SEE_ITS_LOG)
        except ModelError:
            raise
        except Exception as error:  # broken streams surface as whatever the transport or the JSON reader raises
            raise self._explain(error) from error
        finally:
            if stream is not None:
                await stream.close()
        self._remembered.update(image.digest for image in sent if self._by_id)
        ended = time.monotonic()
        yield Completion(
            text="".join(pieces),
            usage=usage,
            finish_reason=finish_reason,
            ttft_ms=None if first_at is None else (first_at - began) * 1000,
            total_ms=(ended - began) * 1000,
            images_sent=len(sent),
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
        sent: list[EncodedImage],
    ) -> dict[str, Any]:
        def image_part(image: EncodedImage | None) -> dict[str, Any]:
            assert image is not None, "a request needs its images"
            if self._by_id and image.digest in self._remembered:
                return {"type": "image_url", "image_url": None, "uuid": image.digest}
            sent.append(image)
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

    def _explain(self, error: Exception) -> ModelError:
        """Any exception of a request as one of ours."""
        import openai

        where = self.endpoint.base_url
        if isinstance(error, ModelError):
            return error
        if isinstance(error, openai.APITimeoutError):
            return ModelError("silent", f"{where} did not answer in time.", "Is the server overloaded or hung?")
        if isinstance(error, openai.APIConnectionError):
            return ModelError(
                "unreachable", f"There is no connection to {where} ({_cause(error)}).", "Is the server running there?"
            )
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return ModelError(
                "bad_key", f"{where} refuses the key.", "Set the right one in the variable MAI_AGENT_API_KEY."
            )
        if isinstance(error, openai.RateLimitError | openai.InternalServerError):
            return ModelError(
                "overloaded", f"{where} answers with status {error.status_code}: {_message(error)}.", _SEE_ITS_LOG
            )
        if isinstance(error, openai.APIStatusError):
            return self._explain_status(error)
        return ModelError("broken", f"{where} sent something that is no answer ({_cause(error)}).", _SEE_ITS_LOG)

    def _explain_status(self, error: Any) -> ModelError:
        message, where = _message(error), self.endpoint.base_url
        if "cache miss for image" in message.lower():
            self._remembered.clear()
            self._misses += 1
            if self._misses > 2:
                self._dropped.add("image_id")
            return ModelError("image_forgotten", "The server no longer has an image: it is sent again.", "")
        if match := _IMAGES_LIMIT.search(message):
            limit = int(match[1])
            return ModelError(
                "too_many_images",
                f"The server takes at most {limit} images in a request.",
                "Start it with a higher --limit-mm-per-prompt, or lower --history-images.",
                limit,
            )
        if _CONTEXT_WORDS.search(message):
            found = _CONTEXT_LIMIT.search(message)
            return ModelError(
                "context_too_long",
                f"The request is longer than the model's context: {message}.",
                "Lower --max-pixels or --history-images, or start the server with a longer context.",
                int(found[1]) if found else None,
            )
        if _UNSUPPORTED.search(message) and (part := self._unsupported_part(message)):
            self._dropped.add(part)
            return ModelError("unsupported", f"The server does not know {part}: it is left out.", "")
        if error.status_code == 404:
            return ModelError(
                "unknown_model",
                f"{where} does not serve {self.endpoint.model!r} ({message}).",
                "See what it serves under /v1/models, and choose with --model.",
            )
        return ModelError("refused", f"{where} refuses the request ({error.status_code}): {message}.", _SEE_ITS_LOG)

    def _unsupported_part(self, message: str) -> str | None:
        """The optional part of a request that a refusal speaks of and that is still being sent."""
        for part, words in (
            ("stream_options", ("stream_options", "include_usage")),
            ("sampling", ("top_k", "repetition_penalty")),
            ("seed", ("seed",)),
            ("constraint", ("structured_outputs",)),
            ("image_id", ("uuid",)),
        ):
            if part not in self._dropped and any(word in message for word in words):
                return part
        return None


_SEE_ITS_LOG = "The server's own log says more."


def _kind(owner: str, known: ServerKind) -> ServerKind:
    if owner == "vllm":
        return "vllm"
    return "literal" if owner == "mai-agent" else known


def _usage(chunk: Any) -> Usage | None:
    usage = getattr(chunk, "usage", None)
    if usage is None:
        return None
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(usage.prompt_tokens, usage.completion_tokens, getattr(details, "cached_tokens", None))


def _message(error: Any) -> str:
    body = error.body
    text = body.get("message") if isinstance(body, dict) else None
    return " ".join(str(text or error.message).split())[:400].rstrip(".")


def _cause(error: BaseException) -> str:
    deepest = error
    while (deeper := deepest.__cause__ or deepest.__context__) is not None:
        deepest = deeper
    text = " ".join(str(deepest).split())[:200]
    return text or type(deepest).__name__
