"""What a run tells, as typed events: the only thing that crosses from the loop to whoever watches.

The printer, the recorder and the TUI receive the same stream. Events are plain values; `to_json` gives the
form of `mai-agent --json`, one object per line, without image bytes.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agent import actions
from agent.actions import Action
from agent.families.base import Call, ParseFailure
from agent.geometry import DesktopPoint, GridPoint, Viewport
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Usage
from foundation.errors import ExitStatus

Outcome: TypeAlias = Literal[
    "done", "gave_up", "out_of_budget", "unparsable", "looping", "refused", "failed", "stopped"
]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run begins."""

    instruction: str
    engine: str
    model: str
    family: str
    style: str
    endpoint: str
    dry_run: bool
    approve: str
    sandbox: bool
    viewport: Viewport
    bundle: str


@dataclass(frozen=True, slots=True)
class Observed:
    """The screen was captured and made ready for the model."""

    step: int
    image: EncodedImage
    viewport: Viewport
    tokens: int
    digest: str
    milliseconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class ModelDelta:
    """The model said a piece more; `restart` voids what it said before in this step."""

    step: int
    text: str
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """The model's answer was read: an action in model and desktop coordinates, or a failure."""

    step: int
    raw: str
    thought: str
    call: Call | None
    action: Action[GridPoint] | None
    target: Action[DesktopPoint] | None
    failure: ParseFailure | None
    usage: Usage
    milliseconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """The policy wants a person to agree, or the person wants to see the action first."""

    step: int
    target: Action[DesktopPoint]
    reason: str
    scope: str = ""  # what "always" would allow


@dataclass(frozen=True, slots=True)
class ApprovalGiven:
    """The person agreed or refused.

    Args:
        always: the same scope is not asked about again.
        instead: the action as the person changed it, which is carried out in place of the model's.
        milliseconds: how long the person took.
    """

    step: int
    allowed: bool
    by: str
    note: str = ""
    always: bool = False
    instead: Action[DesktopPoint] | None = None
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Paused:
    """The run waits for the person."""

    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run goes on."""

    step: int


@dataclass(frozen=True, slots=True)
class UserActed:
    """The person used mouse or keyboard themselves before this step."""

    step: int
    what: str


@dataclass(frozen=True, slots=True)
class Told:
    """The person said something to the model before this step."""

    step: int
    text: str


@dataclass(frozen=True, slots=True)
class Acted:
    """The action was carried out, recorded (dry run), or failed."""

    step: int
    target: Action[DesktopPoint]
    executed: bool
    dry_run: bool
    detail: str
    error: str | None
    milliseconds: float


@dataclass(frozen=True, slots=True)
class StepFinished:
    """The step is over.

    Args:
        changed: whether the screen changed; None where nothing was done to it.
        note: what the model will be told about the step, if anything.
        reply: the person's reply or a tool's result.
    """

    step: int
    changed: bool | None
    note: str | None
    reply: str | None
    milliseconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Warned:
    """Something a person should know; the run goes on."""

    message: str


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run is over; always the last event."""

    outcome: Outcome
    status: ExitStatus
    message: str
    steps: int
    seconds: float
    usage: Usage


Event: TypeAlias = (
    RunStarted
    | Observed
    | ModelDelta
    | Decided
    | ApprovalAsked
    | ApprovalGiven
    | Paused
    | Resumed
    | UserActed
    | Told
    | Acted
    | StepFinished
    | Warned
    | RunFinished
)


def to_json(event: Event) -> dict[str, Any]:
    """The event as plain JSON: "event", then its fields."""
    return {"event": type(event).__name__, **{name: _plain(getattr(event, name)) for name in event.__slots__}}


def _plain(value: Any) -> Any:
    if isinstance(value, EncodedImage):
        return {"width": value.size.width, "height": value.size.height, "format": value.format, "digest": value.digest}
    if isinstance(value, Viewport):
        region = value.region
        return {
            "left": region.left, "top": region.top, "width": region.width, "height": region.height,
            "captured_width": value.captured.width, "captured_height": value.captured.height,
        }  # fmt: skip
    if isinstance(value, Usage):
        return {"prompt": value.prompt, "completion": value.completion, "cached": value.cached}
    if isinstance(value, ParseFailure):
        return {"kind": value.kind, "message": value.message}
    if isinstance(value, Call):
        return {"name": value.name, "arguments": dict(value.arguments)}
    if isinstance(value, ExitStatus):
        return int(value)
    if isinstance(value, dict):
        return {key: round(item, 2) if isinstance(item, float) else item for key, item in value.items()}
    if isinstance(value, float):
        return round(value, 3)
    if value is None or isinstance(value, str | int | bool):
        return value
    return actions.to_json(value)
