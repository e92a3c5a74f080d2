"""Everything the loop works with. Each part is behind a protocol, or a fake can replace it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from agent.desktop.protocol.hand import Hand
from agent.desktop.protocol.witness import OpenWitness
from agent.run.loop.consent import Consent
from agent.run.models.actor import Actor
from agent.run.models.assemble import FallbackModel
from agent.run.models.history import History
from agent.run.observing.observe import Observer
from agent.safety.policy import Approver
from agent.safety.stop import StopSwitch


class Person(Approver, Protocol):
    """The person who approves actions and answers the model's questions."""

    async def ask(self, question: str) -> str | None:
        """Return the reply to a question of the model; None if nobody is there."""
        ...

    async def permit(self, question: str) -> bool:
        """Ask a yes/no question of the program itself. False if nobody is there."""
        ...


class ToolFailedError(Exception):
    """A tool failed. The message goes to the model and the person."""


class Tools(Protocol):
    """Tools that the model may call besides the desktop. Every call passes policy and consent first."""

    @property
    def names(self) -> Collection[str]:
        """Return the names of the tools."""
        ...

    @property
    def definitions(self) -> Sequence[dict[str, Any]]:
        """Return the tools for the prompt: name, description, and parameters as a JSON Schema."""
        ...

    @property
    def remarks(self) -> Sequence[str]:
        """Return sentences on tools that are missing."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool and return its result as text. Raises ToolFailedError."""
        ...


class NoTools:
    """The default: no tools."""

    names: Collection[str] = ()
    definitions: Sequence[dict[str, Any]] = ()
    remarks: Sequence[str] = ()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:  # noqa: ARG002 -- the protocol's
        """Raise ToolFailedError."""
        raise ToolFailedError(f"there is no tool named {name}")


#: Opens the tools of a run, and closes them with it.
OpenTools: TypeAlias = Callable[[], AbstractAsyncContextManager[Tools]]


@dataclass(frozen=True, slots=True)
class RunContext:
    """What one run works with."""

    observer: Observer  # captures the screen
    hand: Hand  # carries out actions on the desktop
    actor: Actor  # the model that decides
    history: History  # the past steps for the model
    consent: Consent  # decides which actions are allowed
    person: Person  # answers the model's questions
    stop: StopSwitch  # ends everything
    tools: Tools = field(default_factory=NoTools)  # the tools of the model
    open_witness: OpenWitness | None = None  # starts watching for changes on the computer; None if nothing can
    relief: FallbackModel | None = None  # a second model, which may take over if the first is stuck
