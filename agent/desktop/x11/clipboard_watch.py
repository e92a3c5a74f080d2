"""Tells whether the clipboard holds something else than it did; never all of what it holds."""

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass, field

from agent.changes import Change

#: Seconds for each question; a clipboard's owner that hangs answers none.
_PATIENCE = 0.3
#: Characters of a text that are told.
_TOLD = 40
#: By this target, password managers say that the clipboard holds a secret.
_SECRET = "x-kde-passwordManagerHint"  # noqa: S105


class _HungError(Exception):
    """Whoever holds the clipboard does not answer."""


@dataclass(frozen=True, slots=True)
class _Held:
    words: str  # what is told of it
    digest: bytes = field(repr=False)


class X11ClipboardWatch:
    """The clipboard as it was, against how it is."""

    def __init__(self) -> None:
        self._before: _Held | None = None
        self._last: _Held | None = None
        self._known = shutil.which("xclip") is not None
        self.remark = "" if self._known else "The clipboard is not watched: the program xclip is missing."

    def begin(self) -> None:
        """Take in how it is now."""
        try:
            self._before = self._last = _look() if self._known else None
        except _HungError:
            self._known = False
            self.remark = "The clipboard is not watched: whoever holds it did not answer."

    def changes(self) -> list[Change]:
        """How it differs from that; as it was known last where its holder does not answer."""
        if not self._known:
            return []
        try:
            self._last, self.remark = _look(), ""
        except _HungError:
            self.remark = "Whoever holds the clipboard does not answer: it may hold something else by now."
        before, now = self._before, self._last
        if before == now:
            return []
        was, is_now = (None if held is None else held.words for held in (before, now))
        return [Change("clipboard", "clipboard", was, is_now)]


def _look() -> _Held | None:
    """What it holds; None for nothing. Raises _HungError."""
    targets = (_ask("TARGETS") or b"").decode("ascii", "replace").split()
    if not targets:
        return None
    if _SECRET in targets:
        return _Held("a secret", hashlib.sha256(_ask("UTF8_STRING") or b"").digest())
    if "UTF8_STRING" in targets or "STRING" in targets:
        data = _ask("UTF8_STRING" if "UTF8_STRING" in targets else "STRING") or b""
        text = data.decode("utf-8", "replace")
        return _Held(in_words(text), hashlib.sha256(data).digest())
    kind = "an image" if any(target.startswith("image/") for target in targets) else "no text"
    return _Held(kind, hashlib.sha256("\n".join(sorted(targets)).encode()).digest())


def in_words(text: str) -> str:
    """Its length and how it begins, in whole words: half of a secret would not be known for one, and masked."""
    length = f"{len(text)} character{'' if len(text) == 1 else 's'}"
    if len(text) <= _TOLD:
        return f"{length}: {text}"
    words = re.match(r"(.*\S)\s", text[: _TOLD + 1], re.DOTALL)
    return f"{length}: {words[1]} …" if words else length


def _ask(target: str) -> bytes | None:
    """What its holder gives for a target; None where there is no holder, or no such target. Raises _HungError."""
    try:
        done = subprocess.run(
            ["xclip", "-selection", "clipboard", "-o", "-t", target],
            capture_output=True, timeout=_PATIENCE, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (subprocess.TimeoutExpired, OSError) as error:
        raise _HungError from error
    return done.stdout if done.returncode == 0 else None
