"""Fields of dialogs for names: waited for, filled, checked, and left as they were."""

import re
from collections.abc import Callable

from agent.core.changes import Change
from agent.literal.do.now import Move, Now, Pursuit, Step, Steps, Stuck, Verdict, press, type_in, until
from agent.literal.find.scene import FIELDS
from agent.screen.outline import Element

_MOST_WAITS, _SECONDS, _MOST_ESCAPES = 3, 0.7, 2
#: How a note tells a text that is typed, where all of it stands there.
_TYPED = re.compile(r"type “([^“”…]+)”")
_ENTRIES = FIELDS - {"document text", "terminal", "paragraph", "password text"}


def focused_entry(now: Now) -> Element | None:
    """The field of one line that has the focus."""
    for element in now.scene.elements:
        if element.role in _ENTRIES and {"focused", "editable"} <= element.states and now.scene.in_front(element):
            return None if "multi_line" in element.states or element.box.height > 60 else element
    return None


def field_held(now: Now, text: str, what: str) -> Steps[bool | None]:
    """Wait until the field that has the focus holds exactly this."""

    def held() -> bool:
        field = focused_entry(now)
        return field is not None and (field.value or "") == text

    return (yield from until(held, f"{what} is not to be seen yet: wait.", _MOST_WAITS, _SECONDS))


def replace_name(words: str, name: str) -> Steps[str]:
    """Replace what stands in a field. Return what was typed: the person may have changed the name.

    Not all of it is selected at first, and Thunar's dialogs do not know ctrl+a.
    """
    yield press("Replace the name that stands there.", "end")
    yield press("Select all of it.", "shift+home")
    yield empty()
    return typed_text((yield type_in(words, name)), name)


def empty() -> Step:
    """Take away what is selected: text is typed by way of the selection, which a field then drops and adds to."""
    return press("Take it away.", "backspace")


def typed_text(move: Move, text: str) -> str:
    """The text that was typed: where the person changed it, theirs."""
    changed = [note.detail for note in move.notes if note.kind == "changed"]
    theirs = _TYPED.fullmatch(changed[-1]) if changed else None
    return text if theirs is None else theirs[1]


def leave(now: Now, why: str, done: Callable[[], Verdict | None] = lambda: None) -> Pursuit:
    """Close what was opened in vain, a dialog that asks, and the one that it asks about; then say why.

    `done` gives what shows, late, that the goal is reached after all.
    """
    for _ in range(_MOST_ESCAPES):
        left = yield press("Leave it as it was.", "escape")
        if (verdict := done()) is not None:
            return verdict
        asked = len(now.scene.windows) < len(left.scene.windows)
        if not (asked and focused_entry(now) is not None):
            break
    return Stuck(why)


def fresh(now: Now, since: Move) -> list[Change]:
    """The files that changed since a step."""
    return [change for change in now.changes if change.kind == "file" and change not in since.changes]
