"""Texts written in an editor and saved: typed, read back, named in the editor's own dialog, and seen as a file."""

import re

from agent.literal.goals import SaveAs, WriteFile
from agent.literal.state.conversation import Move
from agent.literal.state.goal_state import Done, GoalState, Step, Stuck, Verdict, press
from agent.literal.tasks.stages import (
    empty,
    focused_entry,
    fresh,
    holds,
    last_name,
    last_stage,
    leave,
    select_back,
    stage_of,
    to_end,
    type_step,
    wait_or,
)
from agent.screen.outline import Element

#: The applications that are plain text editors, as their windows tell it.
_EDITORS = re.compile(
    r"mousepad|text-?editor|gedit|pluma|xed|kwrite|kate|leafpad|l3afpad|featherpad|notepad", re.IGNORECASE
)
_PAGES = frozenset({"text", "document text", "paragraph", "terminal"})


def write_file(now: GoalState, goal: WriteFile) -> Verdict:
    """The next step of writing a text, and of saving it where a name is given."""
    stage = stage_of(now)
    if stage in _SAVING:
        return _save(now, goal.save_as, goal.text)
    page = _page(now)
    if stage == "typed":
        if not _has_text(page, goal.text):
            stuck = Stuck("I typed the text, but the editor does not tell that it took it.")
            return wait_or(now, "The text", stuck)
        if not goal.save_as:
            return Done(f"the text holds “{' '.join(goal.text.split())[:60]}”")
        return press("Save it.", "pick", "ctrl+s", "save")
    if page is None and stage != "new":
        opened = last_stage(now)
        editor = goal.editor or "text editor"
        if _editor_is_in_front(now) and (opened is None or now.waits):  # KWrite begins with a welcome
            return press("There is no page yet: take a new one.", "prepare", "ctrl+n", "new")
        if opened is None:
            return Step(f"Open the {editor}.", "place", {"action": "open", "text": editor}, "editor")
        if opened.has("failed"):
            reason = next((note.detail for note in opened.notes if note.kind == "failed"), "")
            return Stuck(f"I could not open “{editor}”: {reason}.")
        return wait_or(now, "A page to write on", Stuck(f"I see no page to write on in “{editor}”."), 1)
    if page is not None and (page.value or "").strip() and stage != "new":
        return press("Something is written there already: take a new page.", "prepare", "ctrl+n", "new")
    if page is None or (page.value or "").strip():
        return wait_or(now, "An empty page", Stuck("I found no empty page to write on."))
    return type_step(f"Write the text ({len(goal.text)} characters).", goal.text, "typed")


def save_as(now: GoalState, goal: SaveAs) -> Verdict:
    """The next step of saving what is open in front, under a name or its own."""
    if stage_of(now) == "":
        front = now.scene.front
        if front is None:
            return Stuck("I see no window whose text could be saved.")
        if goal.name:
            return press(f"Save “{front.title}” under a name.", "pick", "ctrl+shift+s", "save")
        return press(f"Save “{front.title}”.", "act", "ctrl+s", "plainly")
    return _save(now, goal.name, None)


#: The stages of saving.
_SAVING = ("save", "end", "all", "empty", "name", "saved", "plainly", "leave")


def _save(now: GoalState, name: str, text: str | None) -> Verdict:
    field = focused_entry(now)
    match stage_of(now):
        case "save":
            if field is None:
                return wait_or(now, "The field for the name", leave(now, "I found no field for the name of the file."))
            return to_end()
        case "end":
            return select_back()
        case "all":
            return empty()
        case "empty":
            return type_step(f"Name it “{name}”.", name, "name")
        case "name":
            if not holds(field, name):
                return wait_or(now, "The name", leave(now, f"The field does not hold “{name}”."))
            return press(f"Save it as “{name}”.", "act", "enter", "saved")
        case "plainly":
            return _saved_plainly(now)
    acted = now.acted
    for change in fresh(now, acted):
        if change.after is not None and last_name(change.what) == last_name(name):
            return _of_size(str(change), change.after, text)
    return wait_or(now, f"The file “{name}”", leave(now, _why_not(now, name, acted)))


def _of_size(words: str, after: str, text: str | None) -> Verdict:
    """A file came: whether it is as large as the text; editors may end it with a line."""
    size = re.match(r"(\d+) bytes?\b", after)
    if text is None or size is None:
        return Done(f"the file is saved: {words}")
    length = len(text.encode())
    if int(size[1]) in (length, length + 1):
        return Done(f"the file is saved: {words}")
    return Stuck(f"A file was saved, but not of {length} bytes, as the text has: {words}.")


def _saved_plainly(now: GoalState) -> Verdict:
    changes = fresh(now, now.acted)
    if changes:
        return Done(f"it is saved: {changes[0]}")
    if focused_entry(now) is not None:
        return leave(now, "It has no name yet: say under which name to save it.")
    return wait_or(now, "The saved file", Done("I pressed the keys that save, and no file changed", verified=False))


def _why_not(now: GoalState, name: str, acted: Move | None) -> str:
    """Why nothing was saved: most often there is a file of that name, and the editor asks."""
    before = (
        () if acted is None or acted.screen is None or acted.screen.outline is None else acted.screen.outline.windows
    )
    asks = [window.title for window in now.scene.windows if window.title not in {one.title for one in before}]
    if asks or focused_entry(now) is None:
        return f"“{name}” was not saved: the editor asks first, as where a file of that name exists. I replace none."
    return f"“{name}” was not saved: no file of that name came."


def _page(now: GoalState) -> Element | None:
    """What is written on in the editor in front; None where none is in front."""
    if not _editor_is_in_front(now):
        return None
    pages = [
        one
        for one in now.scene.elements
        if one.role in _PAGES and now.scene.in_front(one) and "editable" in one.states and one.box.height > 60
    ]
    return max(pages, key=lambda one: one.box.width * one.box.height, default=None)


def _editor_is_in_front(now: GoalState) -> bool:
    front = now.scene.front
    return front is not None and _EDITORS.search(front.app) is not None


def _has_text(page: Element | None, text: str) -> bool:
    """Whether the page holds the text; what a page tells may be cut."""
    held, wanted = " ".join(((page.value if page else "") or "").split()), " ".join(text.split())
    return held == wanted or (len(held) >= 40 and wanted.startswith(held.removesuffix("…").rstrip()))
