"""The classes of failures, their words for people and their texts in a log (`configs/vllm/failures.toml`)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from foundation.configs import load_config
from serverctl.plan.group import share_of
from serverctl.vllm.capabilities import flag_now

#: What went wrong; `configs/vllm/failures.toml` has the words for each.
Kind = Enum(
    "Kind",
    "FREE_MEM NO_KV KV_SHORT AUTOFIT_ZERO LOAD_OOM PROFILE_OOM GRAPH_OOM RUNTIME_OOM HPU_OOM HPU_GRAPH_OOM "
    "HPU_COMPILE HPU_WARMUP HPU_SCALES HOST_OOM PROFILE_RACE BF16 QUANT_CC QUANT_UNKNOWN QUANT_ONLINE "
    "QUANT_PREPARED TRITON_SMEM PORT INNER_PORT LOOPBACK FLAG FLAG_VALUE MAX_LEN REASONING_PARSER ATTENTION "
    "FLAG_JSON VALUE MODEL OFFLINE GATED TOKEN NETWORK CORRUPT ARCH REMOTE_CODE HF_VERSION TENSOR_PARALLEL "
    "TOO_FEW_GPUS NO_DEVICE DRIVER CARD CUDA NCCL DISK SHM PERMISSION FILES IMPORT NO_MODULE COMPILER NO_ANSWER "
    "MISREADS STALLED HUNG "
    "ENGINE_DIED CRASHED KILLED EXITED NONE",
)


def group_of(kind: Kind) -> str:
    """Return the class of several kinds with different causes (`diagnose --json` prints both)."""
    return str(_DATA["kinds"][kind.name].get("class", kind.name))


def words_for(kind: Kind, numbers: Mapping[str, Any]) -> "Words":
    """A failure's words, with the numbers of its evidence if all that the words need are known."""
    plain, entry = WORDS[kind], _DATA["kinds"][kind.name].get("with_numbers", {})
    known = {**numbers, **_derived(numbers)}
    try:
        return replace(plain, **{name: text.format_map(known) for name, text in entry.items()})
    except (KeyError, ValueError):
        return plain


def _derived(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return values derived from the numbers: the free share of the card, and the new names of earlier flags."""
    found: dict[str, Any] = {}
    if numbers.get("total_gib") and (share := share_of(numbers.get("free_gib", 0), numbers["total_gib"])) >= 0.05:
        found["share"] = share
    if now := [f"{flag}: {text}" for flag in numbers.get("flags", ()) if (text := flag_now(flag)) is not None]:
        found["now"] = " ".join(now)
    return found


@dataclass(frozen=True, slots=True)
class Words:
    """A failure for people: its title, why it happens, what to do."""

    title: str
    cause: str
    remedy: str


#: A class, and the texts that show it.
Pattern = tuple[Kind, re.Pattern[str]]


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(texts), re.DOTALL)


_DATA = load_config("vllm/failures.toml")
WORDS = {Kind[name]: Words(entry["title"], entry["cause"], entry["remedy"]) for name, entry in _DATA["kinds"].items()}
#: Kinds that end a server even if no line says so, and kinds that only occur during a start.
DEADLY, OF_STARTS = (frozenset(Kind[name] for name in _DATA[part]) for part in ("deadly", "of_starts"))
#: Sentences for kinds after which the same start is tried once more.
RETRIES = {Kind[name]: sentence for name, sentence in _DATA["retries"].items()}
#: Texts that always are causes, and texts that count only if none of those is found.
SURE, LIKELY = (
    tuple((Kind[entry["kind"]], _any_of(entry["texts"])) for entry in _DATA[part]) for part in ("sure", "likely")
)
#: Texts without a class: torch's out of memory, consequences of an earlier cause, notes that look like errors, how a
#: process ended, and that somebody ended it.
OOM, CONSEQUENCE, NOTE, ENDED_BY, INTERRUPTED = (
    _any_of(_DATA["texts"][name]) for name in ("oom", "consequence", "note", "ended_by", "interrupted")
)


def first_match(patterns: Iterable[Pattern], text: str) -> tuple[Kind, int] | None:
    """The first class whose pattern matches a text, and the position."""
    for kind, match in patterns:
        if found := match.search(text):
            return kind, found.start()
    return None


#: Patterns of the numbers by class; the names of their groups are the names of the numbers.
_NUMBERS: dict[str, tuple[re.Pattern[str], ...]] = {
    kind: tuple(re.compile(text, re.DOTALL) for text in entry["texts"])
    for entry in _DATA["numbers"]
    for kind in entry["kinds"]
}
_NAMES = frozenset({"architecture", "error", "flag", "model", "model_type", "module"})


def numbers(kind: Kind, text: str) -> dict[str, Any]:
    """The numbers and names in the evidence of a class."""
    if kind is Kind.FLAG:
        words = text.split("unrecognized arguments:", 1)[-1].split()
        # argparse lists a flag's value, too.
        return {"flags": [word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)] or words}
    matches = (match for pattern in _NUMBERS.get(kind.name, ()) if (match := pattern.search(text)))
    found = {name: _read(name, group) for match in matches for name, group in match.groupdict().items()}
    # vLLM rounds to hundredths of a GiB, so a small KV cache reads 0.0.
    return {name: value for name, value in found.items() if value != 0.0 or kind is not Kind.KV_SHORT}


def _read(name: str, text: str) -> Any:
    if name in _NAMES:
        return text
    if name.endswith("_gib"):
        number, _, unit = text.partition(" ")
        return round(float(number) / (1024 if unit == "MiB" else 1), 3)
    return float(text) if name == "utilization" else int(text)
