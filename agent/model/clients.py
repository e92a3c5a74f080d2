"""The client of OpenAI-compatible servers: streamed chat completions, with usage and readable errors.

Servers differ in what they accept. An optional part of a request (usage in streams, sampling beyond OpenAI's, images by
id) is omitted once a server rejects it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from typing_extensions import override

from agent.model.asking import (
    USUAL_PATIENCE,
    Completion,
    Exchange,
    ModelClient,
    OnProgress,
    Patience,
    PatientClient,
    ServerCondition,
)
from agent.model.endpoint import Endpoint, ServerKind
from agent.model.peers.anthropic_messages import AnthropicClient
from agent.model.peers.gemini_contents import GeminiClient
from agent.model.peers.openai_responses import OpenAiClient
from agent.model.refusals import ModelError, explain
from agent.model.request import ChatRequest, ImagePart, Message, TextPart, to_openai
from agent.screen.encode import EncodedImage
from foundation.chat_stream import AnswerReader
from foundation.endpoints import list_models
from foundation.errors import UsageError
from foundation.refusals import refusal_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: A server that forgets images more often than this always gets their bytes: asking twice costs more.
_MOST_MISSES = 2
#: Fields in which servers report a model's origin: vLLM (for an adapter, "parent" is its base model), and others.
_ORIGINS = ("root", "path", "parent")
_KIND_OF_OWNER: dict[str, ServerKind] = {"vllm": "vllm", "mai-agent": "literal"}


class ChatClient(PatientClient["AsyncOpenAI"]):
    """Asks a server with OpenAI's chat completions API. `trace`: see `client_of`."""

    def __init__(
        self,
        endpoint: Endpoint,
        patience: Patience = USUAL_PATIENCE,
        condition: Callable[[], ServerCondition] | None = None,
        trace: str = "",
    ) -> None:
        super().__init__(endpoint, patience, condition)
        self._trace = {"traceparent": trace} if trace else {}
        self._dropped: set[str] = set()  # optional request parts that this server rejected
        self._remembered: set[str] = set()  # digests of images that the server holds
        self._misses = 0

    @override
    def connect(self) -> "AsyncOpenAI":
        import openai

        # The session id lets a load balancer keep a run on the server whose caches hold its screenshots.
        headers = {"X-Session-Id": uuid4().hex, **self._trace}
        return openai.AsyncOpenAI(**self.connecting(openai), default_headers=headers)

    async def discover(self, prefer: Callable[[str], object] = lambda _: False) -> Endpoint:
        """Fill in model, kind and context from /v1/models, as far as the server reports them."""
        base_url = self.endpoint.base_url
        try:
            models = await list_models(self.connection)
        except TimeoutError as error:
            raise ModelError(
                "silent", f"{base_url} does not answer.", "Is the server still starting, or hung?"
            ) from error
        except Exception as error:  # an unknown server may answer anything
            problem = explain(error, self.endpoint)
            if problem.kind in ("unreachable", "bad_key", "overloaded", "silent"):
                raise problem from error
            if self.endpoint.model is None:
                raise ModelError(
                    "unknown_model",
                    f"{base_url} does not list its models ({refusal_of(error).reason}).",
                    "Is that the address of an OpenAI-compatible API? Its model can be named with --model.",
                ) from error
            return self.endpoint  # a server without /v1/models can still chat
        model = self.endpoint.model or _only_model(base_url, list(models), prefer)
        if models and model not in models:
            served = ", ".join([*models][:8])
            raise ModelError("unknown_model", f"{base_url} does not serve {model!r}.", f"It serves: {served}.")
        entry = models.get(model, {})
        context = entry.get("max_model_len")
        limits = self.endpoint.limits
        if isinstance(context, int) and context > 0:
            limits = replace(limits, context=min(context, limits.context or context))
        kind = _KIND_OF_OWNER.get(str(entry.get("owned_by")), self.endpoint.kind)
        origins = tuple(entry[name] for name in _ORIGINS if isinstance(entry.get(name), str) and entry[name])
        self.endpoint = replace(self.endpoint, model=model, kind=kind, limits=limits, origins=origins)
        return self.endpoint

    def exchange(self, request: ChatRequest) -> Exchange:
        """Build the request in the format of OpenAI's chat completions."""
        images = request.images()
        named = [image for image in images if self._holds(image)]
        optional = request.optional_parts(self.endpoint.kind)
        optional = {name: part for name, part in optional.items() if name not in self._dropped}
        extra = {name: value for part in optional.values() for name, value in part.items()}
        # In `extra_body`, the library does not process the messages. It would visit every part of every message to
        # rename none of them, which takes 40 ms per request late in a long run.
        extra["messages"] = to_openai(request.messages, self._image_part)
        required = {"model": self.endpoint.model, "messages": [], **request.required_parts()}
        sent = {*optional, *(["image_id"] if self._by_id else []), *(["tools"] if request.tools else [])}

        def explained(error: Exception) -> ModelError:
            if named and "cache miss for image" in str(error).lower():
                return self._forgotten()
            problem = explain(error, self.endpoint, sent)
            if problem.part is not None:
                self._dropped.add(problem.part)
            return problem

        return Exchange(
            self.connection.chat.completions.create(**required, extra_body=extra),
            AnswerReader(max_tokens=required["max_tokens"]),
            len(images) - len(named),
            explained,
            lambda: self._remembered.update(image.digest for image in images if self._by_id),
        )

    def forget(self) -> None:
        """Forget the images: a new process has none of them."""
        self._remembered.clear()

    @property
    def _by_id(self) -> bool:
        """Whether images are named by id once the server has them (vLLM's `uuid`)."""
        return self.endpoint.kind == "vllm" and "image_id" not in self._dropped

    def _holds(self, image: EncodedImage) -> bool:
        """Whether the server has the image, so that its id is enough."""
        return self._by_id and image.digest in self._remembered

    def _image_part(self, image: EncodedImage | None) -> dict[str, Any]:
        assert image is not None, "a request needs its images"
        url = None if self._holds(image) else {"url": image.data_url}
        return {"type": "image_url", "image_url": url} | ({"uuid": image.digest} if self._by_id else {})

    def _forgotten(self) -> ModelError:
        """Forget all images, because the server dropped one that was sent by id. All are sent again."""
        self._remembered.clear()
        self._misses += 1
        if self._misses > _MOST_MISSES:
            self._dropped.add("image_id")
        return ModelError("image_forgotten", "The server no longer has an image: it is sent again.", "")


def _only_model(base_url: str, names: list[str], prefer: Callable[[str], object]) -> str:
    """Return the only model, or the only one that `prefer` accepts."""
    choice = [name for name in names if prefer(name)] or names
    if not choice:
        raise ModelError("unknown_model", f"{base_url} serves no model.", "Load one there first.")
    if len(choice) > 1:
        raise UsageError(f"{base_url} serves several models: {', '.join(choice[:8])}.", "Choose one with --model.")
    return choice[0]


def client_of(
    endpoint: Endpoint,
    patience: Patience = USUAL_PATIENCE,
    condition: Callable[[], ServerCondition] | None = None,
    trace: str = "",
) -> ModelClient:
    """Return the client of an endpoint.

    `condition` returns the state of our own server. `trace`: the W3C `traceparent` of the run, so that the server's own
    spans, if it sends any, join the run's trace.
    """
    match endpoint.api:
        case "openai":
            return OpenAiClient(endpoint, patience)
        case "anthropic":
            return AnthropicClient(endpoint, patience)
        case "gemini":
            return GeminiClient(endpoint, patience)
        case "chat":
            return ChatClient(endpoint, patience, condition, trace)


class MaskedClient(ModelClient):
    """A `ModelClient` that applies `mask` to every text of a request. Images are sent unchanged."""

    def __init__(self, client: ModelClient, mask: Callable[[str], str]) -> None:
        self._client = client
        self._mask = mask

    @property
    @override
    def endpoint(self) -> Endpoint:
        return self._client.endpoint

    @override
    async def discover(self, prefer: Callable[[str], object] = lambda _: False) -> Endpoint:
        return await self._client.discover(prefer)

    @override
    async def complete(self, request: ChatRequest, on_progress: OnProgress = lambda _: None) -> Completion:
        return await self._client.complete(self._masked(request), on_progress)

    @override
    async def aclose(self) -> None:
        await self._client.aclose()

    def _masked(self, request: ChatRequest) -> ChatRequest:
        return replace(
            request,
            messages=[self._message(one) for one in request.messages],
            tools=self._value(request.tools),
            schema=self._value(request.schema),
            native=self._value(request.native),
            template_arguments=self._value(request.template_arguments),
        )

    def _message(self, message: Message) -> Message:
        parts = tuple(one if isinstance(one, ImagePart) else TextPart(self._mask(one.text)) for one in message.parts)
        calls = tuple(replace(call, arguments=self._mask(call.arguments)) for call in message.tool_calls)
        return replace(
            message, parts=parts, tool_calls=calls, reasoning=self._mask(message.reasoning),
            items=self._value(message.items), extra=self._value(message.extra),
        )  # fmt: skip

    def _value(self, value: Any) -> Any:
        match value:
            case str():
                return self._mask(value)
            case Mapping():
                return {name: self._value(item) for name, item in value.items()}
            case list() | tuple():
                return type(value)(map(self._value, value))
        return value
