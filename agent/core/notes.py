"""The notes that the program adds to a model's conversation: the outcome of its actions, and what the user said.

The run loop writes them and any model reads them as English. The built-in engine parses them back into `Note` values.
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

NoteKind: TypeAlias = Literal[
    "no_effect", "repeated", "taken_over", "dry_run", "nobody", "failed", "refused", "skipped", "changed", "said",
    "acted", "left_out", "first_only", "unread", "target_changed", "doubted", "let_go", "needs_drag",
    "meanwhile", "takes_over",
]  # fmt: skip
#: The text of each kind; "{}" stands for the note's detail.
_TEXTS: dict[NoteKind, str] = {
    "no_effect": "Your last action changed nothing on the screen.",
    "repeated": "You have done this several times on the same screen without effect. Try something different.",
    "taken_over": "This was not carried out, because the person used the computer meanwhile.",
    "dry_run": "(Dry run: this was not carried out, so the screen does not show it.)",
    "nobody": "Nobody can answer now. Go on with your best judgement, or terminate with fail.",
    "failed": "That could not be done: {}.",
    "refused": "The person did not allow this.",
    "skipped": "The person wants this skipped: go on with what comes after it.",
    "left_out": "The actions after it ({}) were left out.",
    "first_only": "Only the first call of your answer counted, the others ({}) did not: make one at a time.",
    "unread": "The next call of your answer cannot be carried out: {}. It was left out, with what came after it.",
    "target_changed": "The screen changed where your next action points, so it was not done: look again.",
    "doubted": "You say that the task is done, but {}. Look again and go on. If it is done after all, say so again.",
    "changed": "The person changed your action: {}.",
    "let_go": "What you held down ({}) was let go.",
    "needs_drag": "The person has to be asked about that, and nothing is held down meanwhile: use one drag instead.",
    "said": "The person says: “{}”.",
    "meanwhile": "Meanwhile another model did: “{}”. Look again and go on.",
    "takes_over": "Another model worked on this task before you and did not get on. It did: “{}”. Go on from here.",
    "acted": "The person used the computer meanwhile ({}): look again.",
}


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
