"""Everything that the loop works with; each part behind a protocol or replaceable by a fake."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

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
    """Who approves actions, and whom the model can ask."""

    async def ask(self, question: str) -> str | None:
        """The reply to a question of the model; None when nobody is there."""
        ...

    async def permit(self, question: str) -> bool:
        """Whether the person says yes to a question of the program's own; no when nobody is there."""
        ...


class ToolFailedError(Exception):
    """A tool could not do what it was called for; the message goes to the model and the person."""


class Tools(Protocol):
    """Tools that the model may call besides the desktop; every call passes policy and consent first."""

    @property
    def names(self) -> Collection[str]:
        """What they are called."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call one of them; its result as text. Raises ToolFailedError: it failed."""
        ...


class NoTools:
    """None are configured."""

    names: Collection[str] = ()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:  # noqa: ARG002 -- the protocol's
        """There is nothing to call."""
        raise ToolFailedError(f"there is no tool named {name}")


@dataclass(frozen=True, slots=True)
class RunContext:
    """What one run works with."""

    observer: Observer  # looks at the screen
    hand: Hand  # carries out what touches the desktop
    actor: Actor  # the model that decides
    history: History  # what it is shown of the past
    consent: Consent  # who decides what may be done
    person: Person  # whom the model can ask
    stop: StopSwitch  # ends everything
    tools: Tools = field(default_factory=NoTools)  # what the model may call
    open_witness: OpenWitness | None = None  # begins to watch what changes on the computer; None where nobody can
    relief: FallbackModel | None = None  # a second model, which may take over where the first is stuck
