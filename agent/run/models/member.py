"""The models that can decide a run's steps: its own, and one that may take over."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agent.model.endpoint import Endpoint
from agent.run.models.actor import Actor
from agent.run.models.history import History
from agent.run.models.settings import RunSettings
from agent.run.observing.observe import Observer
from agent.safety.leaving import Leaving


@dataclass(frozen=True, slots=True)
class Member:
    """A model that can decide steps, with what it sees and what it is shown of the past."""

    role: Literal["actor", "relief"]
    observer: Observer
    actor: Actor
    history: History
    settings: RunSettings
    elsewhere: bool = False  # what it is sent leaves this machine for a model that only helps out
    blinkered: bool = False  # windows are hidden from it, which what went wrong may quote


@dataclass(frozen=True, slots=True)
class Relief:
    """A second model that may take over."""

    endpoint: Endpoint
    join: Callable[[], Member]  # makes it ready; called once, when it may take over for the first time
    leaving: Leaving = Leaving()  # noqa: RUF009 -- frozen
    steps: int = 5  # it hands back after so many
    bundle: str = ""  # the run's folder
