"""Groups identical cards: their free memory, and the ways to split a model over them."""

import math
from dataclasses import dataclass
from itertools import combinations

from serverctl.hardware.facts import GIB, Gpu, Hardware
from serverctl.models.model import Model
from serverctl.plan.goal import Preset

#: Free memory to leave beyond vLLM's share, GiB. With too little, vLLM does not start ("Free memory on device ... is
#: less than desired").
_MARGIN_GIB = 0.3


@dataclass(frozen=True, slots=True)
class Group:
    """Identical cards, as parallelism requires, the card with the most free memory first."""

    cards: tuple[Gpu, ...]

    @property
    def first(self) -> Gpu:
        """The card with the most free memory."""
        return self.cards[0]

    @property
    def smallest(self) -> Gpu:
        """The card with the least memory: a plan must fit on it."""
        return min(self.cards, key=lambda gpu: gpu.total_bytes)

    @property
    def name(self) -> str:
        """The cards as text: "2 x NVIDIA L4"."""
        return f"{len(self.cards)} x {self.first.name}" if len(self.cards) > 1 else self.first.name

    @property
    def display(self) -> bool:
        """Whether one of the cards drives a display."""
        return any(gpu.display for gpu in self.cards)

    @property
    def free_share(self) -> float | None:
        """The largest utilisation that vLLM accepts on the fullest card at the moment; None if unknown."""
        shares = [share_of(gpu.free_bytes / GIB, gpu.total_gib) for gpu in self.cards if gpu.free_bytes is not None]
        return max(0.05, min(shares)) if shares else None

    def take(self, count: int) -> "Group":
        """Return the first `count` cards."""
        return Group(self.cards[:count])

    def all_nvlink(self, hardware: Hardware) -> bool:
        """Return whether NVLink connects every pair of cards."""
        return all(hardware.link(one.index, other.index) == "nvlink" for one, other in combinations(self.cards, 2))

    def tensor_parallel_sizes(self, model: Model, engines: int = 1) -> tuple[int, ...]:
        """Return the tensor-parallel sizes that give every card whole heads of the text model and the vision tower."""
        text, vision = model.shape.text, model.shape.vision
        return tuple(
            size
            for size in (1, 2, 4, 8, 16)
            if size <= len(self.cards) // engines
            and text.heads % size == 0
            and (text.kv_heads % size == 0 or size % text.kv_heads == 0)
            and (vision is None or vision.heads % size == 0)
        )

    def replicas(self, used: "Group", preset: Preset) -> tuple[tuple[Gpu, ...], ...]:
        """Split the cards into independent servers of the size of `used`; just one unless the preset wants more."""
        size = len(used.cards)
        wanted = preset.replicas or (preset.spread and size > 1)
        if not wanted or size > len(self.cards) // 2:
            return (used.cards,)
        return tuple(self.cards[start : start + size] for start in range(0, len(self.cards) - size + 1, size))


def groups(cards: tuple[Gpu, ...]) -> list[Group]:
    """Group identical cards, the best kind first.

    The best kind has the most memory. Among kinds within a tenth of that, the newer generation comes first.
    """
    kinds: dict[tuple[str, int], list[Gpu]] = {}
    for gpu in cards:
        kinds.setdefault((gpu.name, round(gpu.total_bytes / GIB)), []).append(gpu)
    most = max((gpu.total_bytes for gpu in cards), default=0)

    def worth(kind: list[Gpu]) -> tuple[bool, int, int, int]:
        gpu, near = kind[0], kind[0].total_bytes >= 0.9 * most
        return near, gpu.sm or 0 if near else 0, gpu.total_bytes, len(kind)

    ordered = sorted(kinds.values(), key=worth, reverse=True)
    return [Group(tuple(sorted(kind, key=lambda gpu: (-_room(gpu), gpu.index)))) for kind in ordered]


def _room(gpu: Gpu) -> int:
    """Return the GiB of a card that a server could use, without the part for a display and for other programs."""
    usable = gpu.total_bytes * (0.88 if gpu.display else 0.92)
    return int(usable if gpu.free_bytes is None else min(usable, gpu.free_bytes)) // GIB


def share_of(free_gib: float, total_gib: float) -> float:
    """Return the largest utilisation for the free memory: (free - margin) / total, rounded down to hundredths."""
    return math.floor((free_gib - _MARGIN_GIB) / total_gib * 100 + 1e-6) / 100
