"""What one request to a model is made of, and which of its parts a server may do without."""

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
    """A screenshot in a message; None stands for the place of an image in `mai-agent prompt`."""

    image: EncodedImage | None


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: Role  # who speaks
    parts: tuple[TextPart | ImagePart, ...] = ()  # what is said and shown, in order
    tool_calls: tuple[ToolCall, ...] = ()  # the calls that an assistant made
    call_id: str | None = None  # of a tool's result, the id of the call that it answers
    reasoning: str = ""  # what an assistant thought before, for servers that take it back (`reasoning_content`)
    #: an assistant's answer in its API's own shape (`Answer.items`): goes back in place of all of the above
    items: tuple[Any, ...] = ()
    told: Mapping[str, Any] = field(default_factory=dict)  # what else goes with a tool's result, in its API's words

    @property
    def said(self) -> str:
        """Its texts as one."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @classmethod
    def text(cls, role: Role, text: str) -> "Message":
        """A message of one text part."""
        return cls(role, (TextPart(text),))

    @classmethod
    def screenshot(cls, *images: EncodedImage | None) -> "Message":
        """A user message that shows one image or several."""
        return cls("user", tuple(map(ImagePart, images)))

    @classmethod
    def result(cls, call_id: str, *parts: TextPart | ImagePart) -> "Message":
        """What the call with this id gave back."""
        return cls("tool", parts, call_id=call_id)


def to_openai(messages: Sequence[Message], image_part: Callable[[EncodedImage | None], Any]) -> list[dict[str, Any]]:
    """Messages in the shape of the OpenAI chat API; `image_part` renders the content part of an image."""
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
    """Sampling as a family's own client asks for it."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1  # known to vLLM, like the next
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    max_tokens: int = 2048  # the longest answer that the family asks for
    seed: int = 42


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request."""

    messages: Sequence[Message]
    sampling: Sampling
    max_tokens: int | None = None  # limit of the answer; None for the family's own
    #: definitions of tools that the model may call: functions in the shape of chat completions, others in their API's
    tools: Sequence[Mapping[str, Any]] = ()
    stop: Sequence[str] = ()  # texts that end the answer
    schema: Mapping[str, Any] | None = None  # a JSON Schema that the answer must follow, used where the server can
    regex: str | None = None  # a regular expression that the answer must match, used where the server can (vLLM)
    tool_choice: str | None = None  # "required", where one of the tools must be called
    #: False for models whose call tags are special tokens, which servers leave out otherwise (vLLM)
    skip_special_tokens: bool = True
    reasoning_effort: str | None = None  # how much is to be thought, where the server knows that
    #: for the server's chat template, such as {"enable_thinking": False}
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    #: further parts of the request in the words of the API that the family is for, none of them chat completions
    native: Mapping[str, Any] = field(default_factory=dict)

    def texts(self) -> Iterator[str]:
        """Every text that the model reads: of the messages, and of the tools' definitions."""
        for message in self.messages:
            yield from (part.text for part in message.parts if isinstance(part, TextPart))
            yield from (call.name + call.arguments for call in message.tool_calls)
            yield from ([message.reasoning] if message.reasoning else [])
        yield from (json.dumps(tool, ensure_ascii=False) for tool in self.tools)

    def images(self) -> list[EncodedImage]:
        """Every image of the messages, in order."""
        parts = [part for message in self.messages for part in message.parts if isinstance(part, ImagePart)]
        return [part.image for part in parts if part.image is not None]

    def required_parts(self) -> dict[str, Any]:
        """What every server must take, besides the model's name and the messages."""
        sampling = self.sampling
        parts: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        parts |= {"max_tokens": self.max_tokens or sampling.max_tokens, "stream": True}
        return parts | ({"tools": [dict(tool) for tool in self.tools]} if self.tools else {})

    def optional_parts(self, kind: ServerKind) -> dict[str, dict[str, Any]]:
        """By name, the parts that are left out where a server refuses them: the answer is then as good, or nearly."""
        sampling = self.sampling
        parts: dict[str, dict[str, Any]] = {
            "stream_options": {"stream_options": {"include_usage": True}},
            "seed": {"seed": sampling.seed},
        }
        if kind == "vllm":
            parts["sampling"] = {"top_k": sampling.top_k, "repetition_penalty": sampling.repetition_penalty}
        if kind == "vllm" and self.regex is not None:
            parts["regex"] = {"structured_outputs": {"regex": self.regex}}
        if self.schema is not None:
            schema = {"name": "answer", "schema": dict(self.schema)}
            parts["schema"] = {"response_format": {"type": "json_schema", "json_schema": schema}}
        if self.sampling.presence_penalty:
            parts["presence_penalty"] = {"presence_penalty": self.sampling.presence_penalty}
        if self.tools and self.tool_choice is not None:
            parts["tool_choice"] = {"tool_choice": self.tool_choice}
        if not self.skip_special_tokens:
            parts["skip_special_tokens"] = {"skip_special_tokens": False}
        if self.reasoning_effort is not None:
            parts["reasoning_effort"] = {"reasoning_effort": self.reasoning_effort}
        if self.stop:
            parts["stop"] = {"stop": list(self.stop)}
        if self.template_arguments:
            parts["template_arguments"] = {"chat_template_kwargs": dict(self.template_arguments)}
        return parts
