"""Short ways to a plan and its command line, for the tests of this room."""

import json
from collections.abc import Mapping
from typing import Any

from serverctl.hardware.catalogue import imagine
from serverctl.hardware.facts import GIB, Cpu, Gpu, Hardware, Link
from serverctl.models.find import find_model
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.render import Command, render
from serverctl.planning import plan_for
from serverctl.vllm.capabilities import snapshot

NEW, OLD, CPU = "0.33.0", "0.19.1", "0.32.0-cpu"
MODELS = ("MAI-UI-2B", "MAI-UI-8B", "MAI-UI-32B")
PRESETS = (
    "latency",
    "balanced",
    "throughput",
    "debug",
    "long-context",
    "memory-constrained",
    "reasoning",
    "speculative",
)
#: The cards of the planning table of vLLM by card.
TABLE_CARDS = (
    "t4",
    "l4",
    "a10g",
    "rtx-3060",
    "rtx-3090",
    "rtx-4090",
    "rtx-5090",
    "l40s",
    "a100-40",
    "a100-80",
    "h100",
    "h200",
    "b200",
)


def card(
    gib: float = 24.0, free: float | None = None, sm: int | None = 89, index: int = 0, name: str = "a card", **more: Any
) -> Gpu:
    """A card of some size, with as much free memory."""
    capability = None if sm is None else (sm // 10, sm % 10)
    fields: dict[str, Any] = {"vendor": "nvidia", "uuid": f"GPU-{index}", "display": False, **more}
    free_bytes = None if free is None else round(free * GIB)
    return Gpu(
        index, name, total_bytes=round(gib * GIB), free_bytes=free_bytes, compute_capability=capability, **fields
    )


def machine(*cards: Gpu, link: Link | None = None, free: float = 30.0) -> Hardware:
    """A machine with some cards, every pair joined alike, and some free main memory in GiB."""
    links = tuple((a.index, b.index, link) for a in cards for b in cards if a.index < b.index and link)
    return Hardware(cards, Cpu("a processor", 8, "x86_64", ("avx2",), 64 * GIB, round(free * GIB)), None, links)


def plan(
    where: str | Hardware, model: str | None = "MAI-UI-8B", preset: str | None = None, vllm: str = NEW, **goal: Any
) -> Plan:
    """A plan for a card's name (with its number: "h100*4") or some hardware."""
    if isinstance(where, str):
        name, _, count = where.partition("*")
        where = imagine(name, int(count or 1))
    return plan_for(where, Goal(model=model, preset=preset, **goal), vllm)


def command(made: Plan, vllm: str = NEW) -> Command:
    """Its command on some vLLM."""
    return render(made, snapshot(vllm), 8000)


def flags(made: Plan, vllm: str = NEW) -> dict[str, Any]:
    """The flags of its command by name; JSON values parsed, None for a switch."""
    found: dict[str, Any] = {}
    for line in command(made, vllm).lines:
        value = line.value
        found[line.flag] = json.loads(value) if value and value.startswith("{") else value
    return found


def env(made: Plan) -> Mapping[str, str]:
    """Its variables without their reasons."""
    return {name: value for name, (value, _) in made.env.items()}


__all__ = ["GIB", "find_model"]
