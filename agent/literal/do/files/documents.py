"""Writes a text in an editor and saves it: reads it back, names it in the editor's dialog, and checks the file."""

import re

from agent.literal.do.files.dialogs import field_held, focused_entry, fresh, leave, replace_name, seen, shown_or_left
from agent.literal.do.files.opening import last_name
from agent.literal.do.now import Done, Move, Now, Pursuit, Steps, Stuck, Verdict, opened, press, start, type_in
from agent.literal.goals import ReplaceText, SaveAs, WriteFile
from agent.screen.outline import Element

#: Application names of plain text editors.
_EDITORS = re.compile(
    r"mousepad|text-?editor|gedit|pluma|xed|kwrite|kate|leafpad|l3afpad|featherpad|notepad", re.IGNORECASE
)
_PAGES = frozenset({"text", "document text", "paragraph", "terminal"})
#: Most characters of a text to change: the tree reports the first thousand.
_MOST_REPLACED = 900


def write_file(now: Now, goal: WriteFile) -> Pursuit:
    """Write a text on an empty page, and save it if a name is given."""
    if (stuck := (yield from _to_empty_page(now, goal.editor or "text editor"))) is not None:
        return stuck
    yield type_in(f"Write the text ({len(goal.text)} characters).", goal.text)
    if not (yield from seen(lambda: _has_text(_page(now), goal.text), "The text")):
        return Stuck("I typed the text, but the editor does not tell that it took it.")
    if not goal.save_as:
        return Done(f"the text holds “{' '.join(goal.text.split())[:60]}”")
    yield press("Save it.", "ctrl+s")
    return (yield from _save(now, goal.save_as, goal.text))


def save_as(now: Now, goal: SaveAs) -> Pursuit:
    """Save the front window's document, under a new name or its own."""
    front = now.scene.front
    if front is None:
        return Stuck("I see no window whose text could be saved.")
    if goal.name:
        yield press(f"Save “{front.title}” under a name.", "ctrl+shift+s")
        return (yield from _save(now, goal.name, None))
    acted = yield press(f"Save “{front.title}”.", "ctrl+s", main=True)
    yield from seen(lambda: fresh(now, acted) or focused_entry(now), "The saved file")
    if changes := fresh(now, acted):
        return Done(f"it is saved: {changes[0]}")
    if focused_entry(now) is not None:
        return (yield from leave(now, "It has no name yet: say under which name to save it."))
    return Done("I pressed the keys that save, and no file changed", verified=False)


def replace_text(now: Now, goal: ReplaceText) -> Pursuit:
    """Replace a text in the editor in front: type the whole text anew, and read it back."""
    page = _page(now)
    text = (page.value or "") if page is not None else ""
    count = text.count(goal.old)
    if page is None:
        return Stuck("I see no text editor in front whose text I could change.")
    if len(text) > _MOST_REPLACED or not count:
        reason = f"I do not see all of a text that is longer than {_MOST_REPLACED} characters."
        return Stuck(reason if count else f"“{goal.old}” is not in the text.")
    if count > 1 and not goal.all:
        return Stuck(f"“{goal.old}” occurs {count} times: say “replace all”, or change it yourself.")
    new = text.replace(goal.old, goal.new)
    yield now.click("Give the text the focus.", page, main=False)
    yield press("Select all of it.", "ctrl+a")
    yield type_in(f"Write it with “{goal.new}” for “{goal.old}”, {count} times.", new, main=True)
    if (yield from seen(lambda: _has_text(_page(now), new), "The text")):
        return Done(f"the text holds “{' '.join(new.split())[:60]}”")
    return Stuck("I typed the new text, but the editor does not tell that it took it.")


def _to_empty_page(now: Now, editor: str) -> Steps[Stuck | None]:
    """Bring an empty page of an editor to the front."""
    if _page(now) is None and not _editor_is_in_front(now):
        step = start(f"Open the {editor}.", editor)
        if (stuck := (yield from opened(step, lambda: _editor_is_in_front(now), editor))) is not None:
            return stuck
        yield from seen(lambda: _page(now), "A page to write on", 1)

    def empty_page() -> bool:
        page = _page(now)
        return page is not None and not (page.value or "").strip()

    if not empty_page():  # KWrite starts with a welcome page
        yield press("There is no empty page: take a new one.", "ctrl+n")
        if not (yield from seen(empty_page, "An empty page")):
            return Stuck("I found no empty page to write on.")
    return None


def _save(now: Now, name: str, text: str | None) -> Pursuit:
    """Name the file in the save dialog, and check that it appears."""
    if (yield from seen(lambda: focused_entry(now), "The field for the name")) is None:
        return (yield from leave(now, "I found no field for the name of the file."))
    name = yield from replace_name(f"Name it “{name}”.", name)
    if not (yield from field_held(now, name, "The name")):
        return (yield from leave(now, f"The field does not hold “{name}”."))
    acted = yield press(f"Save it as “{name}”.", "enter", main=True)

    def saved() -> Verdict | None:
        for change in fresh(now, acted):
            if change.after is not None and last_name(change.what) == last_name(name):
                return _of_size(str(change), change.after, text)
        return None

    return (yield from shown_or_left(now, saved, f"The file “{name}”", lambda: _why_not(now, name, acted)))


def _of_size(words: str, after: str, text: str | None) -> Verdict:
    """Check that a new file is as large as the text; editors may append a newline."""
    size = re.match(r"(\d+) bytes?\b", after)
    length = None if text is None else len(text.encode())
    if length is None or size is None or int(size[1]) in (length, length + 1):
        return Done(f"the file is saved: {words}")
    return Stuck(f"A file was saved, but not of {length} bytes, as the text has: {words}.")


def _why_not(now: Now, name: str, acted: Move) -> str:
    """Return why nothing was saved. Usually the file exists and the editor asks."""
    before = {one.title for one in acted.scene.windows}
    asks = [window.title for window in now.scene.windows if window.title not in before]
    if asks or focused_entry(now) is None:
        return f"“{name}” was not saved: the editor asks first, as where a file of that name exists. I replace none."
    return f"“{name}” was not saved: no file of that name came."


def _page(now: Now) -> Element | None:
    """Return the page of the editor in front; None if there is none."""
    if not _editor_is_in_front(now):
        return None
    pages = [one for one in now.scene.shown(_PAGES, without="") if "editable" in one.states and one.box.height > 60]
    return max(pages, key=lambda one: one.box.width * one.box.height, default=None)


def _editor_is_in_front(now: Now) -> bool:
    front = now.scene.front
    return front is not None and _EDITORS.search(front.app) is not None


def _has_text(page: Element | None, text: str) -> bool:
    """Return whether the page contains exactly the text; the reported value may be truncated."""
    held, wanted = " ".join(((page.value if page else "") or "").split()), " ".join(text.split())
    return held == wanted or (len(held) >= 40 and wanted.startswith(held.removesuffix("…").rstrip()))
