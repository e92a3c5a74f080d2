"""Describes cards by name, from `configs/gpus`, for plans for other hardware than this machine's."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import isclose
from types import MappingProxyType
from typing import Any

from foundation.configs import load_config
from foundation.errors import UsageError
from serverctl.hardware.facts import GIB, Cpu, Driver, Gpu, Hardware, Link

#: The maximum number of cards in one machine.
MOST_CARDS = 64
#: The driver of imagined hardware: new enough for vLLM's wheel (CUDA 13).
IMAGINED_DRIVER = Driver("580.95.05", (13, 0))


def cards() -> list[Mapping[str, Any]]:
    """Return the entries of `configs/gpus/cards.toml`."""
    entries: list[Mapping[str, Any]] = load_config("gpus/cards.toml")["card"]
    return entries


def card_names() -> list[str]:
    """Return the names that `--gpu` accepts."""
    return [card["key"] for card in cards()]


def imagine(name: str, count: int = 1, specs: Mapping[str, Any] = MappingProxyType({})) -> Hardware:
    """Return a machine with `count` cards of a kind, or of several kinds joined with a plus sign: "4090+3060".

    `specs` is the user's description of all cards by keys of `cards.toml`, which it overrides or replaces: memory_gib,
    compute_capability, bandwidth_gb_s. Raises UsageError for an unknown card that it does not describe sufficiently,
    and for cards of several makers.
    """
    if not 1 <= count <= MOST_CARDS:
        raise UsageError(f"A machine cannot have {count} cards.", f"--gpus takes a number from 1 to {MOST_CARDS}.")
    if not name.strip():
        raise UsageError("The name of the card is empty.", f"Known cards: {', '.join(card_names())}, cpu.")
    if "," in name:
        joined_names = "+".join(part.strip() for part in name.split(","))
        raise UsageError(f"{name!r} is no card.", f"Write {joined_names} for cards of one machine.")
    cpu = Cpu("imagined", 16, "x86_64", ("avx2", "avx512f"), 64 * GIB, 56 * GIB)
    if plain_name(name) in ("cpu", "none"):
        return Hardware((), cpu, None, imagined=True)
    names = [part for part in name.split("+") for _ in range(count)]
    entries = [{**_card(part, specs), **specs} for part in names]
    if len({card["vendor"] for card in entries}) > 1:
        raise UsageError(f"{name} names cards of several makers.", "One server uses cards of one maker only.")
    gpus = tuple(_gpu(card, index) for index, card in enumerate(entries))
    joined = len({card["key"] for card in entries}) == 1 and entries[0]["nvlink"]
    bridge = entries[0].get("bridge", MOST_CARDS) if joined else 1
    kinds: tuple[Link, Link] = ("pcie", "nvlink")
    links = tuple((a, b, kinds[a // bridge == b // bridge]) for a, b in combinations(range(len(gpus)), 2))
    driver = IMAGINED_DRIVER if gpus[0].vendor == "nvidia" else None
    if host := entries[0].get("host"):
        cpu = Cpu("imagined", 16, host, (), 64 * GIB, 56 * GIB)
    return Hardware(gpus, cpu, driver, links, imagined=True)


@cache
def plain_name(text: str) -> str:
    """Return a card's name without maker and brand, in lower-case letters and digits only."""
    plain = re.sub(r"nvidia|geforce|tesla|[^a-z0-9]", "", text.casefold())
    return plain.removeprefix("rtx")


def plain_names(card: Mapping[str, Any]) -> set[str]:
    """Return all plain names of an entry."""
    return {plain_name(name) for name in (card["key"], card["name"], *card.get("aliases", ()))}


def is_listed(name: str) -> bool:
    """Return whether `configs/gpus/cards.toml` has a card of this name."""
    return any(_is(card, name) for card in cards()) or _sized(name) is not None


def with_data_sheet(gpu: Gpu) -> Gpu:
    """Add a card's bandwidth and compute rate, which no driver tells; unchanged if its name and size are not listed."""
    named = (card for card in cards() if _is(card, gpu.name))
    card = next((card for card in named if isclose(card["memory_gib"] * GIB, gpu.total_bytes, rel_tol=0.1)), None)
    if card is None:
        return gpu
    return replace(gpu, bandwidth_gb_s=card.get("bandwidth_gb_s"), tflops=card.get("tflops"))


def _is(card: Mapping[str, Any], name: str) -> bool:
    return plain_name(name) in plain_names(card)


def _card(name: str, specs: Mapping[str, Any]) -> Mapping[str, Any]:
    found = next((card for card in cards() if _is(card, name)), None) or _sized(name)
    if found is not None:
        return found
    if "memory_gib" in specs and "compute_capability" in specs:
        return {"key": name, "name": name.strip(), "vendor": "nvidia", "nvlink": False}
    if specs:
        missing = {"memory_gib": "--gpu-memory GIB", "compute_capability": "--gpu-capability 8.9"}
        flags = " and ".join(flag for entry, flag in missing.items() if entry not in specs)
        raise UsageError(
            f"No card named {name!r} is known, and its description is not complete.",
            f"Add {flags} (it takes --gpu-memory and --gpu-capability).",
        )
    near = difflib.get_close_matches(name.casefold(), card_names(), 3, 0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known cards: {', '.join(card_names())}, cpu."
    way = "Or say what it is: --gpu-memory GIB --gpu-capability 8.9 (and --gpu-bandwidth GB/s)."
    raise UsageError(f"No card named {name!r} is known.", f"{hint} {way}")


def _sized(name: str) -> Mapping[str, Any] | None:
    """Find a card by name and marketing size ("T4 16GB"), which is a little above the size that its driver reports."""
    parts = re.fullmatch(r"(.*?)([0-9]{1,4}) *gi?b?", name.strip(), re.IGNORECASE)
    if parts is None:
        return None
    size = int(parts[2])
    alike = (card for card in cards() if _is(card, parts[1]))
    return next((card for card in alike if 0.85 * size <= card["memory_gib"] <= size), None)


def _gpu(card: Mapping[str, Any], index: int) -> Gpu:
    capability = card.get("compute_capability")
    return Gpu(
        index, card["name"], card["vendor"], round(card["memory_gib"] * GIB), display=card.get("display", False),
        compute_capability=None if capability is None else (capability[0], capability[1]),
        bandwidth_gb_s=card.get("bandwidth_gb_s"), tflops=card.get("tflops"),
    )  # fmt: skip
