"""Describes a machine's hardware as plain values.

Unknown values are None, never a guess: a plan made from a guess would fail later, far from its cause.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from foundation.errors import EnvironmentLacksError

GIB = 1024**3
MIB = 1024**2

Vendor: TypeAlias = Literal["nvidia", "amd", "gaudi", "apple", "cpu"]
#: The connection of two cards: NVLink, or only the machine's bus.
Link: TypeAlias = Literal["nvlink", "pcie"]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator."""

    index: int  # by the vendor's tool
    name: str  # by the vendor's tool
    vendor: Vendor
    total_bytes: int  # its memory as the driver reports it (not the marketing size)
    free_bytes: int | None = None  # free memory at detection; None for imagined hardware
    uuid: str = ""  # stable name, used to pin a server to it
    compute_capability: tuple[int, int] | None = None  # (major, minor) of NVIDIA cards, for example (8, 9)
    display: bool | None = None  # whether it drives a display; None if unknown
    mig: bool = False  # whether it is in MIG mode or a MIG instance
    bandwidth_gb_s: float | None = None  # memory bandwidth, GB/s, from a data sheet
    tflops: float | None = None  # dense 16-bit TFLOPS, from a data sheet

    @property
    def total_gib(self) -> float:
        """Its memory in GiB."""
        return self.total_bytes / GIB

    @property
    def sm(self) -> int | None:
        """The compute capability as one number, for example 89; None if unknown."""
        return None if self.compute_capability is None else self.compute_capability[0] * 10 + self.compute_capability[1]


@dataclass(frozen=True, slots=True)
class Cpu:
    """The CPU and the machine's memory."""

    name: str = ""  # by the operating system
    cores: int = 1  # logical processors that this process may use
    architecture: str = ""  # x86_64, aarch64, arm64
    #: available instruction sets that vLLM's CPU build uses, such as avx2, avx512f, amx_bf16
    features: tuple[str, ...] = ()
    memory_bytes: int = 0  # memory of the machine, or the container's limit
    free_bytes: int = 0  # available memory at detection


@dataclass(frozen=True, slots=True)
class Driver:
    """An accelerator's driver: its version, and the newest CUDA runtime that it supports, None if unknown."""

    version: str
    cuda: tuple[int, int] | None = None

    @property
    def major(self) -> int | None:
        """The major version; None if it is no number."""
        head = self.version.split(".")[0]
        return int(head) if head.isdigit() else None


@dataclass(frozen=True, slots=True)
class Hardware:
    """The hardware of a machine, for plans."""

    gpus: tuple[Gpu, ...] = ()  # usable cards
    cpu: Cpu = field(default_factory=Cpu)
    driver: Driver | None = None  # of the accelerators; None if there is none
    #: connections of pairs of cards by index (lower first); missing pairs are unknown
    links: tuple[tuple[int, int, Link], ...] = ()
    #: failures of the detection, as sentences: a broken driver is not the same as no card
    problems: tuple[str, ...] = ()
    system: str = "Linux"  # Linux, Darwin or Windows
    imagined: bool = False  # whether the user named it, instead of being detected

    @property
    def vendor(self) -> Vendor:
        """The vendor of the first accelerator, or "cpu" without one."""
        return self.gpus[0].vendor if self.gpus else "cpu"

    def link(self, first: int, second: int) -> Link | None:
        """Return the connection of two cards; None if unknown."""
        pair = (min(first, second), max(first, second))
        return next((kind for a, b, kind in self.links if (a, b) == pair), None)


def size_in_words(size: int) -> str:
    """Format a size in bytes with the largest unit that keeps the number at 1 or above."""
    for unit, unit_bytes in (("GiB", GIB), ("MiB", MIB), ("KiB", 1024)):
        if size >= unit_bytes:
            return f"{size / unit_bytes:.1f} {unit}"
    return f"{size} bytes"


#: The oldest compute capability in vLLM's wheel (its fatbins hold 75, 80, 86, 89, 90, 100, 120).
LEAST_SM = 75

WAYS_OUT = (
    "The built-in literal engine needs no card (--engine literal), and a server on another machine can be named "
    "(--endpoint URL)"
)


class CannotPlanError(EnvironmentLacksError):
    """No plan works on this hardware. The message gives the reason, the remedy the alternatives."""


def usable_cards(hardware: Hardware) -> tuple[Gpu, ...]:
    """Return the cards that vLLM supports. Raises CannotPlanError if there are cards, but no supported one."""
    if not hardware.gpus:
        return ()
    gpu = hardware.gpus[0]
    if hardware.vendor == "apple":
        raise CannotPlanError(
            f"vLLM does not serve these models on {gpu.name}: it has no build for Apple's GPUs.",
            f"Serve the model with another program on this machine (MLX, llama.cpp) and name it. {WAYS_OUT}.",
        )
    usable = tuple(gpu for gpu in hardware.gpus if gpu.vendor != "nvidia" or gpu.sm is None or gpu.sm >= LEAST_SM)
    if usable:
        return usable
    capability = ".".join(str(part) for part in gpu.compute_capability or ())
    raise CannotPlanError(
        f"vLLM no longer serves on {gpu.name}: its compute capability is {capability}, and vLLM's wheels start at 7.5.",
        f"Serve the model with llama.cpp on this card and name it with --endpoint. {WAYS_OUT}.",
    )
