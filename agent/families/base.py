"""What a model family is to the rest of the program, and the plain values that cross its border."""

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeAlias

from agent.core.actions import Action
from agent.core.changes import Change
from agent.core.geometry import Counted, Grid, GridPoint, NamedPoint, Size
from agent.model.endpoint import Api
from agent.model.request import ChatRequest, Sampling
from agent.screen.encode import EncodedImage, ImageFormat
from agent.screen.outline import Outline, See
from foundation.chat_stream import Answer
from foundation.errors import UsageError
from foundation.families import family_data, family_folder, image_rule
from foundation.images import ImageRule

FailureKind: TypeAlias = Literal[
    "empty",  # nothing was said
    "no_action",  # no tool call or answer in the text
    "truncated",  # the answer ends in the middle
    "ambiguous",  # several different candidates and no mark which one counts
    "bad_json",  # a call that is no JSON, also after the known repairs
    "unknown_action",
    "bad_argument",
    "bad_point",
    "absent",  # what a planner names is not on the screen
    "mismatch",  # at the point is something else than what the model says it wants
    "off_screen",  # a point far outside the grid: probably another coordinate space
]


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the model wrote it, so that it can be replayed to the letter; `id` where the server gave it one."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the model decided."""

    thought: str  # its reasoning, "" where it gave none
    actions: tuple[Action[GridPoint], ...]  # what to do, in order, at least one; points on the model's own grid
    calls: tuple[Call, ...]  # the calls as written
    #: what the model says lies at its points, in its own words and their order; "" where it does not say
    aims: tuple[str, ...] = ()
    doubt: str = ""  # why what lies there may be something else, as a clause; "" where nothing says so
    exact: bool = False  # whether its points are those of elements that were told: no look is closer
    left_out: int = 0  # further calls of the answer, of a family that is trained to make one at a time
    objection: str = ""  # why the service wants a person to agree before any of it is done, as a clause


@dataclass(frozen=True, slots=True)
class Plan:
    """What a planner decided: like a `Decision`, but places are called by words, and a grounder is to find them."""

    thought: str
    actions: tuple[Action[NamedPoint], ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """Why an answer gives no action: `kind` for programs, `message` for the model and the person."""

    kind: FailureKind
    message: str
    thought: str = ""


_FEEDBACK = "That answer cannot be carried out: {message}. Nothing was done. Answer again."


class ArgumentError(ValueError):
    """A call cannot be used; `kind` says why."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind


def decide(
    thought: str,
    calls: Sequence[Call] | ParseFailure,
    read: Callable[[Call], Action[GridPoint] | Sequence[Action[GridPoint]]],
    *,
    most: int | None = None,
) -> Decision | ParseFailure:
    """The decision in the calls of an answer; one of which `read` raises ArgumentError spoils them all.

    Args:
        thought: the reasoning.
        calls: as written, in order.
        read: gives the action of a call, or several that it stands for.
        most: how many calls count; those after them are left out, and counted. None for all.
    """
    if isinstance(calls, ParseFailure):
        return ParseFailure(calls.kind, calls.message, thought)
    taken = tuple(calls[:most])
    try:
        read_as = [read(call) for call in taken]
    except ArgumentError as error:
        return ParseFailure(error.kind, str(error), thought)
    actions = [action for each in read_as for action in (each if isinstance(each, Sequence) else (each,))]
    return Decision(thought, tuple(actions), taken, left_out=len(calls) - len(taken))


@dataclass(frozen=True, slots=True)
class PastStep:
    """One finished step, as a family needs it to write the history."""

    thought: str  # the model's reasoning
    calls: tuple[Call, ...]  # the calls as written
    #: what the model saw before the answer; None where the history window left an image out
    images: tuple[EncodedImage | None, ...] = ()
    shown: bool = False  # whether the images are in the request
    user_reply: str | None = None  # what the person answered
    tool_result: str | None = None  # what a called tool gave back
    note: str | None = None  # what the program had to say about the step ("nothing changed on the screen")
    #: the whole answer, for families that replay it to the letter; None where it is not known
    answer: Answer | None = None
    outline: Outline | None = None  # the elements that were on the screen before the answer, where they are known
    changes: Sequence[Change] = ()  # what had changed on the computer until then, where it is known
    agreed: bool = False  # whether a person agreed to what the service objected to

    @property
    def replies(self) -> list[str]:
        """What came back after the answer: from the person, from a tool, from the program."""
        return [text for text in (self.user_reply, self.tool_result, self.note) if text]


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """Everything that a request to a model is made of."""

    instruction: str  # what the person wants
    #: what is to be seen now; None stands for the place of an image in `mai-agent prompt`
    images: tuple[EncodedImage | None, ...]
    steps: Sequence[PastStep] = ()  # the steps so far, oldest first
    skipped: int = 0  # how many older steps the context had no room for
    tools: Sequence[Mapping[str, Any]] = ()  # MCP tool definitions (name, description, parameters)
    apps: Sequence[str] = ()  # installed applications
    system_prompt: str | None = None  # replaces the family's own system text
    outline: Outline | None = None  # the elements of the screen now, where it is known
    changes: Sequence[Change] = ()  # what changed on the computer since the run began, where it is known
    #: what a person may choose of the family's own ways; a family passes over those it does not have
    options: Mapping[str, Any] = field(default_factory=dict)
    sent: Size | None = None  # the size of the image in place of which None stands
    model: str = ""  # the served model's name, for families that ask their models differently; "" where not known

    @property
    def reference(self) -> bool:
        """Whether the published client's messages are wanted; our own for a desktop are the default."""
        return bool(self.options.get("style", "desktop") == "reference")

    @property
    def size(self) -> Size:
        """The size in pixels of the newest image as sent, which some families state in words."""
        newest = self.images[-1] if self.images else None
        size = self.sent if newest is None else newest.size
        return Size(1920, 1080) if size is None else size


@dataclass(frozen=True, slots=True)
class FamilyFacts:
    """The numbers of a family, from its `family.toml`."""

    name: str
    image: ImageRule  # the rule by which its models resize an image
    image_format: ImageFormat = "png"
    quality: int = 90
    sampling: Sampling = field(default_factory=Sampling)  # as its own client asks for it
    models: tuple[str, ...] = ()  # published models, as their makers name them
    navigation: Counted = 1000  # what points count on, as in `points.grid_of`
    grounding: Counted = 1000  # the same, of answers to a question for one point
    reference_images: int = 3  # images in a request of its own client, the current one included
    most_images: int | None = None  # more images in a request make its models worse; None where that is not known
    history: str = ""  # what its own client shows of the past, in a few words
    several: bool = False  # whether its models are trained to make several calls in one answer, done in order
    function: str = "computer_use"  # the name under which its models call actions
    api: Api = "chat"  # what its models are asked through
    outline: bool = False  # whether it is asked with the outline of the screen, which is then waited for
    see: See = "screenshot"  # how its models are shown the screen unless a person says otherwise
    names_elements: bool = False  # whether its answers may name elements of the outline by number

    @classmethod
    def of(cls, name: str) -> "FamilyFacts":
        """The facts of a family; what its file leaves out has the defaults above. Raises UsageError."""
        data = family_data(name)
        image, grid = data["image"], data.get("grid", {})
        return cls(
            name=name,
            image=image_rule(name),
            image_format=image.get("format", "png"),
            quality=image.get("quality", 90),
            sampling=Sampling(**data.get("sampling", {})),
            models=tuple(data.get("models", ())),
            navigation=grid.get("navigation", grid.get("grounding", 1000)),
            grounding=grid.get("grounding", grid.get("navigation", 1000)),
            reference_images=data.get("history", {}).get("images", 3),
            most_images=data.get("history", {}).get("most"),
            history=data.get("history", {}).get("words", ""),
            several=data.get("call", {}).get("several", False),
            function=data.get("call", {}).get("function", "computer_use"),
            api=data.get("api", "chat"),
            outline=data.get("prompt", {}).get("outline", False),
            see=data.get("prompt", {}).get("see", "screenshot"),
            names_elements=data.get("prompt", {}).get("names_elements", False),
        )


class Family(ABC):
    """A model family: how it is asked and what its answers mean. Everything in it is pure.

    `made_by` in its `family.toml` names its class. What it counts on it reads from its `facts` with every answer: see
    `counting`.
    """

    #: whether its models decide what to do; others only find places
    acts = True
    #: a file of texts that several families share; a family's own `prompt.toml` replaces what it names again
    shared_texts: ClassVar[Path | None] = None

    def __init__(self, name: str) -> None:
        self.facts = FamilyFacts.of(name)
        self.data: Mapping[str, Any] = family_data(name)
        self.texts = _texts(self.shared_texts, family_folder(name) / "prompt.toml")

    def counting(self, grid: Grid) -> Self:
        """Return the same family for a model or a server that turned out to count on another grid."""
        facts = self.facts
        fractions = facts.navigation == 1 != facts.grounding  # then one says nothing of the other
        same = copy(self)
        same.facts = replace(facts, navigation=facts.navigation if fractions else grid, grounding=grid)
        return same

    @abstractmethod
    def request(self, prompt: PromptRequest) -> ChatRequest:
        """Return the request for the next action."""

    @abstractmethod
    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Read the decision in an answer. Total: any answer gives a decision or a failure, never an exception.

        `sent` are the sizes of the images the model saw last (families with absolute points need them); at least one.
        """

    def parse_seen(self, answer: Answer, sent: Sequence[Size], outline: Outline | None) -> Decision | ParseFailure:  # noqa: ARG002
        """Read an answer to a request that told this outline: for families whose answers name its elements."""
        return self.parse(answer, sent)

    @abstractmethod
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """Write an answer of this reasoning and these calls as the family's models do; `parse` reads it back.

        It replaces a past answer whose text is unknown.
        """

    @property
    def grounds(self) -> bool:
        """Whether it can be asked for one point."""
        return type(self).grounding_request is not Family.grounding_request

    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:  # noqa: ARG002
        """Return the request for one point. Raises UsageError where the family cannot give one."""
        raise UsageError(f"The family {self.facts.name!r} has no grounding mode.", "Choose another --family.")

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:  # noqa: ARG002
        """Read the point in a grounding answer, as a click. Total, like `parse`."""
        return ParseFailure("no_action", f"the family {self.facts.name} has no grounding mode")

    def feedback(self, failure: ParseFailure) -> str:
        """Return what to tell the model after an answer that gave no action: "feedback" of its texts."""
        return str(self.texts.get("feedback", _FEEDBACK)).replace("{message}", failure.message)

    def constraint(self, options: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """Return a regular expression that valid answers match, for servers with constrained decoding."""
        return None


def _texts(*paths: Path | None) -> dict[str, Any]:
    """Read files of texts; a table of a later file adds to the same table of an earlier one."""
    texts: dict[str, Any] = {}
    for path in paths:
        if path is not None and path.is_file():
            for key, value in tomllib.loads(path.read_text(encoding="utf-8")).items():
                texts[key] = {**texts.get(key, {}), **value} if isinstance(value, dict) else value
    return texts
