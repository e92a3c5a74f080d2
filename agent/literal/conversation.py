"""What the engine knows of the run so far: read from the chat itself, because it keeps nothing between requests.

Every answer of the engine names its part and intent in square brackets at the end of its thought. The client sends all
past answers back, so they are the engine's memory, and one request after a restart is as good as any.
"""

import base64
import binascii
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from agent.families.base import Decision
from agent.families.mai_ui.family import MaiUi
from agent.geometry import Size
from agent.notes import Note, NoteKind, read_notes, without_notes
from agent.screen.ocr import Box
from foundation.chat_stream import Answer

if TYPE_CHECKING:
    from PIL.Image import Image

#: What an action was for: the goal itself ("act"; its text key by key: "keys"), a second look at an effect that comes
#: late ("late"), a place that may hold the thing ("place"), the application it lives in ("prepare"), the pointer out
#: of the way ("clear"), what lies further down ("scroll"), the way out of a place ("back"), the focus ("focus").
Intent: TypeAlias = Literal["act", "late", "place", "scroll", "clear", "prepare", "back", "focus", "keys"]
#: MAI-UI's navigation grid, in which the answers are written.
GRID = 999
#: Two clicks within this many grid units are on the same spot.
_SAME_SPOT = 9
_MARK = re.compile(r"\[part (\d+) of \d+, (\w+)\]\s*$")


class BadRequestError(ValueError):
    """The request is not a chat this engine can answer."""


@dataclass(frozen=True, slots=True)
class Move:
    """One past answer of the engine."""

    part: int  # which part of the instruction it was for, counted from 0
    intent: Intent
    call: Mapping[str, Any]  # its arguments ("action", "coordinate", ...)
    before: "Screenshot | None" = None  # what it was decided on, where the request still holds it
    notes: tuple[Note, ...] = ()  # what the program said of it

    def has(self, kind: NoteKind) -> bool:
        """Whether the program noted this of it."""
        return any(note.kind == kind for note in self.notes)

    @property
    def point(self) -> tuple[float, float] | None:
        """Where on the grid it pointed, None for nowhere."""
        point = self.call.get("coordinate")
        return (point[0], point[1]) if isinstance(point, list) and len(point) == 2 else None

    def pointed_at(self, place: Sequence[int]) -> bool:
        """Whether it pointed at that place of the grid."""
        return self.point is not None and all(
            abs(one - other) <= _SAME_SPOT for one, other in zip(self.point, place, strict=True)
        )

    @property
    def denied(self) -> bool:
        """Whether the person did not allow it, and said nothing more."""
        return self.has("refused") and not self.has("said")

    @property
    def skipped(self) -> bool:
        """Whether the person wants something else, or nothing, instead of it."""
        return self.has("refused") and self.has("said")


@dataclass(slots=True)
class Conversation:
    """The chat as the engine sees it."""

    instruction: str = ""
    moves: list[Move] = field(default_factory=list)  # the engine's past answers
    screen: "Screenshot | None" = None  # the newest
    told: list[str] = field(default_factory=list)  # what the person said since, oldest first


def read_conversation(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    """The conversation in a chat request. Raises BadRequestError without an instruction or a readable screenshot."""
    family = MaiUi()
    conversation = Conversation()
    pending: Screenshot | None = None
    for message in messages:
        for part in _parts(message.get("content")):
            match message.get("role"), part:
                case "assistant", str():
                    result = family.parse(Answer(part), (Size(1, 1),))
                    if isinstance(result, Decision):
                        conversation.moves.append(_move(result, pending))
                    pending = None
                case "user", Screenshot():
                    pending = part
                case "user", str() if part:
                    _take_text(conversation, part)
    conversation.screen = pending
    if not conversation.instruction.strip():
        raise BadRequestError("the chat has no instruction")
    if conversation.screen is None:
        raise BadRequestError("the chat has no screenshot at its end")
    return conversation


def _take_text(conversation: Conversation, text: str) -> None:
    notes = read_notes(text)
    conversation.told += [note.detail for note in notes if note.kind == "said"]
    if not conversation.instruction:
        conversation.instruction = without_notes(text)
    elif conversation.moves:
        last = conversation.moves[-1]
        conversation.moves[-1] = replace(last, notes=(*last.notes, *notes))


def _parts(content: Any) -> "Iterator[str | Screenshot]":
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        match part:
            case {"type": "text"}:
                yield str(part.get("text", ""))
            case {"type": "image_url"}:
                yield Screenshot((part.get("image_url") or {}).get("url"))


class Screenshot:
    """A screenshot of the chat, decoded only when it is looked at: a request repeats several old ones."""

    def __init__(self, url: Any) -> None:
        if not isinstance(url, str) or not url.startswith("data:image/"):
            raise BadRequestError("images must be data: URLs")
        self._url = url

    @cached_property
    def image(self) -> "Image":
        """The RGB image. Raises BadRequestError when it cannot be read."""
        from PIL import Image, UnidentifiedImageError

        try:
            data = base64.b64decode(self._url.partition(",")[2], validate=True)
            return Image.open(io.BytesIO(data)).convert("RGB")
        except (binascii.Error, UnidentifiedImageError, OSError, ValueError) as error:
            raise BadRequestError(f"an image cannot be read: {error}") from error


def _move(decision: Decision, before: Screenshot | None) -> Move:
    mark = _MARK.search(decision.thought)
    part, intent = (int(mark[1]) - 1, mark[2]) if mark else (0, "act")
    known: Intent = intent if intent in get_args(Intent) else "act"  # type: ignore[assignment]
    return Move(max(0, part), known, dict(decision.calls[0].arguments), before)


def on_grid(box: Box, image: "Image") -> list[int]:
    """The middle of a box of a screenshot, on the grid."""
    x, y = box.center
    return [round(x * GRID / image.width), round(y * GRID / image.height)]


def mark(part: int, parts: int, intent: Intent) -> str:
    """The mark that `read_conversation` finds again."""
    return f"[part {part + 1} of {parts}, {intent}]"
