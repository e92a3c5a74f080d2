"""Reads NVIDIA's cards and their use from NVML, its management library, and from `nvidia-smi`, the fallback.

Sources: `nvidia-smi --help-query-gpu` (fields), `nvidia-smi topo -m` (NV# is NVLink; PIX, PXB, PHB, NODE and SYS are
connections over the bus).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias, TypeVar

from foundation.configs import load_config
from serverctl.hardware.facts import MIB, Driver, Gpu, Link

#: The fields of `nvidia-smi --query-gpu=... --format=csv,noheader,nounits`, in this order.
FIELDS = (
    "index", "name", "uuid", "memory.total", "memory.reserved", "memory.free", "compute_cap", "display_active",
    "mig.mode.current", "driver_version",
)  # fmt: skip


def parse_query(text: str, fields: Sequence[str] = FIELDS) -> tuple[tuple[Gpu, ...], Driver | None]:
    """Parse the output of `nvidia-smi --query-gpu` with some of `FIELDS`. Other lines are skipped.

    Intel's `hl-smi` has the same format.
    """
    gpus: list[Gpu] = []
    driver: Driver | None = None
    for row in _rows(text, fields):
        total = _mebibytes(row["memory.total"])
        if total is None:
            continue
        reserved, free = _mebibytes(row["memory.reserved"]), _mebibytes(row["memory.free"])
        uuid = row["uuid"] if _known(row["uuid"]) else ""
        display = {"Enabled": True, "Disabled": False}.get(row["display_active"])
        capability = _version(row["compute_cap"]) or capability_by_name(row["name"])
        mig, usable = row["mig.mode.current"] == "Enabled", usable_bytes(total, reserved)
        gpus.append(Gpu(int(row["index"]), row["name"], "nvidia", usable, free, uuid, capability, display, mig))
        if re.match(r"\d", row["driver_version"]):
            driver = Driver(row["driver_version"])
    return tuple(gpus), driver


def usable_bytes(total: int, reserved: int | None) -> int:
    """Return the memory that programs can use: the total includes the driver's own reserve."""
    return total - reserved if reserved is not None and 0 < reserved < total // 4 else total


def unmeasured(text: str) -> tuple[str, ...]:
    """Return the names of cards that the tool lists without the size of their memory."""
    found = _rows(text, FIELDS)
    return tuple(row["name"] for row in found if _known(row["name"]) and _mebibytes(row["memory.total"]) is None)


def _rows(text: str, fields: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of a query's answer by field. Fields that were not requested are empty."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(fields) and re.fullmatch(r"[0-9]{1,4}", cells[0]):
            yield dict.fromkeys(FIELDS, "") | dict(zip(fields, cells, strict=True))


def _known(value: str) -> bool:
    """Whether a cell holds a value: for unknown ones the tool writes [N/A], [Not Supported] or [Unknown Error]."""
    return bool(value) and not value.startswith(("[", "N/A"))


def parse_cuda(banner: str) -> tuple[int, int] | None:
    """The CUDA version in the head of plain `nvidia-smi` output: the newest runtime that the driver serves."""
    found = re.search(r"CUDA(?: UMD)? Version:\s*([0-9]{1,3}\.[0-9]{1,3})", banner)
    return None if found is None else _version(found[1])


#: One line of `nvidia-smi -L` below a card: its number on the card, its profile (3g.40gb) and its UUID.
MigInstance: TypeAlias = tuple[int, str, str]


def parse_mig(listing: str) -> dict[int, list[MigInstance]]:
    """Return the MIG instances in `nvidia-smi -L`, by their card's index."""
    instances: dict[int, list[MigInstance]] = {}
    card: list[MigInstance] = []
    for line in listing.splitlines():
        if found := re.match(r"GPU ([0-9]{1,4}):", line):
            card = instances.setdefault(int(found[1]), [])
        elif found := re.match(r"\s+MIG (\S+)\s+Device\s+([0-9]{1,4}):\s*\(UUID: (MIG-[^)]+)\)", line):
            card.append((int(found[2]), found[1], found[3]))
    return instances


def parse_mig_memory(banner: str) -> dict[tuple[int, int], tuple[int, int]]:
    """Parse used and total memory of MIG instances from plain `nvidia-smi`, in bytes, by card and number."""
    row = r"^\|\s+([0-9]{1,4})\s+\S+\s+\S+\s+([0-9]{1,4})\s*\|\s*([0-9]{1,9})MiB\s*/\s*([0-9]{1,9})MiB\s*\|"
    return {
        (int(found[1]), int(found[2])): (int(found[3]) * MIB, int(found[4]) * MIB)
        for found in re.finditer(row, banner, re.MULTILINE)
    }


def mig_gpus(
    gpu: Gpu, instances: Iterable[MigInstance], memory: Mapping[tuple[int, int], tuple[int, int]]
) -> Iterator[Gpu]:
    """Yield a card's MIG instances as cards, with their memory from plain `nvidia-smi`.

    If its output lacks the memory, use the profile's: 40 GB for 3g.40gb, less the 5 % that programs cannot use.
    """
    for number, profile, uuid in instances:
        size = re.search(r"\.([0-9]{1,4})gb", profile)
        used, total = memory.get((gpu.index, number), (None, int(size[1]) * 1000**3 * 95 // 100 if size else 0))
        if total:
            free = None if used is None else max(0, total - used)
            name = f"{gpu.name} MIG {profile}"
            yield replace(gpu, name=name, total_bytes=total, free_bytes=free, uuid=uuid, display=False, mig=True)


def parse_topology(text: str) -> tuple[tuple[int, int, Link], ...]:
    """Parse the connections of pairs of cards from `nvidia-smi topo -m`."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    links: list[tuple[int, int, Link]] = []
    columns: list[int] = []
    for line in plain.splitlines():
        cells = line.split()
        if not columns:
            columns = [int(cell[3:]) for cell in cells if re.fullmatch(r"GPU[0-9]{1,4}", cell)]
            continue
        if not cells or not re.fullmatch(r"GPU[0-9]{1,4}", cells[0]):
            continue
        row = int(cells[0][3:])
        for column, cell in zip(columns, cells[1:], strict=False):
            if row < column and cell != "X":
                links.append((row, column, "nvlink" if re.fullmatch(r"NV\d+", cell) else "pcie"))
    return tuple(links)


def explain_trouble(output: str) -> str:
    """Return a sentence that explains an error output of `nvidia-smi`."""
    for trouble in load_config("gpus/nvidia.toml")["trouble"]:
        if trouble["said"].casefold() in output.casefold():
            return f"nvidia-smi: {trouble['meaning']}."
    first = (output.strip() or "nothing").splitlines()[0].strip()
    return f"nvidia-smi failed and said: {first[:200].rstrip('.')}."


def capability_by_name(name: str) -> tuple[int, int] | None:
    """Return the compute capability of a card by its name, from CUDA's list; None if unknown."""
    known = load_config("gpus/nvidia.toml")["capabilities"]
    return next((tuple(number) for pattern, number in known if re.search(pattern, name, re.IGNORECASE)), None)


def _version(text: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", text)
    return None if found is None else (int(found[1]), int(found[2]))


def _mebibytes(text: str) -> int | None:
    """Convert a cell in MiB to bytes; None without a number."""
    found = re.fullmatch(r"([0-9]{1,12})(?:\s*MiB)?", text)
    return None if found is None else int(found[1]) * MIB


_T = TypeVar("_T")
#: Cards, their driver, and the connections of pairs of cards.
NvmlAnswer: TypeAlias = tuple[tuple[Gpu, ...], Driver | None, tuple[tuple[int, int, Link], ...]]


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The current use of one card; None for unknown values."""

    index: int
    name: str
    uuid: str
    busy: float | None  # recent utilisation, 0 to 1
    used_bytes: int | None  # of its memory, by all programs
    total_bytes: int | None


def ask_nvml() -> NvmlAnswer | None:
    """Return the hardware that NVML reports; None without NVML or if it fails (nvidia-smi then explains why)."""
    return _with_nvml(_read_cards)


def gpu_use(cards: tuple[str, ...] = ()) -> tuple[GpuUse, ...]:
    """Return the use of some cards, named by UUID or number, or of all. () without NVML."""
    found = _with_nvml(lambda nvml: tuple(_read_use(nvml))) or ()
    return tuple(gpu for gpu in found if not cards or gpu.uuid in cards or str(gpu.index) in cards)


def _with_nvml(read: Callable[[Any], _T]) -> _T | None:
    """Call `read` with an initialised NVML, and return its result; None without NVML or if it fails."""
    try:
        import pynvml
    except ImportError:
        return None
    # A library that does not match its binding also fails in other ways: a missing function, an undecodable name.
    troubles = (pynvml.NVMLError, AttributeError, OSError, ValueError)
    try:
        pynvml.nvmlInit()
        try:
            return read(pynvml)
        finally:
            pynvml.nvmlShutdown()
    except troubles:
        return None


def _ask(nvml: Any, question: str, *arguments: Any) -> Any:
    """Call one NVML function; None if the card does not support it, so that the other calls still count."""
    try:
        return getattr(nvml, f"nvml{question}")(*arguments)
    except nvml.NVMLError:
        return None


def _handles(nvml: Any) -> Iterator[tuple[int, Any]]:
    """Yield the cards that respond. A card that fell off the bus does not."""
    for index in range(nvml.nvmlDeviceGetCount()):
        if (handle := _ask(nvml, "DeviceGetHandleByIndex", index)) is not None:
            yield index, handle


def _read_cards(nvml: Any) -> NvmlAnswer:
    gpus: list[Gpu] = []
    handles = []
    for index, handle in _handles(nvml):
        memory = _ask(nvml, "DeviceGetMemoryInfo", handle, nvml.nvmlMemory_v2)
        memory = memory or _ask(nvml, "DeviceGetMemoryInfo", handle)
        if memory is None:
            continue  # the card shares the machine's memory
        name = nvml.nvmlDeviceGetName(handle)
        capability = _ask(nvml, "DeviceGetCudaComputeCapability", handle)
        display, mig = _ask(nvml, "DeviceGetDisplayActive", handle), _ask(nvml, "DeviceGetMigMode", handle)
        handles.append((index, handle))
        usable = usable_bytes(memory.total, getattr(memory, "reserved", None))
        known = tuple(capability) if capability else capability_by_name(name)
        uuid, shows = _ask(nvml, "DeviceGetUUID", handle) or "", None if display is None else bool(display)
        gpus.append(Gpu(index, name, "nvidia", usable, memory.free, uuid, known, shows, bool(mig and mig[0])))
    version, cuda = _ask(nvml, "SystemGetDriverVersion"), _ask(nvml, "SystemGetCudaDriverVersion_v2")
    driver = Driver(version, (cuda // 1000, cuda % 1000 // 10) if cuda else None) if version else None
    links: list[tuple[int, int, Link]] = []
    for (index, handle), (other, second) in combinations(handles, 2):
        status = _ask(nvml, "DeviceGetP2PStatus", handle, second, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
        if status is not None:
            links.append((index, other, "nvlink" if status == nvml.NVML_P2P_STATUS_OK else "pcie"))
    return tuple(gpus), driver, tuple(links)


def _read_use(nvml: Any) -> Iterator[GpuUse]:
    for index, handle in _handles(nvml):
        rates = _ask(nvml, "DeviceGetUtilizationRates", handle)
        memory = _ask(nvml, "DeviceGetMemoryInfo", handle)
        yield GpuUse(
            index,
            _ask(nvml, "DeviceGetName", handle) or "",
            _ask(nvml, "DeviceGetUUID", handle) or "",
            None if rates is None else rates.gpu / 100,
            None if memory is None else memory.used,
            None if memory is None else memory.total,
        )
