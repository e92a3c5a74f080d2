"""The clipboard, and whether its contents changed. Receipts show only the beginning of a text."""

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias

from agent.core.changes import Change
from foundation.printing import counted

#: Characters of a text that receipts show.
_TOLD = 40
#: Bytes that are kept at most.
_MOST = 64_000_000
#: Password managers offer this type to mark the clipboard's contents as a secret.
_SECRET = "x-kde-passwordManagerHint"  # noqa: S105 -- the name of a clipboard target
#: Types of plain text on Wayland and X11, the best first.
TEXTS = ("text/plain;charset=utf-8", "UTF8_STRING", "STRING", "text/plain")
#: The contents' description for receipts, and their digest; None for an empty clipboard.
_Held: TypeAlias = tuple[str, bytes] | None


class HungError(Exception):
    """The owner of the clipboard does not answer."""


class Clipboard(Protocol):
    """The clipboard of a desktop, used from one thread at a time. Both methods raise HungError."""

    @property
    def lacks(self) -> str:
        """Why the clipboard cannot be read, as a sentence; "" if it can."""

    def kinds(self) -> list[str]:
        """Return the content types that the clipboard offers; empty if it holds nothing."""

    def read(self, kind: str) -> bytes | None:
        """Return the contents as this type; None if the clipboard does not offer it."""


def contents(clipboard: Clipboard, kinds: Sequence[str]) -> dict[str, bytes]:
    """Return the contents as these types, up to 64 MB, as far as the owner delivers them."""
    found: dict[str, bytes] = {}
    with suppress(HungError):  # what was read until then is kept
        for kind in kinds:
            data = clipboard.read(kind)
            if data is not None and sum(map(len, found.values())) + len(data) <= _MOST:
                found[kind] = data
    return found


class ClipboardWatch:
    """Compares the clipboard with its contents at the beginning."""

    def __init__(self, clipboard: Clipboard) -> None:
        self._clipboard = clipboard
        self._before: _Held = None
        self._last: _Held = None
        self.remark = f"The clipboard is not watched: {clipboard.lacks}" if clipboard.lacks else ""
        self._known = not self.remark

    def begin(self) -> None:
        """Remember the present contents."""
        try:
            self._before = self._last = _look(self._clipboard) if self._known else None
        except HungError:
            self._known = False
            self.remark = "The clipboard is not watched: its owner did not answer."

    def changes(self) -> list[Change]:
        """Return the change since the beginning, of the last known contents if the owner does not answer."""
        if not self._known:
            return []
        try:
            self._last, self.remark = _look(self._clipboard), ""
        except HungError:
            self.remark = "The clipboard's owner does not answer: the contents may have changed."
        before, now = self._before, self._last
        if before == now:
            return []
        was, is_now = (held and held[0] for held in (before, now))
        return [Change("clipboard", "clipboard", was, is_now)]


def _look(clipboard: Clipboard) -> _Held:
    """Return the clipboard's contents. Raises HungError."""
    kinds = clipboard.kinds()
    if not kinds:
        return None
    best = next((one for one in TEXTS if one in kinds), None)
    data = b"" if best is None else clipboard.read(best) or b""
    if _SECRET in kinds:
        return "a secret", hashlib.sha256(data).digest()
    if best is not None:
        return in_words(data.decode("utf-8", "replace")), hashlib.sha256(data).digest()
    kind = "an image" if any(one.startswith("image/") for one in kinds) else "no text"
    return kind, hashlib.sha256("\n".join(sorted(kinds)).encode()).digest()


def in_words(text: str) -> str:
    """Return a text's length and beginning, cut only between words: half of a secret would not be masked later."""
    length = counted(len(text), "character")
    if len(text) <= _TOLD:
        return f"{length}: {text}"
    words = re.match(r"(.*\S)\s", text[: _TOLD + 1], re.DOTALL)
    return f"{length}: {words[1]} …" if words else length
