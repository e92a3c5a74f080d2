"""How far a start has come, and the numbers vLLM prints on the way, from its log alone."""

import re
from dataclasses import dataclass, replace
from enum import IntEnum

from serverctl.diagnose.lines import LogLine
from serverctl.hardware.facts import GIB


class Stage(IntEnum):
    """The stages of a start, in order (facts of vLLM 0.33; some are skipped on some platforms)."""

    LAUNCHED = 0
    IMPORTED = 1
    CONFIGURED = 2
    ENGINE = 3
    DOWNLOADING = 4
    LOADING = 5
    LOADED = 6
    PROFILING = 7
    COMPILING = 8
    KV_CACHE = 9
    GRAPHS = 10
    WARMED = 11
    LISTENING = 12
    SERVING = 13


#: What a stage means, for a person.
STAGE_WORDS = {
    Stage.LAUNCHED: "starting Python",
    Stage.IMPORTED: "reading the configuration",
    Stage.CONFIGURED: "preparing the engine",
    Stage.ENGINE: "starting the engine",
    Stage.DOWNLOADING: "downloading the model",
    Stage.LOADING: "loading the model",
    Stage.LOADED: "model loaded",
    Stage.PROFILING: "measuring memory",
    Stage.COMPILING: "compiling",
    Stage.KV_CACHE: "setting up the KV cache",
    Stage.GRAPHS: "capturing CUDA graphs",
    Stage.WARMED: "engine ready",
    Stage.LISTENING: "opening the port",
    Stage.SERVING: "serving",
}

#: The first words that tell a stage, in the order they are looked for.
STAGE_MARKS: tuple[tuple[Stage, re.Pattern[str]], ...] = (
    (Stage.SERVING, re.compile(r"^Application startup complete")),
    (Stage.LISTENING, re.compile(r"^Starting vLLM (?:API )?server")),
    (Stage.WARMED, re.compile(r"^init engine \(profile, create kv cache, warmup model\) took")),
    (Stage.GRAPHS, re.compile(r"Capturing (?:CUDA )?(?:cuda)?graph|Graph capturing finished|CUDA graph pool memory")),
    (
        Stage.KV_CACHE,
        re.compile(r"Available KV cache memory|KV cache size: |Explicitly set \(.*for KV cache|# \w+ blocks:"),
    ),
    (
        Stage.COMPILING,
        re.compile(
            r"torch\.compile took|Dynamo bytecode transform|Compiling a graph|Using cache directory: .*torch_compile"
        ),
    ),
    (Stage.PROFILING, re.compile(r"Encoder cache will be initialized|profiled with \d+ ")),
    (Stage.LOADED, re.compile(r"Model loading took|Loading weights took|Loading model weights took")),
    (
        Stage.LOADING,
        re.compile(r"Loading (?:safetensors|pt) checkpoint shards|Starting to load model|Initializing model took"),
    ),
    (
        Stage.DOWNLOADING,
        re.compile(
            r"Time spent downloading weights|Fetching \d+ files|Downloading shards|^[\w.-]+\.safetensors: +\d+%"
        ),
    ),
    (Stage.ENGINE, re.compile(r"Initializing a V1 LLM engine")),
    (Stage.CONFIGURED, re.compile(r"^Resolved architecture")),
    (Stage.IMPORTED, re.compile(r"^vLLM (?:API )?server version|non-default args:|^\s*(?:█|▄).*version \d")),
)
_NEW_START = re.compile(r"vLLM (?:API )?server version|\s*(?:█|▄).*version \d")
_PERCENT = re.compile(r"(\d{1,3})% ?(?:Completed|\|)")


@dataclass(frozen=True, slots=True)
class StartReport:
    """What the log of one start said so far. Sizes in bytes, None where it did not say.

    Args:
        stage: the furthest stage seen.
        percent: progress within it, 0 to 100.
        version: vLLM's.
        weights: memory of the loaded model.
        kv: memory for the KV cache.
        kv_tokens: tokens it holds (of one engine).
        max_model_len: the context that the concurrency was printed for.
        concurrency: requests of that context at a time (of one engine).
        engines: how many engines printed it.
        consumed: weights and what torch does not see, as vLLM measured it.
        activations: peak of the activations.
        graphs: captured CUDA graphs.
        free_at_start: free memory of the card when vLLM looked.
        attention: the attention backend in use.
    """

    stage: Stage = Stage.LAUNCHED
    percent: int | None = None
    version: str | None = None
    weights: int | None = None
    kv: int | None = None
    kv_tokens: int | None = None
    max_model_len: int | None = None
    concurrency: float | None = None
    engines: int = 0
    consumed: int | None = None
    activations: int | None = None
    graphs: int | None = None
    free_at_start: int | None = None
    attention: str | None = None

    @property
    def words(self) -> str:
        """The stage for a person, with its progress where known."""
        words = STAGE_WORDS[self.stage]
        return words if self.percent is None else f"{words}, {self.percent} %"


def mark_of(line: LogLine) -> Stage | None:
    """The stage that a line tells, None where it tells none."""
    message = line.message
    return next((stage for stage, mark in STAGE_MARKS if mark.search(message)), None)


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


def _numbers(report: StartReport, message: str) -> StartReport:
    if found := re.search(r"(?:vLLM (?:API )?server version|LLM engine \(v|\bversion)\s*v?(\d+\.\d+[\w.+-]*)", message):
        report = replace(report, version=report.version or found[1].rstrip(").,"))
    if found := re.search(r"(?:Model loading|Loading model weights) took ([\d.]+) (GiB|GB)", message):
        report = replace(report, weights=_gib(found[1]))
    if (found := re.search(r"Available KV cache memory: ([\d.,-]+) GiB", message)) or (
        found := re.search(r"Explicitly set \(([\d.]+)/[\d.]+\) GiB for KV cache", message)
    ):
        report = replace(report, kv=_gib(found[1]))
    if found := re.search(r"KV cache size: ([\d,]+) tokens", message):
        report = replace(report, kv_tokens=int(found[1].replace(",", "")), engines=report.engines + 1)
    if found := re.search(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x", message):
        report = replace(report, max_model_len=int(found[1].replace(",", "")), concurrency=float(found[2]))
    if found := re.search(r"Free memory on device \S*\s*\(([\d.]+)/[\d.]+ GiB\) on startup", message):
        report = replace(report, free_at_start=_gib(found[1]))
    if found := re.search(
        r"Actual usage is ([\d.]+) GiB for (?:consumed memory|weight).*?([\d.]+) GiB for peak activation"
        r".*?([\d.]+) GiB for CUDAGraph memory",
        message,
        re.DOTALL,
    ):
        report = replace(report, consumed=_gib(found[1]), activations=_gib(found[2]), graphs=_gib(found[3]))
    if found := re.search(r"Graph capturing finished in .*? took ([\d.]+) GiB", message):
        report = replace(report, graphs=_gib(found[1]))
    if (found := re.search(r"Using (\w+) attention backend", message)) or (
        found := re.search(r"Using (Flash Attention|FlashInfer|Triton) backend", message)
    ):
        report = replace(report, attention=found[1])
    return report


def read_report(lines: list[LogLine]) -> StartReport:
    """The report of a whole log."""
    report = StartReport()
    for line in lines:
        report = advance(report, line)
    return report
