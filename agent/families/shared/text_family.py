"""A family whose models write their calls as text: what all of them do alike, so that each says only what differs."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from agent.core.actions import Action
from agent.core.geometry import Grid, GridPoint, Size
from agent.families.base import Call, Decision, Family, ParseFailure, PastStep, PromptRequest, decide
from agent.families.shared.answer_parts import AnswerParts, calls_in, take_apart
from agent.families.shared.point_answers import pointed
from agent.families.shared.points import grid_of
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer

#: Reads one call as the actions that it stands for. Raises ArgumentError.
ReadCall: TypeAlias = Callable[[Call], Action[GridPoint] | Sequence[Action[GridPoint]]]
#: The thought, the calls, and how many of these count; None for all.
Read: TypeAlias = tuple[str, Sequence[Call] | ParseFailure, int | None]
#: Gives the messages that show some images, none where the window left them out, after a step (None: at the beginning).
Show: TypeAlias = Callable[[Sequence[EncodedImage | None], PastStep | None], Iterable[Message]]


class TextFamily(Family):
    """A family that says in which syntax its calls are written (`read_text`) and what they mean (`reader`)."""

    @abstractmethod
    def reader(self, grid: Grid) -> ReadCall:
        """Return what reads a call whose points count on this grid."""

    def read_text(self, parts: AnswerParts) -> Read:
        """Read the calls in an answer's text, which is not empty: JSON in <tool_call> tags, the most common syntax."""
        before, calls = calls_in(parts, self.facts.function)
        return joined(parts.thought, before), calls, None if self.facts.several else 1

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Read the decision in an answer: calls that the server read, or those in the text."""
        parts = take_apart(answer)
        thought, calls, most = self.calls_in(parts)
        return decide(thought, calls, self.reader(grid_of(self.facts.navigation, sent)), most=most)

    def calls_in(self, parts: AnswerParts) -> Read:
        """Read the calls of an answer, wherever the server put them."""
        if parts.calls is not None:
            return parts.thought, parts.calls, None if self.facts.several else 1
        if parts.cut:
            return parts.thought, ParseFailure("truncated", "the answer ends inside the thinking"), None
        if not parts.text.strip():
            return parts.thought, ParseFailure("empty", "the answer is empty"), None
        return self.read_text(parts)

    def asking(self, *parts: TextPart | ImagePart, system: str = "", **how: Any) -> ChatRequest:
        """Return a request of one message by the user, after a system text where there is one."""
        before = [Message.text("system", system)] if system else []
        return ChatRequest([*before, Message("user", parts)], self.facts.sampling, **how)

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Read the point in a grounding answer, as a click."""
        return pointed(answer, grid_of(self.facts.grounding, sent))


def thought_in(value: Mapping[str, Any], parts: AnswerParts) -> str:
    """Return the thought in an object that a model wrote, or else the one before it."""
    said = value.get("thought")
    return said.strip() if isinstance(said, str) and said.strip() else parts.thought


def joined(*parts: str) -> str:
    """Join what was thought and said, leaving out what is empty."""
    return "\n".join(part for part in parts if part)


def all_calls(read: Iterable[Sequence[Call] | ParseFailure]) -> Sequence[Call] | ParseFailure:
    """Put the calls of several pieces together; a failure counts in the first piece only."""
    first, *more = read
    if isinstance(first, ParseFailure):
        return first
    return [*first, *(call for calls in more if not isinstance(calls, ParseFailure) for call in calls)]


def in_user_turns(images: Sequence[EncodedImage | None], after: PastStep | None) -> Iterable[Message]:  # noqa: ARG001
    """Show every observation in a turn of the user."""
    return [Message.screenshot(*images)] if images else []


def in_turn(
    opening: Iterable[Message],
    prompt: PromptRequest,
    replay: Callable[[PastStep], Iterable[Message]],
    show: Show = in_user_turns,
) -> list[Message]:
    """Lay out a history: the opening (system text, instruction), then observations and answers in turn.

    `replay` writes a past answer, and what came back after it; `show` an observation.
    """
    messages = list(opening)
    previous: PastStep | None = None
    for step in prompt.steps:
        messages += [*show(step.images if step.shown else (), previous), *replay(step)]
        previous = step
    return [*messages, *show(prompt.images, previous)]
