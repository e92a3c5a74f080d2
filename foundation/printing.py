"""Writes our lines to standard output and standard error. A test lists the few other modules that may.

Every line is escaped by `foreign_text`, also line ends within it, so that untrusted text cannot imitate our own lines.
JSON is ASCII.
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
    """Print a text with its own lines and tabs, such as a file, to standard output."""
    _write(_target("output"), harmless(text) if text.endswith("\n") else f"{harmless(text)}\n")


def put_json(value: Any, indent: int | None = None, *, to: TextIO | None = None) -> None:
    """Print a value as JSON; on one line unless an indent is given."""
    _write(to or _target("output"), f"{json_text(value, indent)}\n")


def remark(*lines: str) -> None:
    """Print lines to standard error."""
    _write(_target("error"), "".join(f"{printable(line)}\n" for line in lines))


def ask_for(*lines: str) -> None:
    """Print a question to standard error; the answer follows on its last line."""
    _write(_target("error"), "\n".join(map(printable, lines)))


def json_text(value: Any, indent: int | None = None) -> str:
    """Serialize a value as JSON in ASCII without control characters; JSON itself would allow DEL."""
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as "1 step" or "3 steps"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def is_terminal(stream: Stream) -> bool:
    """Return whether the stream is a terminal."""
    target = _target(stream)
    try:
        return target is not None and target.isatty()
    except ValueError:  # the stream is closed
        return False


def shown_as(text: str, stream: Stream) -> str:
    """Replace characters that the stream's encoding lacks by escapes."""
    return _encodable(text, _target(stream))


def terminal_size(stream: Stream) -> tuple[int, int] | None:
    """Return the terminal's columns and rows, or None."""
    target = _target(stream)
    try:
        size = None if target is None else os.get_terminal_size(target.fileno())
    except (OSError, ValueError):
        return None
    return size and (size.columns, size.lines)


def flush() -> None:
    """Flush standard output. Raises OSError."""
    if (output := _target("output")) is not None:
        output.flush()


def close_output() -> None:
    """Stop writing to standard output, because its reader has exited."""
    sys.stdout = None
    _own["output"] = None


def own_streams(output: TextIO | None, error: TextIO | None) -> None:
    """Print to these streams, because Python's own are redirected to a log. None means Python's own again."""
    _own["output"], _own["error"] = output, error


def _target(stream: Stream) -> TextIO | None:
    own = _own[stream]
    return own if own is not None else sys.stdout if stream == "output" else sys.stderr


def _write(target: TextIO | None, text: str) -> None:
    if target is None:
        return
    target.write(_encodable(text, target))
    target.flush()


def _encodable(text: str, target: TextIO | None) -> str:
    encoding = getattr(target, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
