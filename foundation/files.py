"""Writes small files atomically, and reads untrusted ones."""

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from foundation.errors import EnvironmentLacksError


def write_atomically(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Replace a file completely or not at all.

    The temporary file is a hidden file beside it with our PID as suffix; a leftover of a killed process is overwritten.
    Text is written as UTF-8, and the umask applies to the mode. Raises OSError without leaving the temporary file;
    UnicodeEncodeError for lone surrogates.
    """
    content = data.encode("utf-8") if isinstance(data, str) else data
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(draft, flags, mode), "wb") as file:
            file.write(content)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise


def write_file(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Replace a file as `write_atomically` does. Raises EnvironmentLacksError."""
    try:
        write_atomically(path, data, mode)
    except OSError as error:
        raise cannot_write(path, error) from error


def is_full(error: OSError) -> bool:
    """Return whether a disk or quota is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def cannot_write(path: Path, error: OSError) -> EnvironmentLacksError:
    """Return why a file could not be written, with what to do about it."""
    if isinstance(error, FileNotFoundError | NotADirectoryError) and not path.parent.is_dir():
        return EnvironmentLacksError(f"There is no folder {path.parent}.", "Make it first, or name a file elsewhere.")
    if path.is_dir():
        return EnvironmentLacksError(f"{path} is a folder.", "Name a file in it.")
    advice = "Free some space there, or name a file elsewhere." if is_full(error) else "Is the place yours to write to?"
    return EnvironmentLacksError(f"{path} cannot be written ({error.strerror or error}).", advice)


def keep_json(path: Path, document: dict[str, Any]) -> None:
    """Replace a JSON file of cached facts. Errors of the disk are ignored."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(document, indent=1, sort_keys=True))


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if it cannot be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
