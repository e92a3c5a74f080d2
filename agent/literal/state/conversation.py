"""What the engine knows of the run so far: read from the chat itself, because it keeps nothing between requests.

Every call of the engine brings along, beside its own arguments, which goal it was for, why, and which goals were
reached before it. The client sends all past answers back, so they are the engine's memory, and one request after a
restart is as good as any.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agent.core.changes import Change
from agent.core.geometry import Size
from agent.core.notes import Note, NoteKind, read_notes, without_notes
from agent.families.base import Decision
from agent.families.literal.family import LiteralFamily
from agent.families.literal.screen_text import ScreenText, read_screen
from agent.model.request import ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer

if TYPE_CHECKING:
    from PIL.Image import Image

#: What an action was for: the goal itself ("act"), what the goal needs besides ("focus", "keys", "pick": of what an
#: action for the goal opened), a second look at an effect that comes late ("late"), the way to where the thing is
#: ("place", "prepare", "scroll", "menu": a look into a menu), the way out of what was opened in vain ("back"), or a
#: question to the person ("ask").
Intent: TypeAlias = Literal["act", "focus", "keys", "pick", "late", "place", "prepare", "scroll", "menu", "back", "ask"]
#: The arguments under which the memory travels.
MEMORY = "memory"


class BadRequestError(ValueError):
    """The request is not a chat this engine can answer."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A goal that was reached."""

    words: str  # what shows it
    verified: bool = True  # False where nothing shows it


@dataclass(frozen=True, slots=True)
class Move:
    """One past answer of the engine."""

    part: int  # which part of the instruction it was for, counted from 0
    intent: str
    call: Mapping[str, Any]  # its arguments ("action", "coordinate", ...)
    screen: ScreenText | None = None  # what it was decided on, where the request still tells it
    about: str = ""  # what it was about, in the words of whoever decided it
    notes: tuple[Note, ...] = ()  # what the program said of it
    reply: str = ""  # what the person answered to it

    def has(self, kind: NoteKind) -> bool:
        """Whether the program noted this of it."""
        return any(note.kind == kind for note in self.notes)

    @property
    def action(self) -> str:
        """The name of its action."""
        return str(self.call.get("action", ""))

    @property
    def denied(self) -> bool:
        """Whether the person did not allow it, and said nothing more."""
        return self.has("refused") and not self.has("said")

    @property
    def skipped(self) -> bool:
        """Whether the person wants something else, or nothing, instead of it."""
        return self.has("skipped") or (self.has("refused") and self.has("said"))


@dataclass(slots=True)
class Conversation:
    """The chat as the engine sees it."""

    instruction: str = ""
    moves: list[Move] = field(default_factory=list)  # the engine's past answers
    reached: tuple[Reached, ...] = ()  # the goals that were reached before the last of them
    screen: ScreenText = ScreenText()  # noqa: RUF009 -- frozen
    picture: "Screenshot | None" = None  # the newest
    told: list[str] = field(default_factory=list)  # what the person said since, oldest first

    @property
    def changes(self) -> tuple[Change, ...]:
        """What changed on the computer since the run began, as far as it is known."""
        return self.screen.changes


def read_conversation(messages: Sequence[Message]) -> Conversation:
    """The conversation in a chat request. Raises BadRequestError without an instruction or a readable screenshot."""
    family = LiteralFamily("literal")
    conversation = Conversation()
    pending: ScreenText | None = None
    for message in messages:
        for part in message.parts:
            match message.role, part:
                case "assistant", TextPart(text):
                    result = family.parse(Answer(text), (Size(1_000_000, 1_000_000),))
                    if isinstance(result, Decision):
                        _take_move(conversation, result, pending)
                    pending = None
                case "user", ImagePart(EncodedImage() as image):
                    conversation.picture = Screenshot(image)
                case "user", TextPart(text) if text:
                    pending = _take_text(conversation, text) or pending
    if not conversation.instruction.strip():
        raise BadRequestError("the chat has no instruction")
    if conversation.picture is None:
        raise BadRequestError("the chat has no screenshot at its end")
    conversation.screen = pending or ScreenText()
    return conversation


def _take_text(conversation: Conversation, text: str) -> ScreenText | None:
    """Take in what stands in a user's text; a screen is given back."""
    try:
        if (screen := read_screen(text)) is not None:
            return screen
    except ValueError as error:
        raise BadRequestError(str(error)) from error
    notes = read_notes(text)
    conversation.told += [note.detail for note in notes if note.kind == "said"]
    if not conversation.instruction:
        conversation.instruction = without_notes(text)
    elif conversation.moves:
        last = conversation.moves[-1]
        reply = without_notes(text) if last.intent == "ask" else ""
        conversation.moves[-1] = replace(last, notes=(*last.notes, *notes), reply=last.reply or reply)
    return None


class Screenshot:
    """The screenshot of the chat, decoded only when it is looked at."""

    def __init__(self, encoded: EncodedImage) -> None:
        self._encoded = encoded

    @cached_property
    def image(self) -> "Image":
        """The RGB image."""
        from PIL import Image

        return Image.open(io.BytesIO(self._encoded.data)).convert("RGB")

    @property
    def size(self) -> Size:
        """Its size, for which nothing is decoded."""
        return self._encoded.size


def _take_move(conversation: Conversation, decision: Decision, before: ScreenText | None) -> None:
    call = dict(decision.calls[0].arguments)
    memory = call.pop(MEMORY, None)
    kept: Mapping[str, Any] = memory if isinstance(memory, dict) else {}
    part = kept.get("part")
    conversation.moves.append(
        Move(
            part if isinstance(part, int) and part >= 0 else 0,
            str(kept.get("intent", "act")),
            call,
            before,
            str(kept.get("about", "")),
        )
    )
    reached = kept.get("reached")
    conversation.reached = tuple(
        Reached(str(words), bool(verified)) for words, verified in (reached if isinstance(reached, list) else ())
    )


def memory(part: int, intent: Intent, about: str, reached: Sequence[Reached]) -> dict[str, Any]:
    """What `read_conversation` finds again in a call."""
    told: dict[str, Any] = {"part": part, "intent": intent}
    if about:
        told["about"] = about
    if reached:
        told["reached"] = [[one.words, one.verified] for one in reached]
    return {MEMORY: told}
