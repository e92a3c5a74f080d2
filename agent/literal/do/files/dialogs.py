"""Name fields of dialogs: wait for them, fill them, check them, and cancel the dialog."""

import re
from collections.abc import Callable
from typing import TypeVar

from agent.core.changes import Change
from agent.literal.do.now import Move, Now, Pursuit, Step, Steps, Stuck, Verdict, press, type_in, until
from agent.literal.find.scene import FIELDS
from agent.screen.outline import Element

_MOST_WAITS, _SECONDS, _MOST_ESCAPES = 3, 0.7, 2
#: How a note quotes a typed text that is not truncated.
_TYPED = re.compile(r"type “([^“”…]+)”")
_T = TypeVar("_T")
_ENTRIES = FIELDS - {"document text", "terminal", "paragraph", "password text"}


def focused_entry(now: Now) -> Element | None:
    """Return the focused single-line field, or None."""
    focused = (one for one in now.scene.shown(_ENTRIES, without="") if {"focused", "editable"} <= one.states)
    field = next(focused, None)
    return None if field is None or "multi_line" in field.states or field.box.height > 60 else field


def seen(check: Callable[[], _T], subject: str, times: int = _MOST_WAITS) -> Steps[_T]:
    """Wait for something to be shown. Return the last result of `check`."""
    return (yield from until(check, f"{subject} is not to be seen yet: wait.", times, _SECONDS))


def field_held(now: Now, text: str, subject: str) -> Steps[bool]:
    """Wait until the focused field contains exactly this text."""
    return (yield from seen(lambda: (field := focused_entry(now)) is not None and (field.value or "") == text, subject))


def shown_or_left(now: Now, check: Callable[[], Verdict | None], subject: str, why: Callable[[], str]) -> Pursuit:
    """Wait for evidence. Without it close the dialog, and return Stuck with the reason."""
    return (yield from seen(check, subject)) or (yield from leave(now, why(), check))


def replace_name(words: str, name: str) -> Steps[str]:
    """Replace the text of a field. Return the typed name, which the person may have changed.

    Not all of the text is selected at first, and Thunar's dialogs do not support ctrl+a.
    """
    yield press("Replace the name that stands there.", "end")
    yield press("Select all of it.", "shift+home")
    yield empty()
    return typed_text((yield type_in(words, name)), name)


def empty() -> Step:
    """Delete the selected text. Typing may take the X11 selection, so that the field deselects its text and appends."""
    return press("Take it away.", "backspace")


def typed_text(move: Move, text: str) -> str:
    """Return the typed text, or the person's version if they changed it."""
    changed = [note.detail for note in move.notes if note.kind == "changed"]
    theirs = _TYPED.fullmatch(changed[-1]) if changed else None
    return text if theirs is None else theirs[1]


def leave(now: Now, why: str, done: Callable[[], Verdict | None] = lambda: None) -> Pursuit:
    """Close the dialog, and a question on top of it, then return Stuck with the reason.

    `done` returns a verdict if the goal turns out to be reached after all.
    """
    for _ in range(_MOST_ESCAPES):
        left = yield press("Leave it as it was.", "escape")
        if (verdict := done()) is not None:
            return verdict
        window_closed = len(now.scene.windows) < len(left.scene.windows)
        if not (window_closed and focused_entry(now) is not None):
            break
    return Stuck(why)


def fresh(now: Now, since: Move) -> list[Change]:
    """Return the files that changed since a step."""
    return [change for change in now.changes if change.kind == "file" and change not in since.changes]
