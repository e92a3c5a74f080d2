"""The inputs of a plan, as plain values. `serverctl.planning` reads them from disk, so the planner needs no files."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foundation.errors import UsageError
from serverctl.hardware.facts import Gpu, Hardware
from serverctl.models.model import Model
from serverctl.plan.goal import Goal
from serverctl.plan.memory import Measured, ProcessorTable, Seeds
from serverctl.plan.quantization import QuantTable, Wish
from serverctl.plan.settings import check_value


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
