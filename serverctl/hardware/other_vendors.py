"""Parses information about AMD, Intel Gaudi and Apple accelerators, and about the CPU.

Sources: `hl-smi` (MiB), `rocm-smi` (bytes), /proc/cpuinfo, `sysctl`.
"""

import json
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

from serverctl.hardware.facts import Driver, Gpu
from serverctl.hardware.nvidia import parse_query

#: Instruction sets that vLLM's CPU build uses.
CPU_FEATURES = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "asimd", "bf16", "sve")

#: The fields of the query to `hl-smi`, and the command.
GAUDI_FIELDS = ("index", "name", "memory.total", "memory.free", "uuid", "driver_version")
GAUDI_QUERY = ("hl-smi", f"--query-aip={','.join(GAUDI_FIELDS)}", "--format=csv,noheader,nounits")
#: The command for AMD cards.
ROCM_QUERY = ("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showuniqueid", "--json")


def parse_gaudi(text: str) -> tuple[tuple[Gpu, ...], Driver | None]:
    """Parse the accelerators in the output of `hl-smi` with `GAUDI_FIELDS`."""
    gpus, driver = parse_query(text, GAUDI_FIELDS)
    return tuple(replace(gpu, name=gaudi_name(gpu.name), vendor="gaudi", display=False) for gpu in gpus), driver


def gaudi_name(product: str) -> str:
    """Return the product name with its generation.

    HL-205 is Gaudi, HL-225 and HL-288 are Gaudi 2, HL-325 to HL-338 are Gaudi 3 (Intel's product pages).
    """
    number = re.match(r"HL-?(20|2|3)\d", product, re.IGNORECASE)
    if number is None:
        return product
    return {"20": "Gaudi", "2": "Gaudi 2", "3": "Gaudi 3"}[number[1]] + f" ({product})"


def parse_rocm(text: str) -> tuple[Gpu, ...]:
    """Parse the AMD cards in the JSON of `rocm-smi`, which may print other text before and after it."""
    document: dict[str, Any] = {}
    with suppress(ValueError, RecursionError):  # what stands between braces is an object
        document = json.loads(text[text.find("{") : text.rfind("}") + 1])
    gpus: list[Gpu] = []
    for key, card in document.items():
        number = re.fullmatch(r"card([0-9]{1,4})", key)
        if number is None or not isinstance(card, dict):
            continue
        total = _bytes(card.get("VRAM Total Memory (B)"))
        used = _bytes(card.get("VRAM Total Used Memory (B)"))
        if not total:
            continue
        name = card.get("Card Series") or card.get("Card series") or card.get("Device Name") or "AMD GPU"
        free, uuid = None if used is None else max(0, total - used), str(card.get("Unique ID", ""))
        gpus.append(Gpu(int(number[1]), str(name).strip(), "amd", total, free, uuid))
    return tuple(sorted(gpus, key=lambda gpu: gpu.index))


def _bytes(value: object) -> int | None:
    text = str(value)
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def parse_cpuinfo(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the CPU's name and its features among `CPU_FEATURES`, from /proc/cpuinfo."""
    name = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    found = set(flags[1].split()) if flags else set()
    return (name[1].strip() if name else ""), tuple(feature for feature in CPU_FEATURES if feature in found)


def parse_memory_limit(text: str) -> int | None:
    """Parse a container's memory limit in bytes from cgroup's memory.max; None without a limit ("max")."""
    return _bytes(text.strip())


def apple_gpus(brand: str, memory_bytes: int) -> tuple[Gpu, ...]:
    """Return the GPU of an Apple chip, which shares the machine's memory; none for Intel Macs."""
    return (Gpu(0, brand, "apple", memory_bytes, display=True),) if brand.startswith("Apple") else ()
