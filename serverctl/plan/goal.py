"""Goals, reasons and plans, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from serverctl.hardware.facts import Gpu, Vendor
from serverctl.models.model import Model, Precision
from serverctl.plan.memory import Budget
from serverctl.plan.settings import Settings


@dataclass(frozen=True, slots=True)
class Goal:
    """The server that a person wants."""

    model: str | None = None  # a known name, a repository or a folder; None to choose by memory
    preset: str | None = None  # one of `configs/presets/presets.toml`; None for the default
    #: the person's own values of knobs; never changed by anything
    overrides: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[str, ...] = ()  # the person's own vLLM flags, passed on as they are
    screen: tuple[int, int] = (1920, 1080)  # width and height in pixels of the screen that will be looked at
    #: automatic values that a repair or a tuning put in place of planned ones
    adjustments: Mapping[str, Any] = field(default_factory=dict)
    adjusted_because: Mapping[str, str] = field(default_factory=dict)  # why, by knob
    force: bool = False  # plan also what is not advised (a large model on a plain processor)

    def adjusted(self, values: Mapping[str, Any], because: Mapping[str, str]) -> "Goal":
        """The same with more adjustments; they win over earlier ones of the same knobs."""
        reasons = {**self.adjusted_because, **because}
        return replace(self, adjustments={**self.adjustments, **values}, adjusted_because=reasons)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a knob has its value, and where that comes from. `automatic` values may be changed by a repair."""

    text: str
    source: str
    automatic: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start, and why."""

    model: Model  # what is served (by which of its checkpoints, too)
    precision: Precision  # how its weights are held
    vendor: Vendor  # what it runs on
    preset: str  # the preset's name
    replicas: tuple[tuple[Gpu, ...], ...]  # the cards of each independent server; one empty tuple for the processor
    settings: Settings  # the values of the knobs
    reasons: Mapping[str, Reason]  # why, by knob
    env: Mapping[str, tuple[str, Reason]]  # environment variables beside the flags, with their reasons
    budget: Budget  # the memory of one card
    context: int  # tokens of prompt and answer together that a request can count on
    extra: tuple[str, ...] = ()  # the person's own flags
    warnings: tuple[str, ...] = ()  # what a person should know before starting it
    notes: tuple[str, ...] = ()  # what else could be done, and what to expect

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The cards of the first replica."""
        return self.replicas[0]

    @property
    def max_concurrency(self) -> float:
        """Requests of the full context that the KV cache of one replica holds at a time."""
        return self.budget.concurrency(self.context)
