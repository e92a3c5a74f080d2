"""Everything the loop works with. Each part is behind a protocol, or a fake can replace it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from agent.desktop.guard.surroundings import DesktopSurroundings
from agent.desktop.protocol.hand import Hand
from agent.desktop.protocol.witness import OpenWitness
from agent.events.run_events import Emit
from agent.run.control import Race, Steering, Worker
from agent.run.models.assemble import DecidingModel, FallbackModel
from agent.safety.policy import Approver, Grants, Policy
from agent.safety.stop import StopSwitch

T = TypeVar("T")


class Person(Approver, Protocol):
    """The person who approves actions and answers the model's questions."""

    async def ask(self, question: str) -> str | None:
        """Return the reply to a question of the model; None if nobody is there."""

    async def permit(self, question: str) -> bool:
        """Ask the program's own yes/no question. False if nobody is there."""


class ToolFailedError(Exception):
    """A tool failed. The message goes to the model and the person."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a tool: text with a placeholder for each picture, and the picture files (PNG, JPEG, WebP)."""

    text: str
    pictures: tuple[bytes, ...] = ()


class Tools:
    """Tools that the model may call besides the desktop; none by default. Each call passes policy and consent first."""

    names: Sequence[str] = ()
    definitions: Sequence[dict[str, Any]] = ()  # for the prompt: name, description, and parameters as a JSON Schema
    remarks: Sequence[str] = ()  # sentences on tools that are missing

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:  # noqa: ARG002
        """Call a tool. Raises ToolFailedError."""
        raise ToolFailedError(f"there is no tool named {name}")


#: Opens the tools of a run, and closes them with it.
OpenTools: TypeAlias = Callable[[], AbstractAsyncContextManager[Tools]]


@dataclass(slots=True)
class RunContext:
    """What one run works with, and its threads: the screen and the hand have one each."""

    own: DecidingModel  # the main model, with its observer, history and settings
    hand: Hand  # carries out actions on the desktop
    policy: Policy  # which actions need approval
    approver: Approver  # asks the person about actions
    person: Person  # answers the model's questions
    stop: StopSwitch  # ends everything
    surroundings: DesktopSurroundings  # inspects the desktop for the policy
    steering: Steering = field(default_factory=Steering)  # what the person wants of the run
    grants: Grants = field(default_factory=Grants)  # what the person allowed for the rest of this run
    tools: Tools = field(default_factory=Tools)  # the tools of the model
    open_witness: OpenWitness | None = None  # starts watching for changes on the computer; None if nothing can
    relief: FallbackModel | None = None  # a second model, which may take over if the first is stuck
    emit: Emit = lambda _: None  # receives the events of the run; set by the loop
    race: Race = field(init=False)
    observing: Worker = field(init=False, default_factory=partial(Worker, "observer"))
    acting: Worker = field(init=False, default_factory=partial(Worker, "hand"))

    def __post_init__(self) -> None:
        self.race = Race(self.stop)

    async def on_screen(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a call on the thread of the screen. Raises StoppedError."""
        return await self.race(self.observing.call(function, *arguments))
