"""Goals, reasons and plans, and the inputs of a plan, as plain values. `serverctl.planning` reads these from disk."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foundation.errors import UsageError
from serverctl.hardware.facts import Gpu, Hardware, Vendor
from serverctl.models.model import SPOKEN, Model, Precision
from serverctl.plan.memory import Budget, Measured, ProcessorTable, Seeds
from serverctl.plan.quantization import QuantTable, Wish
from serverctl.plan.settings import Settings, check_value


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


@dataclass(frozen=True, slots=True)
class Preset:
    """One preset of `configs/presets/presets.toml`, whose comments explain each preference."""

    name: str  # the value of `--preset`
    about: str  # its purpose
    settings: Mapping[str, Any] = field(default_factory=dict)  # automatic settings
    env: Mapping[str, str] = field(default_factory=dict)  # environment variables
    least_sm: int = 0
    tensor_parallel_over_nvlink: bool = False
    replicas: bool = False
    spread: bool = False
    leave: Sequence[str] = ()
    single_card: bool = False
    fp8_kv: bool = False
    small_weights: bool = False
    least_context: int = 0
    answer_tokens: int = 0
    longest_context: bool = False


@dataclass(frozen=True, slots=True)
class Presets:
    """All presets by name."""

    default: str
    by_name: Mapping[str, Preset]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Presets":
        """Build the presets from the parsed TOML document."""
        found = {}
        for name, entry in document.items():
            if isinstance(entry, dict):
                own = entry.get("settings", {}).items()
                settings = {knob: check_value(knob, value, f"preset {name}") for knob, value in own}
                found[name] = Preset(name, entry["about"], settings, entry.get("env", {}), **entry.get("prefer", {}))
        return cls(document["default"], found)

    def get(self, name: str | None) -> Preset:
        """Return a preset by its name, or the default one. Raises UsageError for an unknown name."""
        found = self.by_name.get(self.default if name is None else name)
        if found is None:
            near = difflib.get_close_matches((name or "").casefold(), self.by_name, 2, 0.6)
            hint = f"Did you mean {' or '.join(near)}? " if near else ""
            raise UsageError(f"There is no preset {name!r}.", f"{hint}Presets are: {', '.join(self.by_name)}.")
        return found


@dataclass(frozen=True, slots=True)
class CardLimits:
    """Limits of a card that do not depend on the model (`configs/gpus/tiers.toml`)."""

    longest_edge: int  # pixel budget of one screenshot
    max_model_len: int  # the longest useful context, tokens
    max_num_seqs: int  # concurrent requests
    max_num_batched_tokens: int  # tokens of one prefill step
    source: str  # the file that the values come from
    gpu_memory_utilization: float | None = None  # only for cards that need a specific value


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that every plan uses."""

    presets: Presets
    seeds: Seeds  # estimates for the memory formula
    utilization: Mapping[str, float]  # of cards: "headless", and with a "display"
    processor: ProcessorTable  # limits of a server on the CPU
    limits_for: Callable[[Gpu], CardLimits]
    measured: Mapping[str, Measured]  # memory of real starts by `measurement_key`; replaces the estimates
    models: tuple[Model, ...]  # the known models in order of preference, for a goal that names none
    quantization: QuantTable
    warnings: Mapping[str, str]  # sentences of `configs/plan.toml`
    notes: Mapping[str, str]
    environ: Mapping[str, str] = field(default_factory=dict)  # the user's variables that a plan follows


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """The inputs of one plan: hardware, goal, preset, version of vLLM, and tables."""

    hardware: Hardware
    goal: Goal
    preset: Preset
    vllm: str
    tables: Tables

    def quantization_wish(self, sm: int | None) -> Wish:
        """Return the quantisation that the user asks for on cards of a compute capability."""
        own = self.goal.overrides
        named = own.get("quantization") or "none" if "quantization" in own else None
        return Wish(named, self.vllm, self.hardware.vendor, sm, self.goal.extra)
