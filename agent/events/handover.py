"""The events of a second model that takes over where the first one is stuck."""

from dataclasses import dataclass

from agent.events.base import Happened
from agent.events.fates import Allowed, handed_over_words
from agent.screen.encode import EncodedImage


@dataclass(frozen=True, slots=True)
class ReliefAsked(Happened):
    """The person is asked whether another model, elsewhere, may take over, and is shown what it would be sent first.

    Args:
        step: the next one.
        model: its name at the endpoint.
        host: where it is.
        steps: for how many steps.
        why: why it is needed, as a clause.
        image: the first picture that it would see; null where it sees none.
        file: where the run's folder has that picture; empty for none.
    """

    step: int
    model: str
    host: str
    steps: int
    why: str
    image: EncodedImage | None
    file: str

    @property
    def words(self) -> str:
        """What is asked, on one line."""
        shown = f"; it would be sent {self.file} first" if self.file else ""
        return f"may {self.model or 'another model'} at {self.host} take over for {self.steps} steps? {self.why}{shown}"


@dataclass(frozen=True, slots=True)
class HandedOver(Happened):
    """Another model takes over before this step.

    Args:
        role: its role; "relief".
        model: its name at the endpoint.
        host: where it is.
        why: why the one before it does not get on, as a clause.
        steps: it hands back after so many.
        allowed: what lets it: "local" for a model on this machine, "policy" or "person" for one elsewhere.
    """

    step: int
    role: str
    model: str
    host: str
    why: str
    steps: int
    allowed: Allowed

    @property
    def words(self) -> str:
        """What happened, on one line."""
        return handed_over_words(self.model, self.host, self.steps, self.why, self.allowed)


@dataclass(frozen=True, slots=True)
class HandedBack(Happened):
    """The run's own model goes on from this step; `why` the other one does not, as a clause."""

    step: int
    why: str

    @property
    def words(self) -> str:
        """What happened, on one line."""
        return f"handed back: {self.why}"
