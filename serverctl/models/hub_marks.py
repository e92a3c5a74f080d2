"""Whether small files are as the hub has them, by the marks that its client keeps of what it downloaded.

A mark is made of the file's content at the hub: the SHA-256 of what Git LFS holds, or the SHA-1 of Git's own blob. In
the cache it is the name of the file that a snapshot links to; beside a folder it is in `.cache/huggingface/download`.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from serverctl.models.defects import Defect, Place

#: Larger files are weights: only their headers are read, bytes. A tokenizer of 262,144 tokens has 33 MB.
_MOST_BYTES = 40 * 1024**2
_MARK = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def changed(place: Place) -> Iterator[Defect]:
    """Small files that differ from the hub's: damaged on the way, or edited by somebody. They stop no start."""
    for path in sorted(place.folder.glob("*")):
        mark = _mark_of(path)
        if mark is None:
            continue
        with suppress(OSError):  # what cannot be read is told where it is needed
            if path.stat().st_size <= _MOST_BYTES and _content(path, mark) != mark:
                what = f"{path.name} in {place.name} is not as the hub has it"
                yield Defect(what, "if nobody edited it on purpose, delete it and download it again", stops=False)


def _mark_of(path: Path) -> str | None:
    """The mark of a file; None where the hub's client left none."""
    try:
        mark = path.resolve(strict=True).name
        if path.is_symlink() and _MARK.fullmatch(mark):
            return mark
        beside = path.parent / ".cache" / "huggingface" / "download" / f"{path.name}.metadata"
        mark = beside.read_text(encoding="ascii").splitlines()[1].strip()
    except (OSError, RuntimeError, ValueError, IndexError):  # RuntimeError: links in a circle (Python 3.11, 3.12)
        return None
    return mark if _MARK.fullmatch(mark) else None


def _content(path: Path, mark: str) -> str:
    """What a file's mark would be. Raises OSError."""
    data = path.read_bytes()
    if len(mark) == 64:
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
