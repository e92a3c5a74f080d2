"""How a history is laid out in messages; families compose what they share and say the rest themselves."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from agent.families.base import PastStep, PromptRequest
from agent.model.request import Message
from agent.screen.encode import EncodedImage

#: The messages that show some images, none where the window left them out, after a step (None: at the beginning).
Show: TypeAlias = Callable[[Sequence[EncodedImage | None], PastStep | None], Iterable[Message]]


def in_user_turns(images: Sequence[EncodedImage | None], after: PastStep | None) -> Iterable[Message]:  # noqa: ARG001
    """Every observation is a turn of the user."""
    return [Message.screenshot(*images)] if images else []


def in_turn(
    opening: Iterable[Message],
    prompt: PromptRequest,
    replay: Callable[[PastStep], Iterable[Message]],
    show: Show = in_user_turns,
) -> list[Message]:
    """After the opening (system text, instruction), observation and answer in turn, to the observation now.

    `replay` writes a past answer, and what came back after it; `show` an observation.
    """
    messages = list(opening)
    previous: PastStep | None = None
    for step in prompt.steps:
        messages += [*show(step.images if step.shown else (), previous), *replay(step)]
        previous = step
    return [*messages, *show(prompt.images, previous)]
