"""How busy NVIDIA cards are now, asked through NVML; nothing where there is none."""

from dataclasses import dataclass
from typing import Any

from serverctl.hardware.detect import asked_of_nvml


@dataclass(frozen=True, slots=True)
class GpuUse:
    """One card now; None where it cannot tell."""

    index: int
    name: str
    uuid: str
    busy: float | None  # share of the last moments in which it worked, 0 to 1
    used_bytes: int | None  # of its memory, by all programs
    total_bytes: int | None


def gpu_use(cards: tuple[str, ...] = ()) -> tuple[GpuUse, ...]:
    """The use of some cards, named by UUID or number; of all where none is named. () without NVML."""
    found = asked_of_nvml(_read) or ()
    return tuple(gpu for gpu in found if not cards or gpu.uuid in cards or str(gpu.index) in cards)


def _read(nvml: Any) -> tuple[GpuUse, ...]:
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = _answer(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
        if handle is None:
            continue
        rates = _answer(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
        memory = _answer(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
        found.append(
            GpuUse(
                index,
                _text(_answer(nvml, nvml.nvmlDeviceGetName, handle)),
                _text(_answer(nvml, nvml.nvmlDeviceGetUUID, handle)),
                None if rates is None else rates.gpu / 100,
                None if memory is None else memory.used,
                None if memory is None else memory.total,
            )
        )
    return tuple(found)


def _answer(nvml: Any, question: Any, argument: Any) -> Any:
    try:
        return question(argument)
    except nvml.NVMLError:
        return None


def _text(value: bytes | str | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""
