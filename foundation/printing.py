"""The one door to the terminal: every line that a command prints passes here, and through the gate for foreign text.

A line is one line: a line end within it is spelled out, so that no stranger's text can look like lines of ours. JSON is
ASCII throughout. A test keeps every other module from writing to standard output or standard error.
"""

import json
import os
import sys
from typing import Any, Literal, TextIO, TypeAlias

from foundation.foreign_text import harmless, printable

Stream: TypeAlias = Literal["output", "error"]

_own: dict[Stream, TextIO | None] = {"output": None, "error": None}


def put(*lines: str, to: TextIO | None = None) -> None:
    """Print lines to standard output, or to another stream."""
    _write(to or _target("output"), "".join(f"{printable(line)}\n" for line in lines))


def put_text(text: str) -> None:
    """Print a text with lines and tabs of its own, such as a file, to standard output."""
    _write(_target("output"), harmless(text) if text.endswith("\n") else f"{harmless(text)}\n")


def put_json(value: Any, indent: int | None = None, *, to: TextIO | None = None) -> None:
    """Print a value as JSON to standard output, or to another stream; one line unless an indent is given."""
    _write(to or _target("output"), f"{json_text(value, indent)}\n")


def remark(*lines: str) -> None:
    """Print lines to standard error, beside the output."""
    _write(_target("error"), "".join(f"{printable(line)}\n" for line in lines))


def ask_for(*lines: str) -> None:
    """Print a question to standard error; the answer follows on its last line."""
    _write(_target("error"), "\n".join(map(printable, lines)))


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON in ASCII without any control character, not even the one (DEL) that JSON allows."""
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def is_terminal(stream: Stream) -> bool:
    """Whether a person's terminal is at the end of it."""
    target = _target(stream)
    try:
        return target is not None and target.isatty()
    except ValueError:  # it is closed
        return False


def shown_as(text: str, stream: Stream) -> str:
    """A text in what the terminal can show: what it lacks by its number, so that it is not unseen."""
    encoding = getattr(_target(stream), "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def terminal_size(stream: Stream) -> tuple[int, int] | None:
    """Columns and rows of the terminal; None where there is none, or it does not say."""
    target = _target(stream)
    try:
        size = None if target is None else os.get_terminal_size(target.fileno())
    except (OSError, ValueError):
        return None
    return size and (size.columns, size.lines)


def flush() -> None:
    """Write out what waits. Raises OSError: the output cannot be written."""
    if (output := _target("output")) is not None:
        output.flush()


def close_output() -> None:
    """Print nothing more to standard output, and flush nothing into it at exit: whoever read it is gone."""
    sys.stdout = None
    _own["output"] = None


def own_streams(output: TextIO | None, error: TextIO | None) -> None:
    """Print to these while Python's own streams lead elsewhere (`foundation.stray_output`); None for Python's own."""
    _own["output"], _own["error"] = output, error


def _target(stream: Stream) -> TextIO | None:
    own = _own[stream]
    return own if own is not None else sys.stdout if stream == "output" else sys.stderr


def _write(target: TextIO | None, text: str) -> None:
    if target is None:
        return
    encoding = getattr(target, "encoding", None) or "utf-8"  # what it lacks must not end a run
    target.write(text.encode(encoding, "backslashreplace").decode(encoding))
    target.flush()
