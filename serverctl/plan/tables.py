"""What a plan is made from: plain values that `serverctl.planning` reads, so that nothing here touches the disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foundation.errors import UsageError
from serverctl.hardware.catalogue import plain_name
from serverctl.hardware.facts import Gpu, Hardware
from serverctl.models.model import Model
from serverctl.plan.goal import Goal
from serverctl.plan.memory import Measured, MemoryTable
from serverctl.plan.settings import check_value


@dataclass(frozen=True, slots=True)
class Preset:
    """One preset of `configs/presets/presets.toml`, whose comments say what each preference means."""

    name: str  # what `--preset` takes
    about: str  # what it is for
    settings: Mapping[str, Any] = field(default_factory=dict)  # automatic values of knobs
    env: Mapping[str, str] = field(default_factory=dict)  # environment variables
    least_sm: int = 0
    tensor_parallel_over_nvlink: bool = False
    replicas: bool = False
    leave: Sequence[str] = ()
    single_card: bool = False
    fp8_kv: bool = False
    small_weights: bool = False
    least_context: int = 0
    longest_context: bool = False


@dataclass(frozen=True, slots=True)
class Presets:
    """All presets by name."""

    default: str
    by_name: Mapping[str, Preset]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Presets":
        """The presets in the document of their file."""
        entries = {name: entry for name, entry in document.items() if isinstance(entry, dict)}
        return cls(document["default"], {name: _preset(name, entry) for name, entry in entries.items()})

    def get(self, name: str | None) -> Preset:
        """Return a preset by its name, or the default one. Raises UsageError for an unknown name."""
        found = self.by_name.get(name or self.default)
        if found is None:
            raise UsageError(f"There is no preset {name!r}.", f"Presets are: {', '.join(self.by_name)}.")
        return found


def _preset(name: str, entry: Mapping[str, Any]) -> Preset:
    settings = {knob: check_value(knob, value, f"preset {name}") for knob, value in entry.get("settings", {}).items()}
    return Preset(name, entry["about"], settings, entry.get("env", {}), **entry.get("prefer", {}))


@dataclass(frozen=True, slots=True)
class CardLimits:
    """What a card is given, before the model is known."""

    longest_edge: int  # pixel budget of one screenshot
    max_model_len: int  # the longest context worth having
    max_num_seqs: int  # requests at a time
    max_num_batched_tokens: int  # tokens of one prefill step
    source: str  # where the values come from, for the plan
    gpu_memory_utilization: float | None = None  # only for cards with a value of their own


@dataclass(frozen=True, slots=True)
class LimitTable:
    """Limits by memory, the smallest tier first, and those of single cards by their plain names."""

    tiers: tuple[Mapping[str, Any], ...]
    own: Mapping[str, Mapping[str, Any]]

    def limits_for(self, gpu: Gpu) -> CardLimits:
        """Return a card's limits: its own entry wins over the tier of its memory."""
        tier = next((tier for tier in self.tiers if gpu.total_gib < tier["below_gib"]), self.tiers[-1])
        values = {"source": "configs/gpus/tiers.toml", **tier, **self.own.get(plain_name(gpu.name), {})}
        return CardLimits(**{name: value for name, value in values.items() if name in CardLimits.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class Tables:
    """What is known beforehand."""

    presets: Presets
    memory: MemoryTable  # seeds of the memory formula, and the shares of memory
    limits: LimitTable
    measured: Mapping[str, Measured]  # what real starts took, by `measurement_key`; replaces the seeds
    models: tuple[Model, ...]  # ours, the most wanted first, for a goal that names none


@dataclass(frozen=True, slots=True)
class Task:
    """One plan to make: what is there, what is wanted, which vLLM will serve, and what is known beforehand."""

    hardware: Hardware
    goal: Goal
    preset: Preset
    vllm: str
    tables: Tables
