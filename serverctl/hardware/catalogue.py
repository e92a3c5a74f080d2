"""Cards by name and limits by size, from `configs/gpus`: plans for hardware that is not in this machine."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from foundation.configs import load_config
from foundation.errors import UsageError
from serverctl.hardware.facts import GIB, Cpu, Driver, Gpu, Hardware, Link

#: More cards than this are in no machine that one server runs on.
MOST_CARDS = 64
#: The driver that imagined hardware has: new enough for vLLM's wheel (CUDA 13).
IMAGINED_DRIVER = Driver("580.95.05", (13, 0))


@dataclass(frozen=True, slots=True)
class CardLimits:
    """What a card of some size is given, before the model is known (`configs/gpus/tiers.toml`).

    Args:
        longest_edge: pixel budget of one screenshot.
        max_model_len: the longest context worth having.
        max_num_seqs: requests at a time.
        max_num_batched_tokens: tokens of one prefill step.
        gpu_memory_utilization: where the card has one of its own.
        source: where the values come from, for the plan.
    """

    longest_edge: int
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float | None
    source: str


@dataclass(frozen=True, slots=True)
class CardTable:
    """The shipped tables of `configs/gpus`: cards by name, and limits by size."""

    cards: tuple[Mapping[str, Any], ...]
    tiers: tuple[Mapping[str, Any], ...]

    def limits_for(self, gpu: Gpu) -> CardLimits:
        """What a card is given, by its memory, and by its own entry where it has one."""
        tier = next((tier for tier in self.tiers if gpu.total_gib < tier["below_gib"]), self.tiers[-1])
        card = next((card for card in self.cards if _is(card, gpu.name)), {})
        own = card.get("limits", {})
        source = f"configs/gpus/cards.toml, {card['key']}" if own else "configs/gpus/tiers.toml"
        values = {"gpu_memory_utilization": None, **tier, **own, "source": source}
        return CardLimits(**{field.name: values[field.name] for field in fields(CardLimits)})


@cache
def card_table() -> CardTable:
    """The shipped tables."""
    return CardTable(tuple(load_config("gpus/cards.toml")["card"]), tuple(load_config("gpus/tiers.toml")["tier"]))


def card_names() -> list[str]:
    """The names that `--gpu` takes."""
    return [card["key"] for card in card_table().cards]


def imagine(name: str, count: int = 1) -> Hardware:
    """A machine with some cards of one kind, or of several joined with a plus sign: "4090+3060".

    Raises:
        UsageError: no such card is known, or they are of several makers.
    """
    if not 1 <= count <= MOST_CARDS:
        raise UsageError(f"A machine cannot have {count} cards.", f"--gpus takes a number from 1 to {MOST_CARDS}.")
    if not name.strip():
        raise UsageError("The name of the card is empty.", f"Known cards: {', '.join(card_names())}, cpu.")
    if "," in name:
        joined_names = "+".join(part.strip() for part in name.split(","))
        raise UsageError(f"{name!r} is no card.", f"Write {joined_names} for cards of one machine.")
    cpu = Cpu("imagined", 16, "x86_64", ("avx2", "avx512f"), 64 * GIB, 56 * GIB)
    if _normal(name) in ("cpu", "none"):
        return Hardware((), cpu, None, imagined=True)
    names = [part for part in name.split("+") for _ in range(count)]
    cards = [_card(part) for part in names]
    if len({card["vendor"] for card in cards}) > 1:
        raise UsageError(f"{name} names cards of several makers.", "One server uses cards of one maker only.")
    gpus = tuple(_gpu(card, index) for index, card in enumerate(cards))
    joined = len({card["key"] for card in cards}) == 1 and cards[0]["nvlink"]
    kind: Link = "nvlink" if joined else "pcie"
    links = tuple((a, b, kind) for a in range(len(gpus)) for b in range(a + 1, len(gpus)))
    driver = IMAGINED_DRIVER if gpus[0].vendor == "nvidia" else None
    return Hardware(gpus, cpu, driver, links, imagined=True)


def _normal(text: str) -> str:
    plain = re.sub(r"nvidia|geforce|tesla|[^a-z0-9]", "", text.casefold())
    return plain.removeprefix("rtx")


def _names(card: Mapping[str, Any]) -> set[str]:
    return {_normal(name) for name in (card["key"], card["name"], *card.get("aliases", ()))}


def _is(card: Mapping[str, Any], name: str) -> bool:
    return _normal(name) in _names(card)


def _card(name: str) -> Mapping[str, Any]:
    found = next((card for card in card_table().cards if _is(card, name)), None) or _sized(name)
    if found is not None:
        return found
    near = difflib.get_close_matches(name.casefold(), card_names(), 3, 0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known cards: {', '.join(card_names())}, cpu."
    raise UsageError(f"No card named {name!r} is known.", hint)


def _sized(name: str) -> Mapping[str, Any] | None:
    """A card named with its marketing size ("T4 16GB", "H100 80GB"), which is a little above what its driver says."""
    parts = re.fullmatch(r"(.*?)([0-9]{1,4}) *gi?b?", name.strip(), re.IGNORECASE)
    if parts is None:
        return None
    size = int(parts[2])
    cards = (card for card in card_table().cards if _is(card, parts[1]))
    return next((card for card in cards if 0.85 * size <= card["memory_gib"] <= size), None)


def _gpu(card: Mapping[str, Any], index: int) -> Gpu:
    capability = card.get("compute_capability")
    return Gpu(
        index=index,
        name=card["name"],
        vendor=card["vendor"],
        total_bytes=round(card["memory_gib"] * GIB),
        free_bytes=None,
        uuid="",
        compute_capability=None if capability is None else (capability[0], capability[1]),
        display=card.get("display", False),
    )
