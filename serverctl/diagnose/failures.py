"""The named failures: what each means in plain words, and how it shows in a log (`configs/vllm/failures.toml`)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from foundation.configs import load_config


class Kind(Enum):
    """What went wrong."""

    FREE_MEM = "FREE_MEM"
    NO_KV = "NO_KV"
    KV_SHORT = "KV_SHORT"
    AUTOFIT_ZERO = "AUTOFIT_ZERO"
    LOAD_OOM = "LOAD_OOM"
    PROFILE_OOM = "PROFILE_OOM"
    GRAPH_OOM = "GRAPH_OOM"
    RUNTIME_OOM = "RUNTIME_OOM"
    HOST_OOM = "HOST_OOM"
    PROFILE_RACE = "PROFILE_RACE"
    BF16 = "BF16"
    QUANT_CC = "QUANT_CC"
    QUANT_UNKNOWN = "QUANT_UNKNOWN"
    QUANT_ONLINE = "QUANT_ONLINE"
    TRITON_SMEM = "TRITON_SMEM"
    PORT = "PORT"
    INNER_PORT = "INNER_PORT"
    LOOPBACK = "LOOPBACK"
    FLAG = "FLAG"
    FLAG_VALUE = "FLAG_VALUE"
    MAX_LEN = "MAX_LEN"
    REASONING_PARSER = "REASONING_PARSER"
    ATTENTION = "ATTENTION"
    VALUE = "VALUE"
    MODEL = "MODEL"
    OFFLINE = "OFFLINE"
    GATED = "GATED"
    TOKEN = "TOKEN"  # noqa: S105
    NETWORK = "NETWORK"
    CORRUPT = "CORRUPT"
    ARCH = "ARCH"
    REMOTE_CODE = "REMOTE_CODE"
    HF_VERSION = "HF_VERSION"
    TENSOR_PARALLEL = "TENSOR_PARALLEL"
    TOO_FEW_GPUS = "TOO_FEW_GPUS"
    NO_DEVICE = "NO_DEVICE"
    DRIVER = "DRIVER"
    CARD = "CARD"
    CUDA = "CUDA"
    NCCL = "NCCL"
    DISK = "DISK"
    SHM = "SHM"
    PERMISSION = "PERMISSION"
    FILES = "FILES"
    IMPORT = "IMPORT"
    COMPILER = "COMPILER"
    NO_ANSWER = "NO_ANSWER"
    MISREADS = "MISREADS"
    STALLED = "STALLED"
    HUNG = "HUNG"
    ENGINE_DIED = "ENGINE_DIED"
    CRASHED = "CRASHED"
    KILLED = "KILLED"
    EXITED = "EXITED"
    NONE = "NONE"

    @property
    def group(self) -> str:
        """The class it belongs to: several kinds are one class with several causes (`diagnose --json` prints both)."""
        return str(_DATA["kinds"][self.value].get("class", self.value))


def words_for(kind: Kind, numbers: Mapping[str, Any]) -> "Words":
    """A failure in plain words, with the numbers of its evidence where all that the words need are there."""
    plain, entry = WORDS[kind], _DATA["kinds"][kind.value].get("with_numbers", {})
    try:
        return replace(plain, **{name: text.format_map(numbers) for name, text in entry.items()})
    except (KeyError, ValueError):
        return plain


@dataclass(frozen=True, slots=True)
class Words:
    """A failure in plain words: its title, why it happens, what to do."""

    title: str
    cause: str
    remedy: str


#: A class, and the texts that show it.
Pattern = tuple[Kind, re.Pattern[str]]


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(texts), re.DOTALL)


def _table(name: str) -> tuple[Pattern, ...]:
    return tuple((Kind(entry["kind"]), _any_of(entry["texts"])) for entry in _DATA[name])


_DATA = load_config("vllm/failures.toml")
WORDS = {Kind(name): Words(entry["title"], entry["cause"], entry["remedy"]) for name, entry in _DATA["kinds"].items()}
#: Texts that are causes wherever they stand, and those that count only where none of these is found.
SURE, LIKELY = _table("sure"), _table("likely")
#: What is no class of its own: torch's out of memory, what only points to the cause above it, notes that look like
#: errors, how a process ended, and that somebody ended it.
OOM, CONSEQUENCE, NOTE, ENDED_BY, INTERRUPTED = (
    _any_of(_DATA["texts"][name]) for name in ("oom", "consequence", "note", "ended_by", "interrupted")
)


def first_match(patterns: Iterable[Pattern], text: str) -> tuple[Kind, int] | None:
    """The class that a text shows, and where in it; the first that matches wins."""
    for kind, match in patterns:
        if found := match.search(text):
            return kind, found.start()
    return None
