"""The common base of families whose models write calls as text. Each family only defines its differences."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from agent.core.geometry import Grid, Size
from agent.families.base import (
    Acts,
    ArgumentError,
    Call,
    Decision,
    Family,
    ParseFailure,
    PastStep,
    PromptRequest,
    decide,
)
from agent.families.shared.answer_parts import AnswerParts, calls_in, take_apart
from agent.families.shared.computer_use import Vocabulary, read_call
from agent.families.shared.point_answers import pointed
from agent.families.shared.points import grid_of
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer

#: The thought, the calls, and how many of these count; None for all.
Read: TypeAlias = tuple[str, Sequence[Call] | ParseFailure, int | None]
#: Returns the messages that show an observation after a step (None: at the beginning). It may have no images, if the
#: history window dropped them.
Show: TypeAlias = Callable[[Sequence[EncodedImage | None], PastStep | None], Iterable[Message]]


class TextFamily(Family):
    """A family that defines the syntax of its calls (`read_text`) and their meaning (`act`)."""

    def act(self, call: Call, words: Vocabulary) -> Acts:
        """Return the actions of a call. Raises ArgumentError."""
        return read_call(call, words)

    def decided(
        self, thought: str, calls: Sequence[Call] | ParseFailure, grid: Grid, **how: Any
    ) -> Decision | ParseFailure:
        """Return the decision of calls with points on this grid; `how` as in `decide`."""
        words = Vocabulary.of(self.data, grid)
        return decide(thought, calls, lambda call: self.act(call, words), **how)

    def read_text(self, parts: AnswerParts) -> Read:
        """Parse the calls in an answer's non-empty text: JSON in <tool_call> tags, the most common syntax.

        May raise ArgumentError.
        """
        before, calls = calls_in(parts, self.facts.function)
        return joined(parts.thought, before), calls, None if self.facts.several else 1

    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the decision in an answer: calls that the server parsed, or those in the text."""
        parts = take_apart(answer)
        thought, calls, most = self.calls_in(parts)
        grid = grid_of(self.facts.navigation, sent)
        return self.decided(thought, calls, grid, most=most, in_part=self.facts.several)

    def calls_in(self, parts: AnswerParts) -> Read:
        """Parse the calls of an answer, wherever the server put them."""
        if parts.calls is not None:
            return parts.thought, parts.calls, None if self.facts.several else 1
        if parts.cut:
            return parts.thought, ParseFailure("truncated", "the answer ends inside the thinking"), None
        if not parts.text.strip():
            return parts.thought, ParseFailure("empty", "the answer is empty"), None
        try:
            return self.read_text(parts)
        except ArgumentError as error:
            return parts.thought, ParseFailure(error.kind, str(error)), None

    def asking(self, *parts: TextPart | ImagePart, system: str = "", **how: Any) -> ChatRequest:
        """Return a request of one user message, after the system prompt if there is one."""
        before = [Message.text("system", system)] if system else []
        return ChatRequest([*before, Message("user", parts)], self.facts.sampling, **how)

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the point in a grounding answer, as a click."""
        return pointed(answer, grid_of(self.facts.grounding, sent))


def thought_in(value: Mapping[str, Any], parts: AnswerParts) -> str:
    """Return the thought in an object that a model wrote, or else the thought before it."""
    thought = value.get("thought")
    return thought.strip() if isinstance(thought, str) and thought.strip() else parts.thought


def joined(*parts: str) -> str:
    """Join the non-empty parts of what was thought and said."""
    return "\n".join(part for part in parts if part)


def all_calls(read: Iterable[Sequence[Call] | ParseFailure]) -> Sequence[Call] | ParseFailure:
    """Join the calls of several pieces. A failure only counts in the first piece."""
    first, *more = read
    if isinstance(first, ParseFailure):
        return first
    return [*first, *(call for calls in more if not isinstance(calls, ParseFailure) for call in calls)]


def offered(texts: Mapping[str, Any], prompt: PromptRequest) -> dict[str, str]:
    """Return the "actions" and the listed "notes" that a request's style offers, from a family's texts."""
    actions, notes = [texts["actions"]], [*texts["notes"], *texts.get("more_notes", ())]
    if not prompt.reference:
        actions.append(texts.get("desktop_actions", ""))
        if prompt.apps:
            actions.append(texts.get("desktop_apps", "").format(apps=", ".join(prompt.apps)))
        notes += texts["desktop_notes"]
    return {"actions": "\n".join(filter(None, actions)), "notes": "\n".join(f"- {note}" for note in notes)}


def in_user_turns(images: Sequence[EncodedImage | None], after: PastStep | None) -> Iterable[Message]:  # noqa: ARG001
    """Show each observation in a user turn."""
    return [Message.screenshot(*images)] if images else []


def answered(text: str, step: PastStep) -> list[Message]:
    """Return a past answer, and what came back as user messages: published clients know only a person's replies."""
    return [Message.text("assistant", text), *(Message.text("user", reply) for reply in step.replies)]


def in_turn(
    opening: Iterable[Message],
    prompt: PromptRequest,
    replay: Callable[[PastStep], Iterable[Message]],
    show: Show = in_user_turns,
) -> list[Message]:
    """Lay out a history: the opening (system prompt, instruction), then observations and answers in turn.

    `replay` writes a past answer with what came back after it. `show` writes an observation.
    """
    messages = list(opening)
    previous: PastStep | None = None
    for step in prompt.steps:
        messages += [*show(step.images if step.shown else (), previous), *replay(step)]
        previous = step
    return [*messages, *show(prompt.images, previous)]
