"""The typed events of a run: the only interface between the loop and its observers.

The printer, the recorder and the TUI receive the same stream, in order and on the loop's thread. Events are plain
values; `agent.events.as_json` gives the form of `mai-agent --json`.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agent.core.actions import Action
from agent.core.changes import Change
from agent.core.geometry import DesktopPoint, GridPoint, Viewport
from agent.events.change_words import Told, told
from agent.events.fates import Allowed, Why, consulted_words, handed_over_words
from agent.families.base import Call, ParseFailure
from agent.safety.naming import Aim
from agent.safety.policy import PersonAnswer
from agent.screen.encode import EncodedImage
from agent.screen.nearby import Described
from agent.screen.outline import Element
from foundation.chat_stream import Answer, Usage
from foundation.errors import ExitStatus
from foundation.printing import counted

Outcome: TypeAlias = Literal[
    "done",
    "unverified",  # the model says it is done, but no evidence confirms it
    "gave_up", "out_of_budget", "unparsable", "looping", "refused", "failed", "stopped",
]  # fmt: skip

#: The version of the form that `to_json` gives, and of run bundles.
SCHEMA = 3


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Anything that happens in a run."""

    #: seconds since 1970; ignored when events are compared
    at: float = field(default_factory=time.time, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class ModelInUse:
    """A model that a run uses."""

    engine: str  # the name of the engine that serves it
    model: str  # its name at the endpoint
    family: str  # the model family, which sets prompt and parser
    endpoint: str  # the address
    words: str = "ours"  # source of the prompt: "ours", "yours" (a file), or "published, repository@commit"


@dataclass(frozen=True, slots=True)
class RunStarted(RunEvent):
    """The run begins; `models` has at least the role "actor"."""

    instruction: str
    models: Mapping[str, ModelInUse]
    style: str
    dry_run: bool
    approve: str
    sandbox: bool
    viewport: Viewport
    bundle: str
    sandbox_name: str = ""  # the throw-away desktop, as `mai-agent sandbox list` calls it; empty for a person's own
    machine: str = ""  # the address of the other machine whose desktop it is; empty for this one

    @property
    def actor(self) -> ModelInUse:
        """The model that looks and acts."""
        return self.models["actor"]


@dataclass(frozen=True, slots=True)
class Observed(RunEvent):
    """The screen was captured and made ready for the model; `tokens` are those of all images."""

    step: int
    images: tuple[EncodedImage, ...]
    viewport: Viewport
    tokens: int
    digest: str
    milliseconds: dict[str, float]
    #: boxes (left, top, width, height) of the listed elements, which the model may name by number
    boxes: Mapping[str, tuple[int, int, int, int]] = field(default_factory=dict)

    @property
    def image(self) -> EncodedImage | None:
        """The first image; None where the model sees none."""
        return next(iter(self.images), None)


@dataclass(frozen=True, slots=True)
class ModelDelta(RunEvent):
    """A further piece of the model's answer. `restart` discards the earlier pieces of this step."""

    step: int
    text: str
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Decided(RunEvent):
    """The model's answer was read: actions in model and in desktop coordinates, in order, or a failure."""

    step: int
    raw: str  # the answer as one text
    thought: str
    calls: tuple[Call, ...]
    actions: tuple[Action[GridPoint], ...]
    targets: tuple[Action[DesktopPoint], ...]
    failure: ParseFailure | None
    usage: Usage
    milliseconds: dict[str, float]
    #: the answer in its parts, where the server tells reasoning or tool calls apart from the text
    answer: Answer | None = field(default=None, kw_only=True)
    #: why the element at its points may not be the wanted one; empty if nothing suggests it
    doubt: str = field(default="", kw_only=True)
    #: the role of the model that decided: "actor", or "relief" while another one works in its place
    by: str = field(default="actor", kw_only=True)
    #: the model that answered, as the server named it; empty where it named none
    model: str = field(default="", kw_only=True)

    @property
    def target(self) -> Action[DesktopPoint] | None:
        """The first action in desktop units."""
        return next(iter(self.targets), None)


@dataclass(frozen=True, slots=True)
class Consulted(RunEvent):
    """A model was asked for the place of something, in a request besides the request for the decision."""

    step: int
    role: str  # the role of the model: "grounder", or "actor" for the acting model itself
    model: str  # its name at the endpoint
    why: Literal["ground", "zoom"]  # "ground" for a place that a plan names, "zoom" for a closer look
    asked: str  # the thing to locate
    raw: str  # its answer
    point: DesktopPoint | None  # the place, in desktop units; None where it gave none
    absent: bool  # it says that this is not on the screen
    usage: Usage
    milliseconds: float

    @property
    def words(self) -> str:
        """What came of it, on one line."""
        return consulted_words(self.why, self.role, self.asked, self.point)


@dataclass(frozen=True, slots=True)
class ApprovalAsked(RunEvent):
    """The policy wants a person to agree, or the person wants to see the action first."""

    step: int
    target: Action[DesktopPoint]
    reason: str
    scope: str = ""  # what a yes for the rest of the run would allow
    index: int = field(default=0, kw_only=True)  # which of the step's actions
    aim: Aim = field(default=Aim(), kw_only=True)  # what it goes to, where that is known


@dataclass(frozen=True, slots=True)
class ApprovalGiven(RunEvent):
    """An `ApprovalAsked` was answered."""

    step: int
    allowed: bool
    by: str  # who or what decided; not always a person
    note: str = ""  # what to do instead, for the model
    always: bool = False  # it holds for the rest of the run, in the scope of the question
    #: the action as the person changed it, which is carried out in place of the model's
    instead: Action[DesktopPoint] | None = None
    milliseconds: float = 0.0  # how long the person took
    index: int = field(default=0, kw_only=True)  # which of the step's actions
    answer: PersonAnswer = field(default="allowed", kw_only=True)  # the decision by its kind
    instead_aim: Aim = field(default=Aim(), kw_only=True)  # the target of `instead`, if it is known
    #: why the policy would ask about `instead`; "" if it would not
    instead_reason: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Dropped(RunEvent):
    """An action of the decision was not carried out, and will not be."""

    step: int
    target: Action[DesktopPoint]  # as the model proposed it
    why: Why  # which of the reasons it was
    index: int = field(default=0, kw_only=True)  # which of the step's actions


@dataclass(frozen=True, slots=True)
class Paused(RunEvent):
    """The run waits for the person."""

    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class Resumed(RunEvent):
    """The run goes on."""

    step: int


@dataclass(frozen=True, slots=True)
class UserActed(RunEvent):
    """The person used mouse or keyboard themselves before this step."""

    step: int
    what: str


@dataclass(frozen=True, slots=True)
class PersonSaid(RunEvent):
    """The person said something to the model before this step."""

    step: int
    text: str


@dataclass(frozen=True, slots=True)
class Acted(RunEvent):
    """The action was carried out, recorded (dry run), or failed."""

    step: int
    target: Action[DesktopPoint]
    executed: bool
    dry_run: bool
    detail: str
    error: str | None
    milliseconds: float
    #: the elements that it hit, in their earlier state, if known; for a drag, those at both ends
    elements: tuple[Element, ...] = field(default=(), kw_only=True)
    index: int = field(default=0, kw_only=True)  # which of the step's actions
    aim: Aim = field(default=Aim(), kw_only=True)  # what it went to, where that is known
    #: the element that it went to, from the outline before the action, if known
    described: Described | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class StepFinished(RunEvent):
    """The step is over."""

    step: int
    changed: bool | None  # whether the screen changed; None where nothing was done to it
    note: str | None  # what the model will be told about the step, if anything
    reply: str | None  # the person's reply or a tool's result
    milliseconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Warned(RunEvent):
    """Something a person should know; the run goes on."""

    message: str


@dataclass(frozen=True, slots=True)
class Receipt(RunEvent):
    """What changed on the computer since the run began; sent once, before `RunFinished`."""

    changes: tuple[Change, ...] = ()
    remarks: tuple[str, ...] = ()  # what could not be watched, as sentences for the person
    watched: bool = True  # whether changes were watched; if not, an empty list proves nothing

    @property
    def lines(self) -> list[str]:
        """The receipt as lines for a person, with the exact names of what changed."""
        return [*map(str, self.changes), *self._rest]

    @property
    def told(self) -> list[Told]:
        """The receipt in a person's words."""
        return [*told(self.changes), *map(Told, self._rest)]

    @property
    def _rest(self) -> list[str]:
        nothing = "nothing changed, as far as is known" if self.remarks else "nothing changed"
        return [*([nothing] if self.watched and not self.changes else []), *self.remarks]


@dataclass(frozen=True, slots=True)
class RunFinished(RunEvent):
    """The run is over; always the last event."""

    outcome: Outcome
    status: ExitStatus
    message: str
    steps: int
    seconds: float
    usage: Usage
    evidence: tuple[str, ...] = ()  # what shows that the task is done, or speaks against it, as sentences
    verified: bool | None = None  # whether the evidence shows that it is done; null if unknown


@dataclass(frozen=True, slots=True)
class ReliefAsked(RunEvent):
    """The person is asked whether a fallback model on another machine may take over."""

    step: int  # number of the next step
    model: str  # its name at the endpoint
    host: str  # where it is
    steps: int  # for how many steps
    why: str  # why it is needed, as a clause
    image: EncodedImage | None  # the first picture that it would see; null where it sees none
    file: str  # where the run's folder has that picture; empty for none

    @property
    def words(self) -> str:
        """What is asked, on one line."""
        shown = f"; it would be sent {self.file} first" if self.file else ""
        steps = counted(self.steps, "step")
        return f"may {self.model or 'another model'} at {self.host} take over for {steps}? {self.why}{shown}"


@dataclass(frozen=True, slots=True)
class HandedOver(RunEvent):
    """Another model takes over before this step."""

    step: int
    role: str  # its role; "relief"
    model: str  # its name at the endpoint
    host: str  # where it is
    why: str  # why the model before it is stuck, as a clause
    steps: int  # number of steps until it hands back
    allowed: Allowed  # why it may: "local" (a model on this machine), or allowed by "policy" or "person"

    @property
    def words(self) -> str:
        """What happened, on one line."""
        return handed_over_words(self.model, self.host, self.steps, self.why, self.allowed)


@dataclass(frozen=True, slots=True)
class HandedBack(RunEvent):
    """The main model resumes at this step; `why`: why the other one stops, as a clause."""

    step: int
    why: str

    @property
    def words(self) -> str:
        """What happened, on one line."""
        return f"handed back: {self.why}"


Event: TypeAlias = (
    RunStarted | Observed | ModelDelta | Consulted | Decided | ApprovalAsked | ApprovalGiven | Dropped | ReliefAsked
    | HandedOver | HandedBack | Paused | Resumed | UserActed | PersonSaid | Acted | StepFinished | Warned | Receipt
    | RunFinished
)  # fmt: skip


#: The events that change a step.
StepEvent: TypeAlias = Observed | Consulted | Decided | ApprovalAsked | ApprovalGiven | Dropped | Acted | StepFinished


Emit: TypeAlias = Callable[[Event], None]


class SinkFailedError(BaseException):
    """The receiver of the events raised `error`. It is a BaseException, so that no `except Exception` catches it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
