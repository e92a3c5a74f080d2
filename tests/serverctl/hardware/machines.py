"""Machines whose tools' outputs were written down: tests/serverctl/data/hardware, a folder each."""

import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from serverctl.hardware.detect import detect
from serverctl.hardware.facts import Hardware

DATA = Path(__file__).resolve().parents[1] / "data" / "hardware"
#: What a person and a driver call cards.
NAMES: Mapping[str, Any] = tomllib.loads((DATA / "names.toml").read_text(encoding="utf-8"))
FILES: Mapping[tuple[str, ...], str] = {
    ("nvidia-smi",): "smi.txt",
    ("nvidia-smi", "-L"): "list.txt",
    ("nvidia-smi", "topo", "-m"): "topo.txt",
}


class Replay:
    """Answers as the tools of a machine did; `asked` holds what it was asked."""

    def __init__(self, machine: str) -> None:
        self._folder = DATA / machine
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, command: Sequence[str]) -> tuple[int, str] | None:
        self.asked.append(tuple(command))
        if command[0] == "nvidia-smi" and (error := self._read("error.txt")) is not None:
            return 9, error
        if command[0] in ("hl-smi", "nvidia-smi") and len(command) > 1 and command[1].startswith("--query"):
            return self._query("query.csv" if command[0] == "nvidia-smi" else "hl-smi.csv", command[1])
        if command[0] == "rocm-smi":
            text = self._read("rocm-smi.json")
        else:
            text = self._read(FILES.get(tuple(command), "nothing"))
        return None if text is None else (0, text)

    def _read(self, name: str) -> str | None:
        path = self._folder / name
        return path.read_text(encoding="utf-8") if path.is_file() else None

    def _query(self, name: str, option: str) -> tuple[int, str] | None:
        """The asked columns of a table."""
        table = self._read(name)
        if table is None:
            return None
        head, *rows = [[cell.strip() for cell in line.split(",")] for line in table.splitlines()]
        fields = option.split("=", 1)[1].split(",")
        return 0, "".join(", ".join(row[head.index(field)] for field in fields) + "\n" for row in rows)


def look(machine: str) -> Hardware:
    """What is found in a machine without NVML."""
    return detect(Replay(machine), lambda: None)


class Nvml:
    """A stand-in for the module pynvml, with the cards given as mappings; an entry that is an Exception is raised."""

    NVML_P2P_CAPS_INDEX_NVLINK = 2
    NVML_P2P_STATUS_OK = 0
    nvmlMemory_v2 = 0x02000028  # noqa: N815  the binding's own name

    #: Questions about one card, and their entries.
    PLAIN: Mapping[str, str] = {
        "nvmlDeviceGetName": "name", "nvmlDeviceGetUUID": "uuid", "nvmlDeviceGetMigMode": "mig",
        "nvmlDeviceGetDisplayActive": "display", "nvmlDeviceGetCudaComputeCapability": "capability",
    }  # fmt: skip

    class NVMLError(Exception):
        pass

    def __init__(self, *cards: Mapping[str, Any], init: Exception | None = None, driver: Any = "580.95.05") -> None:
        self.cards = cards
        self.init = init
        self.driver = driver
        self.shut = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "Nvml":
        monkeypatch.setitem(sys.modules, "pynvml", self)
        return self

    def _get(self, handle: int, name: str) -> Any:
        value = self.cards[handle].get(name, self.NVMLError("Not Supported"))
        if isinstance(value, Exception):
            raise value
        return value

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init is not None:
            raise self.init

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.shut += 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        self._get(index, "handle")
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: int | None = None) -> Any:  # noqa: N802
        return self._get(handle, "memory_v2" if version else "memory")

    def __getattr__(self, name: str) -> Any:
        return partial(self._get, name=self.PLAIN[name])

    def nvmlDeviceGetP2PStatus(self, first: int, second: int, index: int) -> Any:  # noqa: N802
        return self._get(first, f"p2p{second}")

    def nvmlSystemGetDriverVersion(self) -> Any:  # noqa: N802
        return self.driver

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        return 13000


class Memory:
    """What NVML answers about memory, in MiB."""

    def __init__(self, total: int, free: int, reserved: int | None = None) -> None:
        self.total = total << 20
        self.free = free << 20
        if reserved is not None:
            self.reserved = reserved << 20
