"""Cards of one kind as one value: how much of them is free, and into how many parts a model can be split."""

import math
from dataclasses import dataclass

from serverctl.hardware.facts import GIB, Gpu, Hardware
from serverctl.models.model import Model
from serverctl.plan.tables import Preset

#: What vLLM must find free beyond what it is told to use, or it refuses to start ("Free memory on device ... is less
#: than desired"), GiB.
_MARGIN_GIB = 0.3


@dataclass(frozen=True, slots=True)
class Group:
    """Cards that are alike, as parallel cards must be; the card with the most room comes first."""

    cards: tuple[Gpu, ...]

    @property
    def first(self) -> Gpu:
        """The card with the most room."""
        return self.cards[0]

    @property
    def smallest(self) -> Gpu:
        """The card with the least memory: a plan must fit on it."""
        return min(self.cards, key=lambda gpu: gpu.total_bytes)

    @property
    def name(self) -> str:
        """The cards in words: "2 x NVIDIA L4"."""
        return f"{len(self.cards)} x {self.first.name}" if len(self.cards) > 1 else self.first.name

    @property
    def sm(self) -> int | None:
        """The compute capability as one number."""
        return self.first.sm

    @property
    def mig(self) -> bool:
        """Whether these are MIG instances, of which a process sees one only."""
        return self.first.mig

    @property
    def display(self) -> bool:
        """Whether one of the cards drives a display."""
        return any(gpu.display for gpu in self.cards)

    @property
    def free_share(self) -> float | None:
        """The largest utilisation that vLLM accepts with what is free now on the fullest card; None if unknown."""
        shares = [share_of(gpu.free_bytes / GIB, gpu.total_gib) for gpu in self.cards if gpu.free_bytes is not None]
        return max(0.05, min(shares)) if shares else None

    def take(self, count: int) -> "Group":
        """Return the first cards."""
        return Group(self.cards[:count])

    def all_nvlink(self, hardware: Hardware) -> bool:
        """Whether every two of the cards are joined by NVLink."""
        return hardware.all_nvlink(tuple(gpu.index for gpu in self.cards))

    def tensor_parallel_sizes(self, model: Model, engines: int = 1) -> tuple[int, ...]:
        """The sizes that divide the model's heads: every card gets whole heads of the text and of the vision tower."""
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
        """Independent servers of as many cards as one server uses: several only where many agents are wanted."""
        size = len(used.cards)
        if not preset.replicas or size > len(self.cards) // 2:
            return (used.cards,)
        return tuple(self.cards[start : start + size] for start in range(0, len(self.cards) - size + 1, size))


def groups(cards: tuple[Gpu, ...]) -> list[Group]:
    """Sort cards into groups of one kind, the best kind first.

    The most memory counts; kinds within a tenth of it are told apart by their generation.
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
    """Return what a server could have of a card, in GiB: a display keeps some, and so do other programs."""
    whole = gpu.total_bytes * (0.88 if gpu.display else 0.92)
    return int(whole if gpu.free_bytes is None else min(whole, gpu.free_bytes)) // GIB


def share_of(free_gib: float, total_gib: float) -> float:
    """floor((free - margin) / total) in hundredths: what may be asked for of a card with some memory free."""
    return math.floor((free_gib - _MARGIN_GIB) / total_gib * 100 + 1e-6) / 100
