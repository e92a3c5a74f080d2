"""Small files: replaced whole, so that a reader sees the old one or the new one, and read without trust."""

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any


def write_atomically(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Replace a file, or leave it as it was.

    The draft lies beside it under a hidden name that ends with our process's number; one that a killed writer of that
    number left is written over. Text is written as UTF-8; the process's mask is taken from the mode.

    Raises:
        OSError: it cannot be written; nothing is left behind.
        UnicodeEncodeError: text that UTF-8 cannot hold (lone surrogates).
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


def overwrite(path: Path, data: bytes) -> None:
    """Writes over a file that is there, where a full disk has no room for a draft: its own blocks are room enough.

    What is shorter is filled up with spaces. A reader may see half of it for a moment. Raises OSError.
    """
    with path.open("r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        file.write(data.ljust(size))


def is_full(error: OSError) -> bool:
    """Whether it says that a disk, or somebody's share of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def keep_json(path: Path, document: dict[str, Any]) -> None:
    """Replace a JSON file of what was learned. A disk that cannot be written costs only the knowledge."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(document, indent=1, sort_keys=True))


def read_json_object(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds; an empty one where it holds none, or cannot be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
