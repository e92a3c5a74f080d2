"""Takes a line of vLLM's log apart: the plain format, the JSON one, uvicorn's, Python's warnings, and our own time stamp."""

import json
import re
from dataclasses import dataclass

#: What our own log files put before every line: time in UTC.
OWN_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PLAIN = re.compile(
    r"^(?:\((?P<process>[A-Za-z]\w*(?:[-_ ]\w+)*?)(?: pid=\d+)?\) )?"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>\d\d-\d\d \d\d:\d\d:\d\d) (?:\[(?P<place>[^\]]+)\] ?)?(?P<message>.*)$"
)
#: A progress bar or a traceback printed by a child keeps only the process's name.
_PREFIXED = re.compile(r"^\((?P<process>[A-Za-z]\w*(?:[-_ ]\w+)*?)(?: pid=\d+)?\) ?(?P<message>.*)$")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line.

    Args:
        text: the line without colours and our own stamp.
        message: what it says, without prefixes.
        level: as logged; "" for lines that are not vLLM's own.
        process: APIServer, EngineCore, Worker, ...; "" where it does not say.
    """

    text: str
    message: str
    level: str = ""
    process: str = ""


def parse_line(raw: str) -> LogLine:
    """One line of a log; any text gives a LogLine."""
    text = _ANSI.sub("", raw.rstrip("\r\n"))
    # A progress bar redraws itself with carriage returns: the last state is what counts.
    if "\r" in text:
        text = text.rsplit("\r", 1)[-1]
    text = OWN_STAMP.sub("", text)
    if text.startswith("{"):
        return _json_line(text)
    if found := _PLAIN.match(text):
        return LogLine(text, found["message"], found["level"], found["process"] or "")
    if found := _PREFIXED.match(text):
        return LogLine(text, found["message"], "", found["process"])
    if found := re.match(r"^(INFO|WARNING|ERROR|CRITICAL):\s+(.*)$", text):
        return LogLine(text, found[2], found[1], "uvicorn")
    return LogLine(text, text)


def _json_line(text: str) -> LogLine:
    try:
        document = json.loads(text)
    except ValueError:
        return LogLine(text, text)
    if not isinstance(document, dict) or "message" not in document:
        return LogLine(text, text)
    message = str(document["message"])
    if document.get("exc_info"):
        message = f"{message}\n{document['exc_info']}"
    process = str(document.get("vllm_process_name") or document.get("processName") or "")
    return LogLine(text, message, str(document.get("levelname") or ""), process)
