"""The settings of a server: their names, vLLM's flags for them, and the values they accept.

`None` means that vLLM's default applies and no flag is emitted.
"""

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from foundation.errors import UsageError
from serverctl.vllm.capabilities import flag_now

KnobKind: TypeAlias = Literal["int", "float", "text", "switch"]


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting: the kind of its value, its effect, its limits, and vLLM's flag for it."""

    kind: KnobKind
    about: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    flag: str = ""
    step: int = 1  # an integer must be a multiple of it


def _knob(*values: Any, **more: Any) -> Any:
    return field(default=None, metadata={"knob": Knob(*values, **more)})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server; None keeps vLLM's default. A flag is named like its setting unless `flag` is given.

    `max_model_len` may be "auto": vLLM then chooses the longest context that fits.
    """

    dtype: str | None = _knob("text", "number format", choices=("auto", "half", "float16", "bfloat16", "float32"))
    quantization: str | None = _knob("text", "quantise while loading: fp8_per_channel, fp8_per_tensor; none: 16 bits")
    max_model_len: int | str | None = _knob("int", "tokens of prompt and answer together, or auto", 512)
    images: int | None = _knob("int", "screenshots in one request", 1, 64, flag="--limit-mm-per-prompt")
    longest_edge: int | None = _knob(
        "int", "pixel budget of one screenshot", 65_536, 16_777_216, flag="--mm-processor-kwargs"
    )
    max_num_seqs: int | None = _knob("int", "requests at a time", 1, 65_536)
    max_num_batched_tokens: int | None = _knob("int", "tokens of one prefill step", 256)
    gpu_memory_utilization: float | None = _knob("float", "share of the card's memory", 0.05, 0.99)
    kv_cache_memory_bytes: int | None = _knob("int", "KV cache in bytes, instead of a share", 1 << 20)
    kv_cache_dtype: str | None = _knob("text", "number format of the KV cache: auto, fp8")
    #: FlashAttention's and Triton's kernels take multiples of 16 only.
    block_size: int | None = _knob("int", "tokens in a block of the KV cache", 16, 65_536, step=16)
    enforce_eager: bool | None = _knob("switch", "no compilation and no CUDA graphs")
    max_cudagraph_capture_size: int | None = _knob("int", "largest batch with a CUDA graph", 1)
    performance_mode: str | None = _knob(
        "text", "what vLLM tunes itself for", choices=("balanced", "interactivity", "throughput")
    )
    tensor_parallel_size: int | None = _knob("int", "cards that share every layer", 1, 64)
    pipeline_parallel_size: int | None = _knob("int", "groups of cards that share the layers", 1, 64)
    data_parallel_size: int | None = _knob("int", "engines behind one port", 1, 64)
    mm_encoder_tp_mode: str | None = _knob("text", "how the vision tower is shared", choices=("weights", "data"))
    attention_backend: str | None = _knob("text", "attention kernels: FLASH_ATTN, FLASHINFER, TRITON_ATTN")
    reasoning_parser: str | None = _knob("text", "parser of thoughts in answers: qwen3, deepseek_r1")
    spec_method: str | None = _knob(
        "text", "speculative decoding: how tokens are guessed",
        choices=("ngram", "ngram_gpu", "suffix", "mtp", "draft_model", "eagle", "eagle3"),
    )  # fmt: skip
    spec_model: str | None = _knob("text", "the model that guesses (draft_model, eagle, eagle3)")
    spec_tokens: int | None = _knob("int", "tokens guessed at a time", 1, 32)
    enable_prefix_caching: bool | None = _knob("switch", "reuse the cache of equal prompt prefixes (vLLM's default)")
    mm_processor_cache_gb: float | None = _knob("float", "memory for processed images, GiB", 0, 512)
    renderer_num_workers: int | None = _knob("int", "threads that prepare images and text (vLLM's default: 1)", 1, 64)
    cpu_offload_gb: float | None = _knob("float", "weights kept in main memory, GiB a card: slow", 0, 1024)
    log_requests: bool | None = _knob("switch", "log every request", flag="--enable-log-requests")

    def get(self, name: str) -> Any:
        """Return one setting by name."""
        return getattr(self, name)

    def given(self) -> dict[str, Any]:
        """Return the settings that are not None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


#: Every field of `Settings` by name; the flags are those of `vllm serve` 0.33 (configs/vllm/0.33.0.json).
KNOBS: Mapping[str, Knob] = {
    entry.name: replace(knob, flag=knob.flag or f"--{entry.name.replace('_', '-')}")
    for entry in fields(Settings)
    for knob in [entry.metadata["knob"]]
}


def check_value(name: str, value: Any, origin: str) -> Any:
    """Convert and check a setting's value from TOML or text. Raises UsageError that names `origin` if it is invalid."""
    knob = KNOBS.get(name)
    if knob is None:
        near = difflib.get_close_matches(name, KNOBS, 2, 0.6)
        other = f"Did you mean {' or '.join(near)}?" if near else f"Settings are: {', '.join(KNOBS)}."
        raise UsageError(f"{origin}: there is no setting {name!r}.", flag_now(f"--{name}") or other)
    if name == "max_model_len" and value in ("auto", "-1", -1):
        return "auto"
    if name == "quantization" and isinstance(value, str) and value.casefold() == "none":
        return "none"
    result = _convert(knob.kind, value)
    least, most = (result if bound is None else bound for bound in (knob.least, knob.most))
    if result is None or not least <= result <= most or (knob.kind == "int" and result % knob.step):
        raise UsageError(f"{origin}: {name} cannot be {value!r}.", f"It takes {_takes(knob)}: {knob.about}.")
    if knob.choices and result not in knob.choices:
        raise UsageError(f"{origin}: {name} cannot be {value!r}.", f"Choose one of: {', '.join(knob.choices)}.")
    return result


#: Suffixes of whole numbers, as vLLM reads them, and whether a decimal point may stand before them: 25.6k, but 32K.
_UNITS = {letter: (1000**power, True) for power, letter in enumerate("kmgt", 1)}
_UNITS |= {letter: (1024**power, False) for power, letter in enumerate("KMGT", 1)}


def _convert(kind: KnobKind, value: Any) -> Any:
    """Convert a value to a setting's kind; None if that is impossible."""
    if kind == "switch":
        spelled = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        return spelled.get(str(value).lower())
    if isinstance(value, bool):
        return None
    if kind == "text":
        return value if isinstance(value, str) and value and not value.startswith("-") else None
    text, times = str(value).replace("_", ""), 1
    if kind == "int" and text[-1:] in _UNITS:
        times, pointed = _UNITS[text[-1]]
        text = text[:-1] if pointed or text[:-1].isdigit() else ""
    try:
        number = float(text) * times
    except ValueError:
        return None
    if kind == "float":
        return number if math.isfinite(number) else None
    return int(number) if number.is_integer() else None


def _takes(knob: Knob) -> str:
    noun = {"int": "a whole number", "float": "a number", "text": "a name", "switch": "true or false"}[knob.kind]
    noun = noun if knob.step == 1 else f"a multiple of {knob.step}"
    if knob.least is not None and knob.most is not None:
        return f"{noun} from {knob.least:.10g} to {knob.most:.10g}"
    return f"{noun} from {knob.least:.10g}" if knob.least is not None else noun


def parse_assignments(texts: list[str]) -> dict[str, Any]:
    """Parse `--set NAME=VALUE` texts into settings. Raises UsageError."""
    values: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        name = name.strip().removeprefix("--").replace("-", "_")
        if not sign:
            raise UsageError(f"--set {text} has no value.", "Write --set NAME=VALUE, for example max_model_len=16384.")
        values[name] = check_value(name, value.strip(), "--set")
    return values


def flag_text(value: Any) -> str:
    """Format a value for a flag: integers without suffix (vLLM reads 32k as 32000), JSON compact."""
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"))
    return f"{value:g}" if isinstance(value, float) else str(value)


def names_flag(words: Sequence[str], *flags: str) -> bool:
    """Return whether command-line words name one of these flags, as `--flag value` or `--flag=value`."""
    return any(word.split("=")[0] in flags for word in words)
