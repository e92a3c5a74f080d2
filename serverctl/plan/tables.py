"""What a plan is made from: plain values that `serverctl.planning` reads, so that nothing here touches the disk."""

from collections.abc import Mapping
from dataclasses import dataclass

from serverctl.hardware.facts import Hardware
from serverctl.models.model import Model
from serverctl.plan.goal import Goal
from serverctl.plan.limits import LimitTable
from serverctl.plan.memory import Measured, MemoryTable
from serverctl.plan.presets import Preset, Presets


@dataclass(frozen=True, slots=True)
class Tables:
    """What is known beforehand."""

    presets: Presets  # by name
    memory: MemoryTable  # seeds of the memory formula, and the shares of memory
    limits: LimitTable  # what a card is given
    measured: Mapping[str, Measured]  # what real starts took, by `measurement_key`; replaces the seeds
    models: tuple[Model, ...]  # our own, the most wanted first: chosen from where a person names none


@dataclass(frozen=True, slots=True)
class Task:
    """One plan to make: what is there, what is wanted, which vLLM will serve, and what is known beforehand."""

    hardware: Hardware
    goal: Goal
    preset: Preset
    vllm: str
    tables: Tables
