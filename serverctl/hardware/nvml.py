"""Reads the cards and their current use from NVML, NVIDIA's management library."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias, TypeVar

from serverctl.hardware import nvidia
from serverctl.hardware.facts import Driver, Gpu, Link

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
    except troubles:
        return None
    try:
        return read(pynvml)
    except troubles:
        return None
    finally:
        with contextlib.suppress(*troubles):
            pynvml.nvmlShutdown()


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
        name = _text(nvml.nvmlDeviceGetName(handle))
        capability = _ask(nvml, "DeviceGetCudaComputeCapability", handle)
        display, mig = _ask(nvml, "DeviceGetDisplayActive", handle), _ask(nvml, "DeviceGetMigMode", handle)
        handles.append((index, handle))
        usable = nvidia.usable_bytes(memory.total, getattr(memory, "reserved", None))
        known = tuple(capability) if capability else nvidia.capability_by_name(name)
        uuid, shows = _text(_ask(nvml, "DeviceGetUUID", handle)), None if display is None else bool(display)
        gpus.append(Gpu(index, name, "nvidia", usable, memory.free, uuid, known, shows, bool(mig and mig[0])))
    version, cuda = _ask(nvml, "SystemGetDriverVersion"), _ask(nvml, "SystemGetCudaDriverVersion_v2")
    driver = Driver(_text(version), (cuda // 1000, cuda % 1000 // 10) if cuda else None) if version else None
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
            _text(_ask(nvml, "DeviceGetName", handle)),
            _text(_ask(nvml, "DeviceGetUUID", handle)),
            None if rates is None else rates.gpu / 100,
            None if memory is None else memory.used,
            None if memory is None else memory.total,
        )


def _text(value: Any) -> str:
    """Convert to text: older bindings return bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
