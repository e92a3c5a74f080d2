"""Parses a line of vLLM's log: the plain format, JSON and uvicorn's.

Lines may have prefixes: our own timestamp, those of docker, compose, journald and Kubernetes, and names of ranks.
"""

import json
import re
from dataclasses import dataclass

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
