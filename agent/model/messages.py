"""Chat messages: any role, several images, tool calls and what they gave back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

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
