"""Finds the failure in a log: its class, the evidence and its numbers."""

import re
import signal
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from serverctl.diagnose.failures import FAILURES, Kind, Words, group_of, words_for
from serverctl.diagnose.stages import LogLine, Stage, StartReport, advance, is_new_start, mark_of, parse_line, served

#: Lines kept from the end of a log; a server that ran for days has millions.
TAIL = 4000
#: Lines kept from the beginning of a start's errors, even if many follow: they hold the cause.
_HEAD = 2000
#: Lines before an engine's death that may hold its cause; older errors were those of single requests.
_NEAR = 600
#: Characters of a line that are searched; longer lines are dumps of data.
_MOST_TEXT = 4000
_SHUTDOWN = "[shutdown] API server: shutdown triggered"
_OUR_START = re.compile(r"^mai-server: start \d+:")
_EXCEPTION = re.compile(
    r"(?:^|(?<=[\s:(]))(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Exit|Resources|Interrupt)\b(?::|$) ?"
)
#: pydantic's errors span several lines: the class, the field if the error concerns one, and the indented error.
_REFUSED = re.compile(r"\d+ validation errors? for \w+(?: [\w.]+)?$")
_REFUSED_WHAT = re.compile(r"\d+ validation errors? for \w+$")
#: A line of a traceback with the function's name, and an exception without a message.
_FRAME = re.compile(r'File "[^"]+", line \d+, in (\w+)')
_BARE = re.compile(r"(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)")
#: An exception whose message begins on the next line, indented.
_UNSAID = re.compile(rf"{_BARE.pattern}:")
_PARSER_ERROR = re.compile(r"^[\w. -]*\berror: ")
_CRASHES = frozenset({"SIGSEGV", "SIGABRT", "SIGILL", "SIGFPE"})
_SHELL = {
    "Segmentation fault": "SIGSEGV", "Illegal instruction": "SIGILL", "Aborted": "SIGABRT", "Killed": "SIGKILL",
    "Terminated": "SIGTERM",
}  # fmt: skip

#: A class, and the texts that show it.
Pattern = tuple[Kind, re.Pattern[str]]


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(texts), re.DOTALL)


#: Kinds that end a server even if no line says so, and kinds that only occur during a start.
DEADLY, OF_STARTS = (frozenset(Kind[name] for name in FAILURES[part]) for part in ("deadly", "of_starts"))
#: Texts that always are causes, and texts that count only if none of those is found.
SURE, LIKELY = (
    tuple((Kind[entry["kind"]], _any_of(entry["texts"])) for entry in FAILURES[part]) for part in ("sure", "likely")
)
#: Texts without a class: torch's out-of-memory error, consequences of an earlier cause, notes that look like errors,
#: the way a process ended, and an interruption.
OOM, CONSEQUENCE, NOTE, ENDED_BY, INTERRUPTED = (
    _any_of(FAILURES["texts"][name]) for name in ("oom", "consequence", "note", "ended_by", "interrupted")
)


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong."""

    kind: Kind  # the class
    stage: Stage  # how far the start had come
    evidence: str = ""  # the line that shows it
    numbers: dict[str, Any] = field(default_factory=dict)  # in the evidence: sizes in GiB, tokens, flags
    exit_status: int | None = None  # of the process; negative for a signal, None while it runs
    report: StartReport = field(default_factory=StartReport)  # everything the log said about the start

    @property
    def words(self) -> Words:
        """The failure in plain words."""
        return words_for(self.kind, self.numbers)

    @property
    def serving(self) -> bool:
        """Whether it happened after the server had been ready."""
        return self.stage >= Stage.SERVING

    def summary(self) -> dict[str, Any]:
        """The explanation for a person, as JSON values."""
        return {"kind": self.kind.name, **asdict(self.words), "evidence": self.evidence}

    def to_json(self) -> dict[str, Any]:
        """Everything but the start's report, as JSON values."""
        stage = self.stage.name.lower()
        known = {"class": group_of(self.kind), "stage": stage, "exit_status": self.exit_status, "numbers": self.numbers}
        return {**self.summary(), **known}


def classify_log(raw: Iterable[str], exit_status: int | None = None) -> Failure:
    """The failure in a log's lines, `Kind.NONE` if there is none. Only the last start counts."""
    report = StartReport()
    head: list[LogLine] = []
    tail: deque[LogLine] = deque(maxlen=TAIL)
    last: LogLine | None = None
    for text in raw:
        line = parse_line(text)
        before = report.stage
        if _OUR_START.match(line.message) or (before > Stage.IMPORTED and is_new_start(line)):
            report = StartReport()
            head.clear()
            tail.clear()
        if report.stage < Stage.SERVING:
            report = advance(report, line)
            if report.stage is Stage.SERVING:
                head.clear()
                tail.clear()
        report = served(report, line)
        last = line
        if _is_plain(line) and _SHUTDOWN not in line.message and (before >= Stage.SERVING or mark_of(line) is None):
            continue
        if len(head) < _HEAD:
            head.append(line)
        else:
            tail.append(line)
    lines = [*head, *tail]
    if last is not None and not (lines and last is lines[-1]):
        lines.append(last)
    return classify(lines, report, exit_status)


def classify(lines: Sequence[LogLine], report: StartReport, exit_status: int | None = None) -> Failure:
    """Classify the lines of one start, or the end of its log.

    `exit_status` is None for a log alone or a process that still runs.
    """
    served, requested = report.stage >= Stage.SERVING, False
    if served:
        ready = (place for place in range(len(lines), 0, -1) if mark_of(lines[place - 1]) is Stage.SERVING)
        lines = lines[next(ready, 0) :]  # earlier errors did not matter
        end = next((place for place, line in enumerate(lines) if _SHUTDOWN in line.message), None)
        if end is not None:  # errors after a requested shutdown do not count
            lines, requested = lines[:end], exit_status is None
    texts = _texts(lines)
    found = _serving_cause(texts, report) if served else _first(texts, SURE, report.stage)
    deaths = [text for text in texts if CONSEQUENCE.search(text)]
    dead = next((text for text in deaths if ": " in text), deaths[0] if deaths else None)  # the line with a message
    if found is None and not served:
        found = _first(texts, LIKELY, report.stage)
        if found is not None and dead is None and exit_status is None and _went_on(lines, found[1]):
            found = None  # the start succeeded without it
    failed = partial(Failure, stage=report.stage, exit_status=exit_status, report=report)
    ends = not served or dead is not None or exit_status is not None
    if found is not None and (ends or found[0] in DEADLY or found[0] is Kind.RUNTIME_OOM):
        return failed(found[0], evidence=found[1], numbers=numbers(*found))
    if requested:
        return failed(Kind.NONE)
    # The log names no known cause: a signal, a death, an error of vLLM's own, or none at all.
    error = _own_error(texts)
    name, evidence = _signal(texts, exit_status)
    if name is not None and error is None:
        kind = Kind.CRASHED if name in _CRASHES else Kind.SHM if name == "SIGBUS" else Kind.KILLED
        return failed(kind, evidence=evidence, numbers={"signal": name})
    if dead is not None:
        kind = Kind.ENGINE_DIED if served or error is None else Kind.EXITED
        position = next((found.start() for found in CONSEQUENCE.finditer(dead)), 0)
        sentence = error or _sentence(dead, position)
        return failed(kind, evidence=sentence, numbers=numbers(kind, error) if error else {})
    if exit_status is not None:
        last = next((line.message.strip()[:600] for line in reversed(lines) if line.message.strip()), "")
        return failed(Kind.EXITED, evidence=error or last)
    if error is not None and not served and not _went_on(lines, error):
        return failed(Kind.EXITED, evidence=error)
    return failed(Kind.NONE)


def _is_plain(line: LogLine) -> bool:
    """Whether a line is a report or a warning, which is never evidence."""
    return line.level in ("DEBUG", "INFO", "WARNING") or line.message.startswith("mai-server: ")


def _texts(lines: Sequence[LogLine]) -> list[str]:
    """Lines that can be evidence: errors, exceptions and the parser's messages, but no code and no reports."""
    kept: list[str] = []
    code_follows: dict[str, bool] = {}
    last_of: dict[str, int] = {}
    within: dict[str, str] = {}
    for line in lines:
        if _is_plain(line):
            continue
        for part in line.message.split("\n"):
            message = part[:_MOST_TEXT].strip()
            is_code = code_follows.get(line.process, False) and part.startswith((" ", "\t"))
            code_follows[line.process] = message.startswith('File "')
            if found := _FRAME.match(message):
                within[line.process] = found[1]
            if not message or is_code or message.startswith(('File "', "^", "~", "raise ")) or NOTE.search(message):
                continue
            if _BARE.fullmatch(message) and line.process in within:
                message = f"{message}: in {within[line.process]}"  # the place is all that is known
            before = last_of.get(line.process)
            if before is not None and _continues(part, kept[before]):
                kept[before] = f"{kept[before]} {message}"
                continue
            last_of[line.process] = len(kept)
            kept.append(message)
    return kept


def _continues(part: str, before: str) -> bool:
    """Whether a line continues the message before: pydantic's are indented, some of vLLM's are not."""
    if len(before) > 2000:
        return False
    if part.startswith("  "):
        return _REFUSED.search(before) is not None or _UNSAID.fullmatch(before) is not None
    return before.endswith("local directory specified:") or _REFUSED_WHAT.search(before) is not None


def _cause(text: str, patterns: tuple[Pattern, ...], stage: Stage) -> tuple[Kind, str] | None:
    """Return the class whose text is in a line, with the evidence; None if there is none.

    Prefers the out-of-memory class over the CUDA or NCCL error that follows from it.
    """
    searched = ((kind, match.search(text)) for kind, match in patterns)
    kind, found = next(((kind, found) for kind, found in searched if found), (None, None))
    memory = OOM.search(text) if patterns is SURE and kind in (None, Kind.CUDA, Kind.NCCL) else None
    if memory is not None:
        return _oom(text, stage), _sentence(text, memory.start())
    return None if kind is None or found is None else (kind, _sentence(text, found.start()))


def _first(
    texts: Sequence[str], patterns: tuple[Pattern, ...], stage: Stage, without: frozenset[Kind] = frozenset()
) -> tuple[Kind, str] | None:
    causes = (_cause(text, patterns, stage) for text in texts)
    return next((found for found in causes if found is not None and found[0] not in without), None)


def _serving_cause(texts: Sequence[str], report: StartReport) -> tuple[Kind, str] | None:
    """Return the cause of a crash while serving, which is logged shortly before the crash."""
    death = next((place for place, text in enumerate(texts) if CONSEQUENCE.search(text)), len(texts))
    near = texts[max(0, death - _NEAR) :]
    return _first(near, SURE, report.stage, OF_STARTS) or _first(near, LIKELY, report.stage, OF_STARTS)


def _oom(text: str, stage: Stage) -> Kind:
    if "PT_DEVMEM" in text:  # Gaudi, whose graphs are also captured while serving
        return Kind.HPU_GRAPH_OOM if stage >= Stage.KV_CACHE else Kind.HPU_OOM
    if stage >= Stage.SERVING:
        return Kind.RUNTIME_OOM
    if "warming up sampler" in text or "profil" in text:
        return Kind.PROFILE_OOM
    if stage >= Stage.KV_CACHE:
        return Kind.GRAPH_OOM
    if "load model" in text:
        return Kind.LOAD_OOM
    return Kind.PROFILE_OOM if stage >= Stage.LOADED else Kind.LOAD_OOM


def _sentence(text: str, position: int) -> str:
    """Return the text from the exception's name on, shortened."""
    start = 0
    for found in _EXCEPTION.finditer(text[: position + 1]):
        start = found.start()
    if position - start > 300:
        start = position
    return " ".join(text[start : start + 600].split())


def _own_error(texts: Sequence[str]) -> str | None:
    """The first exception that is no consequence of another, or the first error of the parser."""
    for text in texts:
        if CONSEQUENCE.search(text) or INTERRUPTED.match(text) or ENDED_BY.search(text):
            continue
        found = _EXCEPTION.match(text) or _PARSER_ERROR.match(text)
        if found and not text.startswith(("SystemExit", "KeyboardInterrupt", "asyncio.exceptions.CancelledError")):
            return _sentence(text, 0)
    return None


def _went_on(lines: Sequence[LogLine], error: str) -> bool:
    """Whether the start made progress after an error, which then did not matter."""
    begin = error[:80]
    for line in reversed(lines):
        if mark_of(line) is not None:
            return True
        if not _is_plain(line) and begin in " ".join(line.message.split()):
            return False
    return False


def _signal(texts: Sequence[str], exit_status: int | None) -> tuple[str | None, str]:
    for text in texts:
        if found := ENDED_BY.search(text):
            if number := found["number"]:
                return _signal_name(int(number)), _sentence(text, found.start())
            name = next((name for words, name in _SHELL.items() if words in (found["words"], found["shell"])), None)
            return name or "SIGABRT", _sentence(text, found.start())
        if INTERRUPTED.match(text):
            return "SIGINT", _sentence(text, 0)
    if exit_status is not None and (exit_status < 0 or 128 < exit_status < 160):
        name = _signal_name(-exit_status if exit_status < 0 else exit_status - 128)
        return name, f"ended by {name}"
    return None, ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


#: Patterns of the numbers by class; the names of their groups are the names of the numbers.
_NUMBERS: dict[str, tuple[re.Pattern[str], ...]] = {
    kind: tuple(re.compile(text, re.DOTALL) for text in entry["texts"])
    for entry in FAILURES["numbers"]
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
