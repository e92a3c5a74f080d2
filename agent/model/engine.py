"""What drives a run: an endpoint that is ready, and what is known of it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from agent.model.asking import ModelClient, ServerCondition
from agent.model.endpoint import Endpoint

ENGINE_NAMES = ("auto", "vllm", "literal", "endpoint")


@dataclass(frozen=True, slots=True)
class Engine:
    """An endpoint that is ready, its name for the person, and how to let it go."""

    name: str
    endpoint: Endpoint  # what is asked
    close: Callable[[], None] = lambda: None  # lets it go
    remark: str = ""  # what the person should know
    family: str | None = None  # the model's family, where the engine knows it
    condition: Callable[[], ServerCondition] | None = None  # asks after a server of ours; None for others
    client: ModelClient | None = None  # asks it, where that is in this process; None for what is asked at its address
    load: Callable[[], str] | None = None  # how busy a server of ours is, in a few words; None for others


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine a person asked for."""

    name: str = "auto"
    url: str | None = None  # of an endpoint
    model: str | None = None
    api_key: str = field(default="", repr=False)  # for that endpoint
    preset: str | None = None  # for a server of ours
    beside: tuple[str, ...] = ()  # models that servers of ours will serve beside it
