"""How far a start has come, and the numbers vLLM prints on the way, from its log alone."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from serverctl.diagnose.lines import LogLine
from serverctl.hardware.facts import GIB


class Stage(IntEnum):
    """The stages of a start in their order, some of which are skipped on some platforms (vLLM 0.33)."""

    words: str
    mark: re.Pattern[str]

    def __new__(cls, number: int, words: str, mark: str = r"(?!)") -> "Stage":
        """A stage by its number, its words for a person, and the text of the log that tells it."""
        stage = int.__new__(cls, number)
        stage._value_, stage.words, stage.mark = number, words, re.compile(mark)
        return stage

    LAUNCHED = 0, "starting Python"
    IMPORTED = (
        1,
        "reading the configuration",
        r"^vLLM (?:API )?server version|non-default args:|^\s*(?:█|▄).*version \d",
    )
    CONFIGURED = 2, "preparing the engine", r"^Resolved architecture"
    ENGINE = 3, "starting the engine", r"Initializing a V1 LLM engine"
    DOWNLOADING = (
        4,
        "downloading the model",
        r"Time spent downloading weights|Fetching \d+ files|Downloading shards|^[\w.-]+\.safetensors: +\d+%",
    )
    LOADING = (
        5,
        "loading the model",
        r"Loading (?:safetensors|pt) checkpoint shards|Starting to load model|Initializing model took",
    )
    LOADED = 6, "model loaded", r"Model loading took|Loading weights took|Loading model weights took"
    PROFILING = 7, "measuring memory", r"Encoder cache will be initialized|profiled with \d+ "
    COMPILING = (
        8,
        "compiling",
        r"torch\.compile took|Dynamo bytecode transform|Compiling a graph|Using cache directory: .*torch_compile",
    )
    KV_CACHE = (
        9,
        "setting up the KV cache",
        r"Available KV cache memory|KV cache size: |Explicitly set \(.*for KV cache|# \w+ blocks:",
    )
    GRAPHS = (
        10,
        "capturing CUDA graphs",
        r"Capturing (?:CUDA )?(?:cuda)?graph|Graph capturing finished|CUDA graph pool memory",
    )
    WARMED = 11, "engine ready", r"^init engine \(profile, create kv cache, warmup model\) took"
    LISTENING = 12, "opening the port", r"^Starting vLLM (?:API )?server"
    SERVING = 13, "serving", r"^Application startup complete"


_NEW_START = re.compile(r"vLLM (?:API )?server version|\s*(?:█|▄).*version \d")
_PERCENT = re.compile(r"(\d{1,3})% ?(?:Completed|\|)")


@dataclass(frozen=True, slots=True)
class StartReport:
    """What the log of one start said so far. Sizes in bytes, None where it did not say."""

    stage: Stage = Stage.LAUNCHED  # the furthest stage seen
    percent: int | None = None  # progress within it, 0 to 100
    version: str | None = None  # vLLM's
    weights: int | None = None  # memory of the loaded model
    kv: int | None = None  # memory for the KV cache
    kv_tokens: int | None = None  # tokens it holds (of one engine)
    max_model_len: int | None = None  # the context that the concurrency was printed for
    concurrency: float | None = None  # requests of that context at a time (of one engine)
    engines: int = 0  # how many engines printed it
    consumed: int | None = None  # weights and what torch does not see, as vLLM measured it
    activations: int | None = None  # peak of the activations
    graphs: int | None = None  # captured CUDA graphs
    free_at_start: int | None = None  # free memory of the card when vLLM looked
    attention: str | None = None  # the attention backend in use

    @property
    def words(self) -> str:
        """The stage for a person, with its progress where known."""
        words = self.stage.words
        return words if self.percent is None else f"{words}, {self.percent} %"


def mark_of(line: LogLine) -> Stage | None:
    """The stage that a line tells, None where it tells none; the latest where it tells several."""
    return next((stage for stage in reversed(Stage) if stage.mark.search(line.message)), None)


def is_new_start(line: LogLine) -> bool:
    """Whether another start of the server begins here: a container that is restarted goes on in the same log."""
    return _NEW_START.match(line.message) is not None


def advance(report: StartReport, line: LogLine) -> StartReport:
    """The report after one more line. Stages never go back: engines log interleaved."""
    message = line.message
    stage = mark_of(line)
    if stage is not None and stage >= report.stage:
        percent = _PERCENT.search(message)
        report = replace(report, stage=stage, percent=int(percent[1]) if percent else None)
    return _numbers(report, message)


def _gib(text: str) -> int:
    return round(float(text.replace(",", "")) * GIB)


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


#: What vLLM prints on the way: texts, and the entries of the report that their groups fill, in bytes and tokens.
_PRINTED: Mapping[re.Pattern[str], Mapping[str, Callable[[str], Any]]] = {
    re.compile(r"(?:Model loading|Loading model weights) took ([\d.]+) (?:GiB|GB)"): {"weights": _gib},
    re.compile(r"Available KV cache memory: ([\d.,-]+) GiB"): {"kv": _gib},
    re.compile(r"Explicitly set \(([\d.]+)/[\d.]+\) GiB for KV cache"): {"kv": _gib},
    re.compile(r"KV cache size: ([\d,]+) tokens"): {"kv_tokens": _whole},
    re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x"): {
        "max_model_len": _whole,
        "concurrency": float,
    },
    re.compile(r"Free memory on device \S*\s*\(([\d.]+)/[\d.]+ GiB\) on startup"): {"free_at_start": _gib},
    re.compile(
        r"Actual usage is ([\d.]+) GiB for (?:consumed memory|weight).*?([\d.]+) GiB for peak activation"
        r".*?([\d.]+) GiB for CUDAGraph memory",
        re.DOTALL,
    ): {"consumed": _gib, "activations": _gib, "graphs": _gib},
    re.compile(r"Graph capturing finished in .*? took ([\d.]+) GiB"): {"graphs": _gib},
    re.compile(r"Using (\w+) attention backend"): {"attention": str},
    re.compile(r"Using (Flash Attention|FlashInfer|Triton) backend"): {"attention": str},
}
_VERSION = re.compile(r"(?:vLLM (?:API )?server version|LLM engine \(v|\bversion)\s*v?(\d+\.\d+[\w.+-]*)")


def _numbers(report: StartReport, message: str) -> StartReport:
    found: dict[str, Any] = {}
    for text, entries in _PRINTED.items():
        if match := text.search(message):
            found |= {name: read(part) for (name, read), part in zip(entries.items(), match.groups(), strict=True)}
    if "kv_tokens" in found:
        found["engines"] = report.engines + 1
    if report.version is None and (match := _VERSION.search(message)):
        found["version"] = match[1].rstrip(").,")
    return replace(report, **found) if found else report
