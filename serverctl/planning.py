"""Loads the inputs of a plan and makes it: the entry point to `plan/`, which itself reads no files.

The inputs are the shipped tables, this machine's measurements and the models.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache

from foundation.configs import load_config
from foundation.errors import MaiError
from serverctl.earlier_starts import read_measurements
from serverctl.hardware.catalogue import cards, plain_name, plain_names
from serverctl.hardware.facts import Gpu, Hardware
from serverctl.models.find import find_model
from serverctl.models.model import Model
from serverctl.plan.colocation import Part, plan_together
from serverctl.plan.decide import make_plan
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.kinds.gaudi import PLUGIN_ENV
from serverctl.plan.memory import ProcessorTable, Seeds
from serverctl.plan.quantization import QuantTable
from serverctl.plan.speed import SpeedTable
from serverctl.plan.tables import CardLimits, Presets, Tables

#: Models to choose from if the user names none; the first that fits well wins. 8B needs a fraction of 32B's time.
AUTOMATIC_MODELS = ("MAI-UI-8B", "MAI-UI-2B")


@cache
def load_presets() -> Presets:
    """Load the shipped presets."""
    return Presets.read(load_config("presets/presets.toml"))


@cache
def speed_table() -> SpeedTable:
    """Load the shipped numbers for speed estimates."""
    return SpeedTable(**load_config("speed.toml"))


@cache
def load_limits() -> Callable[[Gpu], CardLimits]:
    """Load the shipped limits by memory tier and by card, and return a function from a card to its limits."""
    tiers, listed = load_config("gpus/tiers.toml")["tier"], [card for card in cards() if card.get("limits")]

    @cache
    def limits_for(gpu: Gpu) -> CardLimits:
        tier = next((tier for tier in tiers if gpu.total_gib < tier["below_gib"]), tiers[-1])
        values = {"source": "configs/gpus/tiers.toml", **tier}
        for card in listed:
            if plain_name(gpu.name) in plain_names(card):
                values |= {**card["limits"], "source": f"configs/gpus/cards.toml, {card['key']}"}
        del values["below_gib"]
        return CardLimits(**values)

    return limits_for


def load_tables(models: tuple[Model, ...]) -> Tables:
    """Load all tables, with the current measurements."""
    memory, methods = load_config("memory.toml"), QuantTable.read(load_config("vllm/quantization.toml"))
    seeds, processor = Seeds(**memory["seeds"]), ProcessorTable(**memory["cpu"])
    presets, share, measured = load_presets(), memory["utilization"], read_measurements()
    texts = load_config("plan.toml")
    environ = {name: value for name, value in os.environ.items() if name in PLUGIN_ENV}
    limits = load_limits()
    return Tables(presets, seeds, share, processor, limits, measured, models, methods, **texts, environ=environ)


def plan_for(hardware: Hardware, goal: Goal, vllm: str) -> Plan:
    """Return the plan for the hardware, the goal and the version of vLLM.

    Raises:
        CannotPlanError: nothing works; the message gives the reason and the alternatives.
        UsageError: the model or preset does not exist.
        EnvironmentLacksError: the hub is needed and cannot be reached.
    """
    wished = goal.adjustments.get("model") or goal.model
    model = find_model(str(wished)) if wished else None
    return make_plan(hardware, goal, vllm, model, load_tables(_own_models(all_of_them=model is None)))


def plans_for(hardware: Hardware, goals: Sequence[Goal], vllm: str) -> tuple[Part, ...]:
    """Return plans for several models at the same time. Raises as `plan_for`, also if they do not fit together."""
    return plan_together(hardware, goals, lambda some, goal: plan_for(some, goal, vllm))


def _own_models(all_of_them: bool) -> tuple[Model, ...]:
    """Return the models to choose from. Broken files raise only if the model could be chosen."""
    found: list[Model] = []
    for name in AUTOMATIC_MODELS:
        try:
            found.append(find_model(name, allow_network=False))
        except MaiError:
            if all_of_them:
                raise
    return tuple(found)
