"""Tells whether the clipboard holds something else than it did; never all of what it holds."""

import hashlib
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field

from agent.changes import Change

#: Seconds for each question; a clipboard's owner that hangs answers none.
_PATIENCE = 0.3
#: Characters of a text that are told.
_TOLD = 40
#: By this target, password managers say that the clipboard holds a secret.
_SECRET = "x-kde-passwordManagerHint"  # noqa: S105


@dataclass(frozen=True, slots=True)
class _Held:
    words: str  # what is told of it
    digest: bytes = field(repr=False)


class X11ClipboardWatch:
    """The clipboard as it was, against how it is."""

    def __init__(self) -> None:
        self._before: _Held | None = None
        self.remark = "" if shutil.which("xclip") else "The clipboard is not watched: the program xclip is missing."

    def begin(self) -> None:
        """Take in how it is now."""
        self._before = _look()

    def changes(self) -> list[Change]:
        """How it differs from that."""
        before, now = self._before, _look()
        if before == now:
            return []
        was, is_now = (None if held is None else held.words for held in (before, now))
        return [Change("clipboard", "clipboard", was, is_now)]


def _look() -> _Held | None:
    """What it holds; None for nothing."""
    targets = (_ask("TARGETS") or b"").decode("ascii", "replace").split()
    if not targets:
        return None
    if _SECRET in targets:
        return _Held("a secret", hashlib.sha256(_ask("UTF8_STRING") or b"").digest())
    if "UTF8_STRING" in targets or "STRING" in targets:
        data = _ask("UTF8_STRING" if "UTF8_STRING" in targets else "STRING") or b""
        text = data.decode("utf-8", "replace")
        shown = text if len(text) <= _TOLD else f"{text[:_TOLD]}…"
        said = f"{len(text)} character{'' if len(text) == 1 else 's'}: {shown}"
        return _Held(said, hashlib.sha256(data).digest())
    kind = "an image" if any(target.startswith("image/") for target in targets) else "no text"
    return _Held(kind, hashlib.sha256("\n".join(sorted(targets)).encode()).digest())


def _ask(target: str) -> bytes | None:
    with suppress(subprocess.SubprocessError, OSError):
        done = subprocess.run(
            ["xclip", "-selection", "clipboard", "-o", "-t", target],
            capture_output=True, timeout=_PATIENCE, check=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.stdout
    return None
