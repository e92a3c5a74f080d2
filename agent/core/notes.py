"""The notes that the program adds to a model's conversation: the outcome of its actions, and what the user said.

The run loop writes them and any model reads them as English. The built-in engine parses them back into `Note` values.
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from foundation.configs import load_config

NoteKind: TypeAlias = Literal[
    "no_effect", "repeated", "taken_over", "dry_run", "nobody", "failed", "refused", "skipped", "changed", "said",
    "acted", "left_out", "first_only", "unread", "target_changed", "doubted", "let_go", "needs_drag",
    "meanwhile", "takes_over",
]  # fmt: skip
_TEXTS: dict[NoteKind, str] = load_config("notes.toml")["texts"]


@dataclass(frozen=True, slots=True)
class Note:
    """One note; `str()` gives what the model reads."""

    kind: NoteKind  # the subject
    detail: str = ""  # an error, an action, or what the user said or did; "" for kinds without a detail

    def __str__(self) -> str:
        # Quotes inside the detail are replaced, so that `read_notes` can find the end of a quoted detail.
        quoted = "“{}”" in _TEXTS[self.kind]
        detail = self.detail.replace("“", "‘").replace("”", "’") if quoted else self.detail
        return _TEXTS[self.kind].replace("{}", detail)


def _pattern() -> re.Pattern[str]:
    # A full stop inside a name, as in "report.txt", does not end a note.
    kinds = (f"(?P<{kind}>{re.escape(text)})(?!\\S)" for kind, text in _TEXTS.items())
    return re.compile("|".join(kinds).replace(r"\{\}", "(?:.*?)"), re.DOTALL)


_PATTERN = _pattern()


def read_notes(text: str) -> list[Note]:
    """Return the notes in a text, in order. A detail ends at the first place where its note can end."""
    found: list[Note] = []
    for match in _PATTERN.finditer(text):
        kind: NoteKind = match.lastgroup  # type: ignore[assignment]  # the groups are named by the kinds
        before, _, after = _TEXTS[kind].partition("{}")
        found.append(Note(kind, match[0][len(before) : len(match[0]) - len(after)] if "{}" in _TEXTS[kind] else ""))
    return found


def without_notes(text: str) -> str:
    """Return the text without the notes in it."""
    return _PATTERN.sub("", text).strip()
