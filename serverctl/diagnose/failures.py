"""The classes of failures, their words for people and their texts in a log (`configs/vllm/failures.toml`)."""

from collections.abc import Mapping
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
    return str(FAILURES["kinds"][kind.name].get("class", kind.name))


def words_for(kind: Kind, numbers: Mapping[str, Any]) -> "Words":
    """A failure's words, with the numbers of its evidence if all that the words need are known."""
    plain, entry = WORDS[kind], FAILURES["kinds"][kind.name].get("with_numbers", {})
    known = dict(numbers)
    if numbers.get("total_gib") and (share := share_of(numbers.get("free_gib", 0), numbers["total_gib"])) >= 0.05:
        known["share"] = share  # the free share of the card
    if now := [f"{flag}: {text}" for flag in numbers.get("flags", ()) if (text := flag_now(flag)) is not None]:
        known["now"] = " ".join(now)  # the new names of earlier flags
    try:
        return replace(plain, **{name: text.format_map(known) for name, text in entry.items()})
    except (KeyError, ValueError):
        return plain


@dataclass(frozen=True, slots=True)
class Words:
    """A failure for people: its title, why it happens, what to do."""

    title: str
    cause: str
    remedy: str


FAILURES = load_config("vllm/failures.toml")
WORDS = {
    Kind[name]: Words(entry["title"], entry["cause"], entry["remedy"]) for name, entry in FAILURES["kinds"].items()
}
#: Sentences for kinds after which the same start is tried once more.
RETRIES = {Kind[name]: sentence for name, sentence in FAILURES["retries"].items()}
