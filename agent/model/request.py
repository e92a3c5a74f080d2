"""The content of one request to a model, and which of its parts are optional."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agent.model.endpoint import ServerKind
from agent.screen.encode import EncodedImage
from foundation.chat_stream import ToolCall

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text in a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A screenshot in a message; None is the placeholder in `mai-agent prompt`."""

    image: EncodedImage | None


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: Role  # the speaker
    parts: tuple[TextPart | ImagePart, ...] = ()  # texts and images, in order
    tool_calls: tuple[ToolCall, ...] = ()  # the calls of an assistant
    call_id: str | None = None  # in a tool's result, the id of its call
    reasoning: str = ""  # the assistant's earlier thinking, for servers that accept it (`reasoning_content`)
    #: an assistant's answer in its API's own format (`Answer.items`), sent instead of the fields above
    items: tuple[Any, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)  # extra fields of a tool's result, in its API's format

    @property
    def said(self) -> str:
        """Return the message's texts as one."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @classmethod
    def text(cls, role: Role, text: str) -> "Message":
        """Return a message of one text part."""
        return cls(role, (TextPart(text),))

    @classmethod
    def screenshot(cls, *images: EncodedImage | None) -> "Message":
        """Return a user message with one or more images."""
        return cls("user", tuple(map(ImagePart, images)))

    @classmethod
    def result(cls, call_id: str, *parts: TextPart | ImagePart) -> "Message":
        """Return the result message of a tool call."""
        return cls("tool", parts, call_id=call_id)


def to_openai(messages: Sequence[Message], image_part: Callable[[EncodedImage | None], Any]) -> list[dict[str, Any]]:
    """Convert messages to the OpenAI chat format. `image_part` renders an image."""
    return [_to_openai(message, image_part) for message in messages]


def _to_openai(message: Message, image_part: Callable[[EncodedImage | None], Any]) -> dict[str, Any]:
    content = [
        {"type": "text", "text": part.text} if isinstance(part, TextPart) else image_part(part.image)
        for part in message.parts
    ]
    written: dict[str, Any] = {"role": message.role, "content": content or ""}
    if message.tool_calls:
        written["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.call_id is not None:
        written["tool_call_id"] = message.call_id
    if message.reasoning:
        written["reasoning_content"] = message.reasoning
    return written


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters, as a family's published client sets them."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1  # vLLM only, like repetition_penalty
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    max_tokens: int = 2048  # maximum tokens of an answer
    seed: int = 42


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request."""

    messages: Sequence[Message]
    sampling: Sampling
    max_tokens: int | None = None  # token limit of the answer; None for the family's own
    #: tools that the model may call: functions in the chat completions format, others in their API's format
    tools: Sequence[Mapping[str, Any]] = ()
    stop: Sequence[str] = ()  # texts that end the answer
    schema: Mapping[str, Any] | None = None  # a JSON Schema for the answer, if the server supports it
    regex: str | None = None  # a regular expression for the answer, if the server supports it (vLLM)
    tool_choice: str | None = None  # "required" if the model must call a tool
    #: False for models whose call tags are special tokens, which vLLM otherwise removes
    skip_special_tokens: bool = True
    reasoning_effort: str | None = None  # how much the model should think, if the server knows that
    #: arguments of the server's chat template, for example {"enable_thinking": False}
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    #: more request parts in the format of the family's own API; unused in chat completions
    native: Mapping[str, Any] = field(default_factory=dict)

    def texts(self) -> Iterator[str]:
        """Yield every text that the model reads: messages and tool definitions."""
        for message in self.messages:
            yield from (part.text for part in message.parts if isinstance(part, TextPart))
            yield from (call.name + call.arguments for call in message.tool_calls)
            yield from ([message.reasoning] if message.reasoning else [])
        yield from (json.dumps(tool, ensure_ascii=False) for tool in self.tools)

    def images(self) -> list[EncodedImage]:
        """Return every image of the messages, in order."""
        parts = [part for message in self.messages for part in message.parts if isinstance(part, ImagePart)]
        return [part.image for part in parts if part.image is not None]

    def required_parts(self) -> dict[str, Any]:
        """Return what every server must accept, besides the model's name and the messages."""
        sampling = self.sampling
        parts: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        parts |= {"max_tokens": self.max_tokens or sampling.max_tokens, "stream": True}
        return parts | ({"tools": [dict(tool) for tool in self.tools]} if self.tools else {})

    def optional_parts(self, kind: ServerKind) -> dict[str, dict[str, Any]]:
        """Return the parts, by name, that are omitted if a server rejects them.

        The answer is about as good without them.
        """
        sampling, vllm, effort = self.sampling, kind == "vllm", self.reasoning_effort
        schema = {"name": "answer", "schema": dict(self.schema or {})}
        parts: list[tuple[str, object, dict[str, Any]]] = [  # name, whether it is wanted, what is sent
            ("stream_options", True, {"stream_options": {"include_usage": True}}),
            ("seed", True, {"seed": sampling.seed}),
            ("sampling", vllm, {"top_k": sampling.top_k, "repetition_penalty": sampling.repetition_penalty}),
            ("regex", vllm and self.regex is not None, {"structured_outputs": {"regex": self.regex}}),
            ("schema", self.schema is not None, {"response_format": {"type": "json_schema", "json_schema": schema}}),
            ("presence_penalty", sampling.presence_penalty, {"presence_penalty": sampling.presence_penalty}),
            ("tool_choice", self.tools and self.tool_choice is not None, {"tool_choice": self.tool_choice}),
            ("skip_special_tokens", not self.skip_special_tokens, {"skip_special_tokens": False}),
            ("reasoning_effort", effort is not None, {"reasoning_effort": effort}),
            ("stop", self.stop, {"stop": list(self.stop)}),
            ("template_arguments", self.template_arguments, {"chat_template_kwargs": dict(self.template_arguments)}),
        ]
        return {name: part for name, wanted, part in parts if wanted}
