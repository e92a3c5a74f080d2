"""What a model family is to the rest of the program, and the plain values that cross its border."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from agent.actions import Action
from agent.geometry import GridPoint, Size
from agent.model.messages import Message
from agent.model.request import Sampling
from agent.screen.encode import EncodedImage, ImageFormat
from foundation.images import ImageRule

Style: TypeAlias = Literal["reference", "desktop"]

FailureKind: TypeAlias = Literal[
    "empty",  # nothing was said
    "no_action",  # no tool call or answer in the text
    "truncated",  # the answer ends in the middle
    "ambiguous",  # several different candidates and no mark which one counts
    "bad_json",  # a call that is no JSON, also after the known repairs
    "unknown_action",
    "bad_argument",
    "bad_point",
    "off_screen",  # a point far outside the grid: probably another coordinate space
]


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the model wrote it, so that it can be replayed to the letter."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Decision:
    """What the model decided.

    Args:
        thought: its reasoning, "" where it gave none.
        action: what to do; points on the model's own grid.
        call: the call as written.
    """

    thought: str
    action: Action[GridPoint]
    call: Call


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """Why an answer gives no action: `kind` for programs, `message` for the model and the person."""

    kind: FailureKind
    message: str
    thought: str = ""


@dataclass(frozen=True, slots=True)
class PastStep:
    """One finished step, as a family needs it to write the history.

    Args:
        thought: the model's reasoning.
        call: the call as written.
        image: the screenshot that the model saw before the answer; None when the history window left it out.
        shown: whether the screenshot is in the request.
        user_reply: what the person answered, if asked.
        tool_result: what a called tool gave back.
        note: what the program had to say about the step ("nothing changed on the screen").
    """

    thought: str
    call: Call
    image: EncodedImage | None = None
    shown: bool = False
    user_reply: str | None = None
    tool_result: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """Everything that a request to a model is made of.

    Args:
        instruction: what the person wants.
        current: the screenshot now.
        steps: the steps so far, oldest first.
        skipped: how many older steps the context had no room for.
        tools: MCP tool definitions (name, description, parameters).
        apps: names of installed applications (desktop style).
        style: `reference` or `desktop`.
        thinking: False asks for the family's variant without a thought.
        system_prompt: replaces the family's own system text.
    """

    instruction: str
    current: EncodedImage | None
    steps: Sequence[PastStep] = ()
    skipped: int = 0
    tools: Sequence[Mapping[str, Any]] = ()
    apps: Sequence[str] = ()
    style: Style = "desktop"
    thinking: bool = True
    system_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class FamilyFacts:
    """The numbers of a family, from its `family.toml`."""

    name: str
    image: ImageRule
    image_format: ImageFormat
    quality: int
    sampling: Sampling
    reference_images: int
    detect: tuple[str, ...] = field(default=())


class Family(Protocol):
    """A model family: how it is asked and what its answers mean. Everything in it is pure."""

    @property
    def facts(self) -> FamilyFacts:
        """Its numbers."""
        ...

    def messages(self, request: PromptRequest) -> list[Message]:
        """The chat messages of a request."""
        ...

    def grounding_messages(self, instruction: str, image: EncodedImage | None) -> list[Message]:
        """The chat messages that ask for one point."""
        ...

    def parse(self, text: str, sent: Size) -> Decision | ParseFailure:
        """The decision in an answer. Total: any text gives a decision or a failure, never an exception.

        Args:
            text: the whole answer.
            sent: size of the image the model saw last (families with absolute points need it).
        """
        ...

    def parse_grounding(self, text: str, sent: Size) -> Decision | ParseFailure:
        """The point in a grounding answer, as a click. Total, like `parse`."""
        ...

    def feedback(self, failure: ParseFailure) -> str:
        """What to tell the model after an answer that gave no action."""
        ...

    def constraint(self, style: Style, thinking: bool) -> str:
        """A regular expression that valid answers match, for servers with constrained decoding."""
        ...
