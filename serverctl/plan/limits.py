"""What a card of some size is given, before the model is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from serverctl.hardware.catalogue import plain_name
from serverctl.hardware.facts import Gpu


@dataclass(frozen=True, slots=True)
class CardLimits:
    """The limits of one card."""

    longest_edge: int  # pixel budget of one screenshot
    max_model_len: int  # the longest context worth having
    max_num_seqs: int  # requests at a time
    max_num_batched_tokens: int  # tokens of one prefill step
    source: str  # where the values come from, for the plan
    gpu_memory_utilization: float | None = None  # where the card has one of its own


@dataclass(frozen=True, slots=True)
class LimitTable:
    """Limits by memory, the smallest tier first, and the cards (by their plain names) that have some of their own."""

    tiers: tuple[Mapping[str, Any], ...]
    own: Mapping[str, Mapping[str, Any]]

    def limits_for(self, gpu: Gpu) -> CardLimits:
        """What a card is given, by its memory, and by its own entry where it has one."""
        tier = next((tier for tier in self.tiers if gpu.total_gib < tier["below_gib"]), self.tiers[-1])
        values = {"source": "configs/gpus/tiers.toml", **tier, **self.own.get(plain_name(gpu.name), {})}
        return CardLimits(**{name: value for name, value in values.items() if name in CardLimits.__dataclass_fields__})
