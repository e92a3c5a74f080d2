"""The static facts of a machine, as plain values.

What a tool did not say is None, never a guess: a plan made from an invented number fails later and far from its cause.
Readings that change (free memory, what uses it) are `Reading`s, kept apart from the facts.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

GIB = 1024**3
MIB = 1024**2

Vendor: TypeAlias = Literal["nvidia", "amd", "gaudi", "apple", "cpu"]
#: How two cards reach each other: NVLink, or only the machine's bus.
Link: TypeAlias = Literal["nvlink", "pcie"]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator."""

    index: int  # as the vendor's tool numbers it
    name: str  # as the vendor's tool names it
    vendor: Vendor  # who made it
    total_bytes: int  # its memory as the driver reports it (not the marketing size)
    free_bytes: int | None = None  # what was free when it was asked; None for hardware that is not there
    uuid: str = ""  # stable name, used to pin a server to it
    compute_capability: tuple[int, int] | None = None  # (major, minor) of NVIDIA cards, for example (8, 9)
    display: bool | None = None  # whether it drives a display; None where the tool cannot tell
    mig: bool = False  # whether it is split into MIG instances (or is one)
    bandwidth_gb_s: float | None = None  # of its memory, GB/s: from a data sheet, never measured
    tflops: float | None = None  # dense 16-bit operations a second, in 10^12: likewise

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
    """The processor and the machine's memory."""

    name: str = ""  # as the system names it
    cores: int = 1  # logical processors this process may use
    architecture: str = ""  # x86_64, aarch64, arm64
    #: instruction sets that matter to vLLM's CPU build, of the ones found: avx2, avx512f, amx_bf16
    features: tuple[str, ...] = ()
    memory_bytes: int = 0  # memory of the machine, or of the container it is limited to
    free_bytes: int = 0  # memory that could be had when asked


@dataclass(frozen=True, slots=True)
class Driver:
    """An accelerator's driver: its version and the newest CUDA runtime it serves, None where not known."""

    version: str
    cuda: tuple[int, int] | None = None

    @property
    def major(self) -> int | None:
        """The version's first number; None where it has none."""
        head = self.version.split(".")[0]
        return int(head) if head.isdigit() else None


@dataclass(frozen=True, slots=True)
class Hardware:
    """Everything a plan needs to know of a machine."""

    gpus: tuple[Gpu, ...] = ()  # what could be found, in the order of their numbers
    cpu: Cpu = field(default_factory=Cpu)  # the processor
    driver: Driver | None = None  # of the accelerators; None where there is none
    #: how pairs of cards, by their indices (lower first), reach each other; missing pairs are not known
    links: tuple[tuple[int, int, Link], ...] = ()
    #: what went wrong while looking, in sentences: a broken driver is not the same as no card
    problems: tuple[str, ...] = ()
    system: str = "Linux"  # Linux, Darwin or Windows
    imagined: bool = False  # whether it was named by a person instead of found

    @property
    def vendor(self) -> Vendor:
        """What a server would run on: the first accelerator's vendor, or the processor."""
        return self.gpus[0].vendor if self.gpus else "cpu"

    def link(self, first: int, second: int) -> Link | None:
        """How two cards reach each other, None where not known."""
        pair = (min(first, second), max(first, second))
        return next((kind for a, b, kind in self.links if (a, b) == pair), None)

    def all_nvlink(self, indices: tuple[int, ...]) -> bool:
        """Whether every two of these cards are joined by NVLink."""
        return all(self.link(a, b) == "nvlink" for a in indices for b in indices if a < b)


def size_in_words(size: int) -> str:
    """A size in bytes as a person reads it, in the unit in which it is one or more: never 0.0 of something."""
    for unit, whole in (("GiB", GIB), ("MiB", MIB), ("KiB", 1024)):
        if size >= whole:
            return f"{size / whole:.1f} {unit}"
    return f"{size} bytes"
