"""Names the failure in a log: class, evidence, and the numbers in it."""

import re
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from serverctl.diagnose.failures import CONSEQUENCE, OOM, PATTERNS, WORDS, Kind, Words
from serverctl.diagnose.lines import LogLine, parse_line
from serverctl.diagnose.stages import Stage, StartReport, advance

#: Lines of the end of a log that are looked at; a server that ran for days has millions.
TAIL = 4000
_EXCEPTION = re.compile(r"^(?:[\w.]+\.)?(?:[A-Z]\w*(?:Error|Exception|Exit|Resources|Interrupt)): ?|error: ")


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong.

    Args:
        kind: the class.
        stage: how far the start had come.
        evidence: the line that says so, "" where none does.
        numbers: what it names: sizes in GiB, tokens, flags.
        exit_status: of the process; negative for a signal, None while it runs.
        report: everything the log said about the start.
    """

    kind: Kind
    stage: Stage
    evidence: str
    numbers: dict[str, Any] = field(default_factory=dict)
    exit_status: int | None = None
    report: StartReport = StartReport()

    @property
    def words(self) -> Words:
        """The failure in plain words."""
        return WORDS[self.kind]

    @property
    def serving(self) -> bool:
        """Whether it happened after the server had been ready."""
        return self.stage >= Stage.SERVING


def classify_log(raw: Iterable[str], exit_status: int | None = None) -> Failure:
    """The failure in a log's lines; `Kind.NONE` where there is none."""
    lines: list[LogLine] = []
    report = StartReport()
    for text in raw:
        line = parse_line(text)
        report = advance(report, line)
        lines.append(line)
        if len(lines) > 2 * TAIL:
            del lines[:TAIL]
    return classify(lines[-TAIL:], report, exit_status)


def classify(
    lines: Sequence[LogLine], report: StartReport, exit_status: int | None = None, asked: bool = False
) -> Failure:
    """The failure that some lines and an exit status show.

    Args:
        lines: the end of the log.
        report: how far the start came.
        exit_status: None for a log alone or a process that still runs.
        asked: whether somebody asked the process to end.
    """
    blocks = _blocks(lines)
    found = _first_match(blocks, report)
    if found is not None:
        kind, evidence = found
        return Failure(kind, report.stage, evidence, _numbers(kind, evidence), exit_status, report)
    if asked:
        return Failure(Kind.NONE, report.stage, "", {}, exit_status, report)
    died = next((line for line in lines if CONSEQUENCE.search(line.message)), None)
    if died is not None:
        cause = _first_error(lines) or died
        return Failure(Kind.ENGINE_DIED, report.stage, cause.message.strip()[:600], {}, exit_status, report)
    if exit_status is not None and exit_status < 0:
        name = _signal_name(-exit_status)
        kind = Kind.KILLED
        return Failure(kind, report.stage, f"ended by {name}", {"signal": name}, exit_status, report)
    error = _first_error(lines)
    if exit_status is not None or (error is not None and report.stage < Stage.SERVING):
        evidence = error.message.strip()[:600] if error else _last_text(lines)
        return Failure(Kind.EXITED, report.stage, evidence, {}, exit_status, report)
    return Failure(Kind.NONE, report.stage, "", {}, exit_status, report)


def _blocks(lines: Sequence[LogLine]) -> list[str]:
    """What can be evidence: errors, exceptions and the parser's complaints, but no lines of code and no plain reports."""
    kept: list[str] = []
    for line in lines:
        if line.level in ("DEBUG", "INFO") or (line.level == "WARNING" and not OOM.search(line.message)):
            continue
        code_follows = False
        for part in line.message.split("\n"):
            message = part.strip()
            is_code = code_follows and part.startswith((" ", "\t"))
            code_follows = message.startswith('File "')
            if not message or is_code or code_follows or message[0] in "^~" or message.startswith("raise "):
                continue
            if kept and _continues(part, kept[-1]):
                kept[-1] = f"{kept[-1]} {message}"
                continue
            kept.append(message)
    return kept


def _continues(part: str, before: str) -> bool:
    """pydantic breaks its messages over indented lines."""
    return part.startswith("  ") and len(before) < 2000 and (before.endswith("Config") or "Value error" in part)


def _first_match(blocks: Sequence[str], report: StartReport) -> tuple[Kind, str] | None:
    """The class of the first text that names a cause. Later texts repeat it, or follow from it."""
    for text in blocks:
        if CONSEQUENCE.search(text) and not OOM.search(text):
            continue
        for pattern in PATTERNS:
            if found := pattern.match.search(text):
                return pattern.kind, _sentence(text, found.start())
        if found := OOM.search(text):
            return _oom(text, report.stage), _sentence(text, found.start())
    return None


def _oom(text: str, stage: Stage) -> Kind:
    if "warming up sampler" in text or "profil" in text:
        return Kind.PROFILE_OOM
    if stage >= Stage.SERVING:
        return Kind.RUNTIME_OOM
    if stage >= Stage.KV_CACHE:
        return Kind.GRAPH_OOM
    return Kind.PROFILE_OOM if stage >= Stage.LOADED else Kind.LOAD_OOM


def _sentence(text: str, position: int) -> str:
    """The evidence: the text from its exception's name on, of readable length."""
    start = 0
    for found in _EXCEPTION.finditer(text[: position + 1]):
        start = found.start()
    if position - start > 300:
        start = position
    return " ".join(text[start : start + 600].split())


def _first_error(lines: Sequence[LogLine]) -> LogLine | None:
    for line in lines:
        message = line.message.strip()
        if CONSEQUENCE.search(message):
            continue
        if _EXCEPTION.match(message) and not message.startswith(("SystemExit", "KeyboardInterrupt")):
            return line
    return next((line for line in lines if line.level in ("ERROR", "CRITICAL") and line.message.strip()), None)


def _last_text(lines: Sequence[LogLine]) -> str:
    return next((line.message.strip()[:600] for line in reversed(lines) if line.message.strip()), "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _numbers(kind: Kind, text: str) -> dict[str, Any]:
    """What the evidence names, by class."""
    found: dict[str, Any] = {}
    match kind:
        case Kind.FREE_MEM | Kind.NO_KV:
            if pair := re.search(r"\((-?[\d.]+)/([\d.]+) GiB\)", text):
                found["free_gib"], found["total_gib"] = float(pair[1]), float(pair[2])
            if share := re.search(r"utilization \(([\d.]+), ([\d.]+) GiB\)", text):
                found["utilization"], found["wanted_gib"] = float(share[1]), float(share[2])
        case Kind.KV_SHORT:
            if length := re.search(r"max seq len \((\d+)\)", text):
                found["max_model_len"] = int(length[1])
            if needed := re.search(r"\(?([\d.]+) GiB KV cache is needed", text):
                found["needed_gib"] = float(needed[1])
            if has := re.search(r"available KV cache memory \(([\d.]+) GiB\)", text):
                found["available_gib"] = float(has[1])
            estimate = re.search(r"estimated maximum model length is (\d+)", text) or re.search(
                r"stored in KV cache \((\d+)\)", text
            )
            if estimate:
                found["fits"] = int(estimate[1])
        case Kind.FLAG:
            found["flags"] = text.split("unrecognized arguments:", 1)[-1].split()
        case Kind.FLAG_VALUE:
            if flag := re.search(r"argument (\S+?):", text):
                found["flag"] = flag[1]
        case Kind.QUANT_CC:
            if pair := re.search(r"capability:\s*(\d+)\.?\s*Current capability:\s*(\d+)", text):
                found["needed"], found["has"] = int(pair[1]), int(pair[2])
        case Kind.MAX_LEN:
            if pair := re.search(r"max_model_len \((\d+)\).*?max_position_embeddings=(\d+)", text):
                found["max_model_len"], found["most"] = int(pair[1]), int(pair[2])
        case Kind.LOAD_OOM | Kind.PROFILE_OOM | Kind.GRAPH_OOM | Kind.RUNTIME_OOM:
            if tried := re.search(r"Tried to allocate ([\d.]+) (GiB|MiB)", text):
                found["tried_gib"] = round(float(tried[1]) / (1 if tried[2] == "GiB" else 1024), 3)
            if free := re.search(r"of which ([\d.]+) (GiB|MiB) is free", text):
                found["free_gib"] = round(float(free[1]) / (1 if free[2] == "GiB" else 1024), 3)
        case Kind.IMPORT:
            if module := re.search(r"No module named '([\w.]+)'", text):
                found["module"] = module[1]
        case _:
            pass
    return found
