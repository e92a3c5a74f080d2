"""The interface of a model family, and the plain values that it takes and returns."""

import re
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
from agent.families.published import Published
from agent.model.endpoint import Api
from agent.model.request import ChatRequest, Sampling
from agent.screen.encode import EncodedImage, ImageFormat
from agent.screen.outline import Outline, See
from foundation.chat_stream import Answer
from foundation.errors import UsageError
from foundation.families import family_data, family_folder, image_rule
from foundation.images import ImageRule

FailureKind: TypeAlias = Literal[
    "empty",  # the answer has no content
    "no_action",  # no tool call or answer in the text
    "truncated",  # the answer ends in the middle
    "ambiguous",  # several different candidates, and no mark for the right one
    "bad_json",  # a call that is not JSON, even after the known repairs
    "unknown_action",
    "bad_argument",
    "bad_point",
    "absent",  # the place that a planner names is not on the screen
    "mismatch",  # the element at the point is not what the model wants
    "off_screen",  # a point far outside the grid: probably another coordinate space
]


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the model wrote it, for an exact replay. `id` is the server's, if it gave one."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the model decided."""

    thought: str  # its reasoning, or ""
    actions: tuple[Action[GridPoint], ...]  # the actions in order, at least one; points on the model's own grid
    calls: tuple[Call, ...]  # the calls as written
    #: for each point, in order, what the model says is there, in its own words; "" if it does not say
    aims: tuple[str, ...] = ()
    doubt: str = ""  # why another element may be at a point, as a clause; "" if nothing says so
    exact: bool = False  # whether the points come from known elements, so that a closer look cannot improve them
    left_out: int = 0  # number of ignored calls, in a family that is trained to make one call at a time
    unread: str = ""  # why a later call of the answer was rejected, as a clause; "" if none was
    objection: str = ""  # why the service wants a person to agree first, as a clause


@dataclass(frozen=True, slots=True)
class Plan:
    """A planner's decision. Unlike in a `Decision`, places are named by words, and a grounder finds them."""

    thought: str
    actions: tuple[Action[NamedPoint], ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """Why an answer gives no action: `kind` for programs, `message` for the model and the person."""

    kind: FailureKind
    message: str
    thought: str = ""


#: The actions that a call stands for.
Acts: TypeAlias = Action[GridPoint] | Sequence[Action[GridPoint]]

_CONSTRAINT_MARK = re.compile(r"<([a-z]+)>")
_FEEDBACK = "That answer cannot be carried out: {message}. Nothing was done. Answer again."


class ArgumentError(ValueError):
    """A call cannot be used; `kind` says why."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind


def decide(
    thought: str,
    calls: Sequence[Call] | ParseFailure,
    read: Callable[[Call], Acts],
    *,
    most: int | None = None,
    in_part: bool = False,
) -> Decision | ParseFailure:
    """Return the decision of an answer's calls. If `read` raises ArgumentError for one call, all are rejected.

    `most`: how many calls are used, None for all; the others are ignored and counted. `in_part`: after a rejected call,
    the calls before it still count.
    """
    if isinstance(calls, ParseFailure):
        return ParseFailure(calls.kind, calls.message, thought)
    taken = tuple(calls[:most])
    read_as: list[Acts] = []
    unread = ""
    for call in taken:
        try:
            read_as.append(read(call))
        except ArgumentError as error:
            if not (in_part and read_as):
                return ParseFailure(error.kind, str(error), thought)
            unread = str(error)
            break
    actions = [action for each in read_as for action in (each if isinstance(each, Sequence) else (each,))]
    left_out = len(calls) - len(taken)
    return Decision(thought, tuple(actions), taken[: len(read_as)], left_out=left_out, unread=unread)


@dataclass(frozen=True, slots=True)
class PastStep:
    """One finished step, with what a family needs to write the history."""

    thought: str  # the model's reasoning
    calls: tuple[Call, ...]  # the calls as written
    #: the images before the answer; None for an image that the history window dropped
    images: tuple[EncodedImage | None, ...] = ()
    shown: bool = False  # whether the images are in the request
    user_reply: str | None = None  # the person's reply
    tool_result: str | None = None  # the result of a called tool
    note: str | None = None  # the program's remark on the step ("nothing changed on the screen")
    #: the whole answer, for families that replay it exactly; None if unknown
    answer: Answer | None = None
    outline: Outline | None = None  # the elements on the screen before the answer, if known
    changes: Sequence[Change] = ()  # the changes on the computer up to the answer, if known
    agreed: bool = False  # whether a person agreed to what the service objected to

    @property
    def replies(self) -> list[str]:
        """Return what came back after the answer: from the person, a tool, and the program."""
        return [text for text in (self.user_reply, self.tool_result, self.note) if text]


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """The input for a request to a model."""

    instruction: str  # the task
    #: the current screenshots; None is the placeholder in `mai-agent prompt`
    images: tuple[EncodedImage | None, ...]
    steps: Sequence[PastStep] = ()  # the steps so far, oldest first
    skipped: int = 0  # number of older steps without room in the context
    tools: Sequence[Mapping[str, Any]] = ()  # MCP tool definitions (name, description, parameters)
    apps: Sequence[str] = ()  # installed applications
    system_prompt: str | None = None  # replaces the family's own system prompt
    outline: Outline | None = None  # the current elements of the screen, if known
    changes: Sequence[Change] = ()  # the changes on the computer since the run began, if known
    #: the user's values for a family's own options; a family ignores options that it does not have
    options: Mapping[str, Any] = field(default_factory=dict)
    sent: Size | None = None  # the size of the image that a placeholder stands for
    model: str = ""  # the served model's name, for families with several prompts; "" if unknown

    @property
    def reference(self) -> bool:
        """Whether to use the published client's messages. The default is our own for a desktop."""
        return bool(self.options.get("style", "desktop") == "reference")

    @property
    def thinking(self) -> bool:
        """Whether the model is asked for a thought, which is the default."""
        return bool(self.options.get("thinking", True))

    @property
    def size(self) -> Size:
        """Return the pixel size of the newest image as sent. Some families state it in the prompt."""
        newest = self.images[-1] if self.images else None
        size = self.sent if newest is None else newest.size
        return Size(1920, 1080) if size is None else size


#: Facts that a `family.toml` may leave out: their table and key there.
_OPTIONAL = {
    "image_format": ("image", "format"), "quality": ("image", "quality"), "reference_images": ("history", "images"),
    "most_images": ("history", "most"), "history": ("history", "words"), "several": ("call", "several"),
    "function": ("call", "function"), "outline": ("prompt", "outline"), "see": ("prompt", "see"),
    "names_elements": ("prompt", "names_elements"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FamilyFacts:
    """The numbers of a family, from its `family.toml`."""

    name: str
    image: ImageRule  # how its models resize an image
    image_format: ImageFormat = "png"
    quality: int = 90
    sampling: Sampling = field(default_factory=Sampling)  # as the published client sets it
    models: tuple[str, ...] = ()  # published models, by their makers' names
    navigation: Counted = 1000  # the grid of points, as in `points.grid_of`
    grounding: Counted = 1000  # the grid of grounding answers
    reference_images: int = 3  # images in a request of the published client, the current one included
    most_images: int | None = None  # maximum images before its models get worse; None if unknown
    history: str = ""  # what the published client shows of the past, in a few words
    several: bool = False  # whether its models are trained to make several calls in one answer, executed in order
    function: str = "computer_use"  # the function name under which its models call actions
    api: Api = "chat"  # the API for its models
    outline: bool = False  # whether requests contain the outline of the screen, and wait for it
    see: See = "screenshot"  # how its models are shown the screen, unless the user chooses
    names_elements: bool = False  # whether its answers may name elements of the outline by number

    @classmethod
    def of(cls, name: str) -> "FamilyFacts":
        """Return the facts of a family, with the defaults above for missing values. Raises UsageError."""
        data = family_data(name)
        grid, sampling = data.get("grid", {}), Sampling(**data.get("sampling", {}))
        given = {fact: data[table][key] for fact, (table, key) in _OPTIONAL.items() if key in data.get(table, {})}
        return cls(
            name=name,
            image=image_rule(name),
            sampling=sampling,
            models=tuple(data.get("models", ())),
            api=data.get("api", "chat"),
            navigation=grid.get("navigation", grid.get("grounding", 1000)),
            grounding=grid.get("grounding", grid.get("navigation", 1000)),
            **given,
        )


class Family(ABC):
    """A model family: how to ask it, and what its answers mean. All methods are pure.

    `made_by` in its `family.toml` names its class. The class must read the grid from `facts` for each answer, because
    `counting` replaces it.
    """

    #: False for models that only find places
    acts = True
    #: files that several families share: texts, which a family's own `prompt.toml` extends, and data, which its
    #: `family.toml` extends
    shared_texts: ClassVar[Path | None] = None
    shared_data: ClassVar[Path | None] = None

    def __init__(self, name: str) -> None:
        self.facts = FamilyFacts.of(name)
        self.data: Mapping[str, Any] = _extended(_read(self.shared_data), family_data(name))
        self.published: Published | None = None
        self.texts = _extended(_read(self.shared_texts), _read(family_folder(name) / "prompt.toml"))

    def counting(self, grid: Grid) -> Self:
        """Return a copy of the family with another grid, for a model or server that was found to use it."""
        facts = self.facts
        unrelated = isinstance(facts.navigation, str) != isinstance(facts.grounding, str)
        same = copy(self)
        same.facts = replace(facts, navigation=facts.navigation if unrelated else grid, grounding=grid)
        return same

    def wording(
        self, published: Published | None, options: Mapping[str, Any], tools: Sequence[Mapping[str, Any]] = ()
    ) -> Self:
        """Return a copy of the family that asks with the publisher's words, if they suit the options and tools."""
        same = copy(self)
        reference = PromptRequest("", (), options=options).reference
        same.published = published and published.fitting(reference=reference, tools=bool(tools))
        return same

    def words(self, prompt: PromptRequest, part: str = "system", **values: str) -> str | None:
        """Return the text that replaces ours in a part of a request: the user's, or the publisher's; None for ours.

        `values` fill the placeholders beyond instruction, language, width and height.
        """
        if prompt.system_prompt is not None:
            return prompt.system_prompt if part == "system" else None
        if self.published is None:
            return None
        size, language = prompt.size, str(prompt.options.get("language", "English"))
        known = {"instruction": prompt.instruction, "language": language}
        known |= {"width": str(size.width), "height": str(size.height)}
        return self.published.fill(part, known | values)

    @abstractmethod
    def request(self, prompt: PromptRequest) -> ChatRequest:
        """Return the request for the next action."""

    @abstractmethod
    def parse(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:
        """Parse the decision in an answer. Any input gives a decision or a failure, never an exception.

        `sent` are the sizes of the newest images that the model saw, at least one. Families with absolute points need
        them.
        """

    def parse_seen(self, answer: Answer, sent: Sequence[Size], outline: Outline | None) -> Decision | ParseFailure:  # noqa: ARG002
        """Parse an answer to a request with this outline, for families whose answers name its elements."""
        return self.parse(answer, sent)

    @abstractmethod
    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """Write an answer with this reasoning and these calls as the family's models do. `parse` must read it back.

        It replaces a past answer whose text is unknown.
        """

    @property
    def grounds(self) -> bool:
        """Whether the family can be asked for a point."""
        return type(self).grounding_request is not Family.grounding_request

    def grounding_request(self, instruction: str, image: EncodedImage | None) -> ChatRequest:  # noqa: ARG002
        """Return the request for a point. Raises UsageError: the family cannot answer it."""
        raise UsageError(f"The family {self.facts.name!r} has no grounding mode.", "Choose another --family.")

    def parse_grounding(self, answer: Answer, sent: Sequence[Size]) -> Decision | ParseFailure:  # noqa: ARG002
        """Parse the point in a grounding answer, as a click. Any input is allowed, as in `parse`."""
        return ParseFailure("no_action", f"the family {self.facts.name} has no grounding mode")

    def feedback(self, failure: ParseFailure) -> str:
        """Return the message to the model after an answer without an action: "feedback" of its texts."""
        return str(self.texts.get("feedback", _FEEDBACK)).replace("{message}", failure.message)

    def constraint(self, options: Mapping[str, Any]) -> str | None:
        """Return a regular expression that valid answers match, for servers with constrained decoding.

        It is the key `form` of the table `constraint` in the texts. Marks such as <point> stand for the table's other
        keys. `desktop_constraint` has more choices, and other values, for the desktop style.
        """
        if "form" not in (table := self.texts.get("constraint", {})):
            return None
        prompt = PromptRequest("", (), options=options)
        here = {} if prompt.reference else self.texts["desktop_constraint"]
        choices = "|".join([*table["choices"], *here.get("choices", ())])
        values = {"thought": "", **table, **here, **({} if prompt.thinking else {"thought": ""}), "choices": choices}
        regex = str(table["form"])
        for _ in range(3):  # a value may have marks of its own
            regex = _CONSTRAINT_MARK.sub(lambda mark: str(values.get(mark[1], mark[0])), regex)
        return regex


def _read(path: Path | None) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8")) if path is not None and path.is_file() else {}


def _extended(shared: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return two files as one: own values replace shared ones, and own tables extend shared tables."""
    tables = {key: {**shared.get(key, {}), **value} for key, value in own.items() if isinstance(value, dict)}
    return {**shared, **own, **tables}
