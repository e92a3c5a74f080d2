"""Cards: which can serve, which are alike, how much of them is free, and into how many a model can be split."""

import math

from serverctl.hardware.facts import GIB, Gpu
from serverctl.models.model import Model
from serverctl.plan.presets import Preset

#: What vLLM must find free beyond what it is told to use, or it refuses to start ("Free memory on device ... is less
#: than desired"), GiB.
_MARGIN_GIB = 0.3


def groups(cards: tuple[Gpu, ...]) -> list[tuple[Gpu, ...]]:
    """Cards that are alike, the best kind first: parallel cards must be alike.

    The most memory counts; kinds within a tenth of it are told apart by their generation. In a group, the card with the
    most room comes first.
    """
    kinds: dict[tuple[str, int], list[Gpu]] = {}
    for gpu in cards:
        kinds.setdefault((gpu.name, round(gpu.total_bytes / GIB)), []).append(gpu)
    most = max(gpu.total_bytes for gpu in cards)

    def worth(kind: list[Gpu]) -> tuple[bool, int, int, int]:
        gpu, near = kind[0], kind[0].total_bytes >= 0.9 * most
        return near, gpu.sm or 0 if near else 0, gpu.total_bytes, len(kind)

    ordered = sorted(kinds.values(), key=worth, reverse=True)
    return [tuple(sorted(kind, key=lambda gpu: (-_room(gpu), gpu.index))) for kind in ordered]


def _room(gpu: Gpu) -> int:
    """What a server could have of a card, in GiB: a display keeps some, and so do other programs."""
    whole = gpu.total_bytes * (0.88 if gpu.display else 0.92)
    return int(whole if gpu.free_bytes is None else min(whole, gpu.free_bytes)) // GIB


def best_group(cards: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """The best kind of card among mixed ones."""
    return groups(cards)[0]


def free_share(cards: tuple[Gpu, ...]) -> float | None:
    """The largest utilisation that vLLM accepts with what is free now on the fullest of some cards."""
    shares = [share_of(gpu.free_bytes / GIB, gpu.total_gib) for gpu in cards if gpu.free_bytes is not None]
    return max(0.05, min(shares)) if shares else None


def share_of(free_gib: float, total_gib: float) -> float:
    """floor((free - margin) / total) in hundredths: what may be asked for of a card with some memory free."""
    return math.floor((free_gib - _MARGIN_GIB) / total_gib * 100 + 1e-6) / 100


def tensor_parallel_sizes(model: Model, cards: int) -> tuple[int, ...]:
    """The sizes that divide the model's heads: every card gets whole heads of the text and of the vision tower."""
    text, vision = model.shape.text, model.shape.vision
    return tuple(
        size
        for size in (1, 2, 4, 8, 16)
        if size <= cards
        and text.heads % size == 0
        and (text.kv_heads % size == 0 or size % text.kv_heads == 0)
        and (vision is None or vision.heads % size == 0)
    )


def split(cards: tuple[Gpu, ...], group: tuple[Gpu, ...], preset: Preset) -> tuple[tuple[Gpu, ...], ...]:
    """Independent servers of as many cards as one server takes: several only where many agents are wanted."""
    size = len(cards)
    if not preset.replicas or size > len(group) // 2:
        return (cards,)
    return tuple(group[start : start + size] for start in range(0, len(group) - size + 1, size))
