"""Reads vLLM's log: its lines, the progress of a start, and the numbers that vLLM prints on the way.

A line is in the plain format, JSON or uvicorn's, and may have prefixes: our own timestamp, those of docker, compose,
journald and Kubernetes, and names of ranks.
"""

import json
import re
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import Any

from foundation.configs import load_config
from serverctl.hardware.facts import GIB
from serverctl.plan.memory import KvUse

#: Lines are cut at this length: a base64 image would fill the memory.
MOST_LINE = 16_384
#: One line of JSON holds a whole traceback.
_MOST_JSON = 1_000_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x00")
#: Prefixes of other programs; several may follow each other.
_STAMPS = re.compile(
    r"^(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)? "
    r"(?:std(?:out|err) [FP] )?"  # docker, Kubernetes
    r"|[\w.-]+ +\| (?! )"  # docker compose
    r"|[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d [\w.-]+ [\w.@/-]+(?:\[\d+\])?: "  # journald
    r"|\[(?:pod/)?[\w./-]+\] (?=[(A-Z])"  # kubectl --prefix, stern
    r"|\[rank\d+\]: ?)"  # torch
)
#: The process; Ray and Kubernetes put one name before another.
_PROCESS = re.compile(
    r"\((?P<name>[A-Za-z][\w .=-]*?(?=,? pid=)|(?:APIServer|ApiServer|EngineCore|Worker|VllmWorker)[\w .=-]*)"
    r"(?:,? pid=\d+)?(?:, ip=[\d.]+)?\) ?"
)
_LEVEL = r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_TIME = r"[\d-]*\d\d-\d\d \d\d:\d\d(?::\d\d)?(?:[.,]\d+)?"
_PLAIN = re.compile(rf"^{_LEVEL} (?:{_TIME}|(?=\[[\w./-]+:\d+\]))(?: ?\[?[\w./-]+:\d+\])? ?(?P<message>.*)$")
_UVICORN = re.compile(rf"^{_LEVEL}: +(?P<message>.*)$")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line."""

    text: str  # the line without colours and stamps
    message: str  # the text without prefixes
    level: str = ""  # as logged; "" for lines that are not vLLM's own
    process: str = ""  # APIServer, EngineCore, Worker, ...; "" if unknown


def parse_line(raw: str) -> LogLine:
    """Parse one line of a log; any text gives a LogLine."""
    # A progress bar redraws itself with carriage returns: the last state is what counts.
    text = raw.rstrip("\r\n").rsplit("\r", 1)[-1]
    text = text[: _MOST_JSON if text.startswith("{") else MOST_LINE]
    if "\x1b" in text or "\x00" in text:
        text = _ANSI.sub("", text)
    text = text.removeprefix("\ufeff")
    for _ in range(4):
        if (found := _STAMPS.match(text)) is None:
            break
        text = text[found.end() :]
    if text.startswith("{"):
        return _json_line(text)
    message, process = text, ""
    for _ in range(3):
        if (found := _PROCESS.match(message)) is None:
            break
        message, process = message[found.end() :], found["name"]
    if (found := _PLAIN.match(message)) or (found := _UVICORN.match(message)):
        return LogLine(text, found["message"], found["level"], process)
    return LogLine(text, message, "", process)


def _json_line(text: str) -> LogLine:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return LogLine(text, text)
    if not isinstance(document, dict):
        return LogLine(text, text)
    if isinstance(document.get("log"), str) and "stream" in document:  # docker's own files
        inner = document["log"]
        return LogLine(inner, inner) if inner.startswith('{"log"') else parse_line(inner)
    if "message" not in document:
        return LogLine(text, text)
    message = str(document["message"])
    if document.get("exc_info"):
        message = f"{message}\n{document['exc_info']}"
    process = str(document.get("vllm_process_name") or document.get("processName") or "")
    return LogLine(text, message, str(document.get("levelname") or ""), process)


_START = load_config("vllm/start.toml")


class Stage(IntEnum):
    """The stages of a start in their order; their words and marks are in `configs/vllm/start.toml`."""

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

    def __init__(self, _: int) -> None:
        entry = _START["stages"][self.name]
        self.words: str = entry["words"]
        self.mark = re.compile(entry.get("mark", r"(?!)"))


#: What vLLM prints on the way; the groups of a text are entries of the report.
_PRINTED = tuple(re.compile(text) for text in _START["printed"]["texts"])
_NEW_START = re.compile(r"vLLM (?:API )?server version|\s*(?:█|▄).*version \d")
_VERSION = re.compile(r"(?:vLLM (?:API )?server version|LLM engine \(v|[█▄].*\bversion)\s*v?(\d+\.\d+[\w.+-]*)")
#: vLLM's report every ten seconds, of one engine.
_LOAD = re.compile(r"Running: (\d+) reqs?, Waiting: (\d+) reqs?,.{0,80}?KV cache usage: ([\d.]+)%")
_PERCENT = re.compile(r"(\d{1,3})% ?(?:Completed|\|)")


@dataclass(frozen=True, slots=True)
class StartReport:
    """The log of one start so far. Sizes in bytes; None is unknown."""

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
    load: KvUse | None = None  # while serving: the moment with the most waiting requests, or else the fullest KV cache

    @property
    def words(self) -> str:
        """The stage for people, with its progress if known."""
        words = self.stage.words
        return words if self.percent is None else f"{words}, {self.percent} %"

    def to_json(self) -> dict[str, Any]:
        """What vLLM printed about itself, as JSON values; what it did not print is left out."""
        known = asdict(self).items()
        return {name: value for name, value in known if value is not None and name not in ("stage", "percent")}


def mark_of(line: LogLine) -> Stage | None:
    """The latest stage that a line shows; None if it shows none."""
    return next((stage for stage in reversed(Stage) if stage.mark.search(line.message)), None)


def is_new_start(line: LogLine) -> bool:
    """Whether another start begins here: a restarted container continues the same log."""
    return _NEW_START.match(line.message) is not None


def advance(report: StartReport, line: LogLine) -> StartReport:
    """The report after one more line. Stages never go back, because engines log interleaved."""
    message = line.message
    stage = mark_of(line)
    if stage is not None and stage >= report.stage:
        percent = _PERCENT.search(message)
        report = replace(report, stage=stage, percent=int(percent[1]) if percent else None)
    return _numbers(report, message)


def served(report: StartReport, line: LogLine) -> StartReport:
    """Return the report after one more line of a serving engine. It keeps the moment of the highest load."""
    match = _LOAD.search(line.message)
    if match is None:
        return report
    report = replace(report, stage=Stage.SERVING)
    use = KvUse(int(match[1]), int(match[2]), float(match[3]) / 100)
    worse = report.load is None or (use.waiting, use.used) > (report.load.waiting, report.load.used)
    return replace(report, load=use) if worse and use.running else report


def _numbers(report: StartReport, message: str) -> StartReport:
    found: dict[str, Any] = {}
    for text in _PRINTED:
        if match := text.search(message):
            found |= {name: _read(name, group) for name, group in match.groupdict().items()}
    if "kv_tokens" in found:
        found["engines"] = report.engines + 1
    if report.version is None and (match := _VERSION.search(message)):
        found["version"] = match[1].rstrip(").,")
    return replace(report, **found) if found else report


def _read(name: str, text: str) -> str | float:
    """An entry of the report from its text: a name, a ratio, tokens, or else GiB."""
    if name == "attention":
        return text
    plain = text.replace(",", "")
    if name == "concurrency":
        return float(plain)
    return int(plain) if name in ("kv_tokens", "max_model_len") else round(float(plain) * GIB)
