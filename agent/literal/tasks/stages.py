"""What the tasks have in common: how far one is, the field that has the focus, and the files that changed since.

A task is a row of stages. Each step carries the name of its stage in what it is about, so that the chat tells how far
the task is; before the next step, what the last one should have brought about is looked for on the screen.
"""

import re

from agent.core.changes import Change
from agent.literal.find.scene import FIELDS
from agent.literal.state.conversation import Move
from agent.literal.state.goal_state import GoalState, Step, Stuck, Verdict, press, wait
from agent.screen.outline import Element

_MOST_WAITS, _MOST_ESCAPES = 3, 2
#: How a note tells a text that is typed, where all of it stands there.
_TYPED = re.compile(r"type “([^“”…]+)”")
_ENTRIES = FIELDS - {"document text", "terminal", "paragraph", "password text"}


def stage_of(now: GoalState) -> str:
    """The stage that was reached last; "" for none."""
    latest = last_stage(now)
    return latest.about if latest is not None else ""


def last_stage(now: GoalState) -> Move | None:
    """The last step that was more than waiting."""
    return next((move for move in reversed(now.moves) if move.intent != "late"), None)


def type_step(words: str, text: str, stage: str) -> Step:
    """The step that types into what has the focus."""
    return Step(words, "keys", {"action": "type", "text": text}, stage)


def wait_or(now: GoalState, what: str, stuck: Verdict, seconds: float = 0.7) -> Verdict:
    """Wait a few times for something, then that; at once where it was given up already."""
    if stage_of(now) == "leave":
        return stuck
    return wait(f"{what} is not to be seen yet: wait.", seconds) if now.waits < _MOST_WAITS else stuck


def as_changed(now: GoalState, stage: str, text: str) -> str:
    """The text that was typed at a stage: where the person changed it, theirs."""
    notes = [note for move in now.moves if move.about == stage for note in move.notes if note.kind == "changed"]
    theirs = _TYPED.fullmatch(notes[-1].detail) if notes else None
    return text if theirs is None else theirs[1]


def to_end() -> Verdict:
    """To the end of what stands in a field. Not all of it is selected, and Thunar's dialogs do not know ctrl+a."""
    return press("Replace the name that stands there.", "keys", "end", "end")


def select_back() -> Verdict:
    """Select from there to the beginning."""
    return press("Select all of it.", "keys", "shift+home", "all")


def empty() -> Verdict:
    """Take away what is selected: text is typed by way of the selection, which a field then drops and adds to."""
    return press("Take it away.", "keys", "backspace", "empty")


def leave(now: GoalState, why: str) -> Verdict:
    """Close what was opened in vain, a dialog that asks, and the one that it asks about; then say why."""
    left = now.tried("back")
    screen = left[-1].screen if left else None
    asked = screen is not None and screen.outline is not None and len(now.scene.windows) < len(screen.outline.windows)
    still_asks = asked and focused_entry(now) is not None
    if not left or (still_asks and len(left) < _MOST_ESCAPES):
        return press("Leave it as it was.", "back", "escape", "leave")
    return Stuck(why)


def focused_entry(now: GoalState) -> Element | None:
    """The field of one line that has the focus."""
    for element in now.scene.elements:
        if element.role in _ENTRIES and {"focused", "editable"} <= element.states and now.scene.in_front(element):
            return None if "multi_line" in element.states or element.box.height > 60 else element
    return None


def holds(element: Element | None, text: str) -> bool:
    """Whether a field holds exactly this."""
    return element is not None and (element.value or "") == text


def fresh(now: GoalState, since: Move | None) -> list[Change]:
    """The files that changed since a step; none where it is not known any more what had changed before it."""
    if since is None or since.screen is None:
        return []
    return [change for change in now.changes if change.kind == "file" and change not in since.screen.changes]


def last_name(path: str) -> str:
    """The name of what is at a path."""
    return path.rstrip("/").rpartition("/")[2]
