"""Goals, reasons and plans, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from serverctl.hardware.facts import Gpu, Vendor
from serverctl.models.model import SPOKEN, Model, Precision
from serverctl.plan.memory import Budget
from serverctl.plan.settings import Settings


@dataclass(frozen=True, slots=True)
class Goal:
    """The server that the user asked for."""

    model: str | None = None  # a known name, a repository or a folder; None to choose by memory
    preset: str | None = None  # one of `configs/presets/presets.toml`; None for the default
    #: the user's own settings, which nothing changes
    overrides: Mapping[str, Any] = field(default_factory=dict)
    extra: tuple[str, ...] = ()  # the user's own vLLM flags, passed on unchanged
    screen: tuple[int, int] = (1920, 1080)  # width and height of the agent's screen in pixels
    #: values that a repair or a tuning run chose instead of the planned ones
    adjustments: Mapping[str, Any] = field(default_factory=dict)
    adjusted_because: Mapping[str, str] = field(default_factory=dict)  # the reasons, by setting
    force: bool = False  # allow plans that are not recommended (a large model on the CPU)
    kv_bytes: int | None = None  # predict for this KV cache of a card instead of the estimated one

    def adjusted(self, values: Mapping[str, Any], because: Mapping[str, str]) -> "Goal":
        """Return a copy with more adjustments. New ones replace earlier ones of the same settings."""
        reasons = {**self.adjusted_because, **because}
        return replace(self, adjustments={**self.adjustments, **values}, adjusted_because=reasons)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a setting has its value, and the source of that reason. A repair may change `automatic` values."""

    text: str
    source: str
    automatic: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """The servers to start, and the reasons."""

    model: Model  # the model, with the checkpoint that is served
    precision: Precision  # of the weights
    vendor: Vendor  # of the hardware
    preset: str  # the preset's name
    replicas: tuple[tuple[Gpu, ...], ...]  # the cards of each independent server; one empty tuple for the processor
    settings: Settings  # vLLM's settings
    reasons: Mapping[str, Reason]  # the reasons, by setting
    env: Mapping[str, tuple[str, Reason]]  # environment variables beside the flags, with their reasons
    budget: Budget  # the memory of one card
    context: int  # tokens of prompt and answer together that a request can count on
    extra: tuple[str, ...] = ()  # the user's own flags
    warnings: tuple[str, ...] = ()  # to read before the start
    notes: tuple[str, ...] = ()  # alternatives and expectations

    @property
    def weights(self) -> str:
        """The precision of the weights in words."""
        return SPOKEN[self.precision] if self.computed == self.precision else self.computed

    @property
    def computed(self) -> str:
        """The precision of the weights on the card: 16-bit weights become 32-bit ones with the dtype float32."""
        return "32-bit" if self.settings.dtype == "float32" and self.precision == "16-bit" else self.precision

    @property
    def engines(self) -> int:
        """The engines behind each server's port. Each has a KV cache of its own."""
        return self.settings.data_parallel_size or 1

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The cards of the first replica."""
        return self.replicas[0]

    @property
    def max_concurrency(self) -> float:
        """Number of full-context requests that the KV cache of one replica holds."""
        return self.budget.concurrency(self.context)
