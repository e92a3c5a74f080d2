"""Masks texts in a recorded run: those that a person names, and secrets that the rules find."""

import json
from pathlib import Path
from typing import Any

from agent.record.read import Bundle
from agent.record.redactor import Redactor
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import write_atomically
from foundation.foreign_text import json_text
from foundation.stray_output import LOG_NAME

_FILES = ("run.json", "steps.jsonl", LOG_NAME)


def mask_run(bundle: Bundle, redactor: Redactor) -> int:
    """Rewrite a run's files with every secret masked, also in lines before the line that reveals it.

    Each file is replaced as a whole. Screenshots stay as they are.

    Returns:
        The number of lines and objects in the files that were changed.

    Raises:
        UsageError: the run is still active.
        EnvironmentLacksError: the folder cannot be written; each file is either unchanged or masked.
    """
    if bundle.outcome == "running":
        raise UsageError(f"The run {bundle.path.name} is still going on.", "Mask it when it has ended.")
    redactor.instruction(bundle.run.instruction)
    try:
        files = [name for name in _FILES if name != LOG_NAME or (bundle.path / name).is_file()]
        for name in files:
            for piece in _pieces(bundle.path / name):
                _masked(piece, redactor)  # first pass: learn all secrets
        return sum(mask_file(bundle.path / name, redactor) for name in files)
    except OSError as error:
        raise EnvironmentLacksError(
            f"{bundle.path} cannot be written ({error.strerror or error}).", "Make room there, or make it writable."
        ) from error


def mask_file(path: Path, redactor: Redactor) -> int:
    """Mask one file of a run; it is replaced as a whole.

    Returns:
        The number of its lines, or objects, that were changed.

    Raises:
        OSError: it cannot be read or written.
    """
    pieces = _pieces(path)
    masked = [_masked(piece, redactor) for piece in pieces]
    changed = sum(one != other for one, other in zip(pieces, masked, strict=True))
    if changed:
        write_atomically(path, "\n".join(masked).encode("utf-8", "replace"))
    return changed


def _pieces(path: Path) -> list[str]:
    read = path.read_text(encoding="utf-8", errors="replace")
    return read.split("\n") if path.suffix == ".jsonl" else [read]


def _masked(piece: str, redactor: Redactor) -> str:
    """Mask a line or a file. If it is no JSON (a crash cut it off), mask it as plain text."""
    try:
        data: Any = json.loads(piece)
    except (ValueError, RecursionError):
        return redactor.text(piece)
    masked = redactor.data(data)
    return piece if masked == data else json_text(masked)
