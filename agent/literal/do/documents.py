"""Opens files, folders and web pages; writes texts in an editor and saves them; fills the name fields of dialogs."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from agent.core.changes import Change
from agent.literal.do.now import Done, Move, Now, OrGoal, Pursuit, Step, Steps, StuckError, opened, until
from agent.literal.find.scene import FIELDS
from agent.literal.goals import Click, Open, ReplaceText, SaveAs, Target, WriteFile
from agent.screen.outline import Element, ShownWindow

#: The desktop's message if several files have the name (`agent.desktop.apps.files`).
_SEVERAL = re.compile(r"several are called .*?: (.+)")
_PAGES = frozenset({"text", "document text", "paragraph", "terminal"})
#: Most characters of a text to change: the tree reports the first thousand.
_MOST_REPLACED = 900
_MOST_WAITS, _MOST_ESCAPES = 3, 2
_ENTRIES = FIELDS - {"document text", "terminal", "paragraph", "password text"}
_T = TypeVar("_T")


def open_file(now: Now, goal: Open) -> Pursuit:
    """Open a file or folder."""
    attempt = yield open_step(goal.name, folder=goal.kind == "folder", application=goal.inside, main=True)
    if attempt.failure is not None and (path := (yield from of_several(now, goal.name, attempt.failure))) is not None:
        attempt = yield open_step(path, folder=goal.kind == "folder", application=goal.inside, main=True)
    if attempt.failure is not None:
        raise StuckError(f"I could not open “{goal.name}”: {attempt.failure or 'nothing has that name'}.")

    def shown() -> ShownWindow | None:
        front, names = now.scene.front, now.names.of(last_name(goal.name) or goal.name)
        return front if front is not None and any(names_it(front.title, one) for one in names) else None

    if window := (yield from until(shown, f"“{goal.name}” may need longer: wait.", _MOST_WAITS, 1)):
        return Done(f"“{goal.name}” is open: the window “{window.title}” is in front")
    came, wanted = now.effects_of(attempt).windows, (last_name(goal.name) or goal.name).casefold()
    if came and any(wanted in f"{one.name} {one.value or ''}".casefold() for one in now.scene.shown()):
        return Done(f"“{goal.name}” is open: {'; '.join(came)}, and shows its name")
    if came:
        return Done(f"I opened “{goal.name}”, and {'; '.join(came)}, which does not show that name", verified=False)
    raise StuckError(f"I opened “{goal.name}”, but no window of that name appeared.")


def open_page(now: Now, goal: Open) -> Pursuit:
    """Show a web page in the default browser."""
    attempt = yield Step(f"Show the page “{goal.name}”.", {"action": "visit", "url": goal.name}, main=True)
    if attempt.failure is not None:
        raise StuckError(f"I could not show “{goal.name}”: {attempt.failure}.")
    host = re.sub(r"^(?:https?://)?(?:www\.)?|/.*", "", goal.name)

    def address() -> str:
        values = (one.value or "" for one in now.scene.shown(without=""))
        return next((value for value in values if host in value and "\n" not in value), "")

    if field := (yield from until(address, f"The browser may need longer for “{goal.name}”: wait.", _MOST_WAITS, 1)):
        return Done(f"the browser shows “{goal.name}”: its field reads “{field}”")
    return Done(f"I asked the browser for “{goal.name}”, but the page that it shows is unknown", verified=False)


def open_step(name: str, *, folder: bool = False, application: str = "", main: bool = False) -> Step:
    """Return the step that opens a file or folder. For its distinction from an application see `actions.OpenApp`."""
    with_it = f" with “{application}”" if application else ""
    path = name if name.startswith(("/", "~", "./", "file:")) else f"./{name}"
    call = {"action": "open", "text": f"{path.rstrip('/')}/" if folder else path}
    words = f"Open {'the folder' if folder else 'the file'} “{name}”{with_it}."
    return Step(words, call | ({"application": application} if application else {}), main)


def of_several(now: Now, name: str, reason: str) -> Steps[str | None]:
    """Ask which path is meant if several have the name; None if `reason` is another error.

    Raises WhichError if the answer names none.
    """
    several = _SEVERAL.search(reason)
    if several is None:
        return None
    paths = several[1].split(", ")
    return paths[(yield from now.pick(name, paths))].partition(" and ")[0]


def last_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


def names_it(title: str, name: str) -> bool:
    """Return whether a window's title contains a file's or folder's name, with or without its extension."""
    stem = name.rpartition(".")[0] or name
    return any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", title, re.IGNORECASE) for one in (name, stem) if one)


def write_file(now: Now, goal: WriteFile) -> Pursuit:
    """Write a text on an empty page, and save it if a name is given."""
    yield from _to_empty_page(now, goal.editor or "text editor")
    yield Step.type(f"Write the text ({len(goal.text)} characters).", goal.text)
    if not (yield from seen(lambda: _has_text(_page(now), goal.text), "The text")):
        raise StuckError("I typed the text, but the editor does not show it.")
    if not goal.save_as:
        return Done(f"the text holds “{' '.join(goal.text.split())[:60]}”")
    yield Step.press("Save it.", "ctrl+s")
    return (yield from _save(now, goal.save_as, goal.text))


def save_as(now: Now, goal: SaveAs) -> OrGoal:
    """Save the front window's document, under a new name or its own."""
    front = now.scene.front
    if front is None:
        raise StuckError("I see no window whose text could be saved.")
    if goal.name:
        yield Step.press(f"Save “{front.title}” under a name.", "ctrl+shift+s")
        return (yield from _save(now, goal.name, None))
    for name in ("Save changes", "Save") if now.scene.front_of_kind("browser") is not None else ():
        button = Target(name, "push button")  # the page's own button, which ctrl+s does not press
        if now.finder.best(button) is not None:
            return Click(button)

    def written() -> list[Change]:  # programs write into hidden folders on their own
        return [one for one in fresh(now, acted) if "/." not in one.what or Path(one.what).name in front.title]

    acted = yield Step.press(f"Save “{front.title}”.", "ctrl+s", main=True)
    yield from seen(lambda: written() or focused_entry(now), "The saved file")
    if changes := written():
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
        raise StuckError("I see no text editor in front whose text I could change.")
    if len(text) > _MOST_REPLACED or not count:
        reason = f"I do not see all of a text that is longer than {_MOST_REPLACED} characters."
        raise StuckError(reason if count else f"“{goal.old}” is not in the text.")
    if count > 1 and not goal.all:
        raise StuckError(f"“{goal.old}” occurs {count} times: say “replace all”, or change it yourself.")
    new = text.replace(goal.old, goal.new)
    yield now.click("Give the text the focus.", page, main=False)
    yield Step.press("Select all of it.", "ctrl+a")
    yield Step.type(f"Write it again, with “{goal.new}” in place of “{goal.old}” {count} times.", new, main=True)
    if (yield from seen(lambda: _has_text(_page(now), new), "The text")):
        return Done(f"the text holds “{' '.join(new.split())[:60]}”")
    raise StuckError("I typed the new text, but the editor does not show it.")


def _to_empty_page(now: Now, editor: str) -> Steps[None]:
    """Bring an empty page of an editor to the front."""
    if now.scene.front_of_kind("text editor") is None:
        shown = lambda: now.scene.front_of_kind("text editor")  # noqa: E731
        yield from opened(Step.start(f"Open the {editor}.", editor), shown, editor)
        yield from seen(lambda: _page(now), "A page to write on", 1)

    def empty_page() -> bool:
        page = _page(now)
        return page is not None and not (page.value or "").strip()

    if not empty_page():  # KWrite starts with a welcome page
        yield Step.press("There is no empty page: take a new one.", "ctrl+n")
        if not (yield from seen(empty_page, "An empty page")):
            raise StuckError("I found no empty page to write on.")


def _save(now: Now, name: str, text: str | None) -> Pursuit:
    """Name the file in the save dialog, and check that it appears."""
    yield from name_field(now, "The field for the name", "I found no field for the name of the file.")
    name = yield from replace_name(now, f"Name it “{name}”.", name)
    acted = yield Step.press(f"Save it as “{name}”.", "enter", main=True)

    def saved() -> Done | None:
        for change in fresh(now, acted):
            if change.after is not None and last_name(change.what) == last_name(name):
                return _of_size(str(change), change.after, text)
        return None

    return (yield from shown_or_left(now, saved, f"The file “{name}”", lambda: _why_not(now, name, acted)))


def _of_size(words: str, after: str, text: str | None) -> Done:
    """Check that a new file is as large as the text; editors may append a newline."""
    size = re.match(r"(\d+) bytes?\b", after)
    length = None if text is None else len(text.encode())
    if length is None or size is None or int(size[1]) in (length, length + 1):
        return Done(f"the file is saved: {words}")
    raise StuckError(f"A file was saved, but not of {length} bytes, as the text has: {words}.")


def _why_not(now: Now, name: str, acted: Move) -> str:
    """Return why nothing was saved. Usually the file exists and the editor asks."""
    before = {one.title for one in acted.scene.windows}
    asks = [window.title for window in now.scene.windows if window.title not in before]
    if asks or focused_entry(now) is None:
        return f"“{name}” was not saved: the editor asks first, perhaps because the file exists. I replace no file."
    return f"“{name}” was not saved: no file of that name appeared."


def _page(now: Now) -> Element | None:
    """Return the text page of the editor in front; None if no editor is in front."""
    if now.scene.front_of_kind("text editor") is None:
        return None
    pages = [one for one in now.scene.shown(_PAGES, without="") if "editable" in one.states and one.box.height > 60]
    return max(pages, key=lambda one: one.box.width * one.box.height, default=None)


def _has_text(page: Element | None, text: str) -> bool:
    """Return whether the page contains exactly the text; the reported value may be truncated."""
    held, wanted = " ".join(((page.value if page else "") or "").split()), " ".join(text.split())
    return held == wanted or (len(held) >= 40 and wanted.startswith(held.removesuffix("…").rstrip()))


def focused_entry(now: Now) -> Element | None:
    """Return the focused single-line field, or None."""
    focused = (one for one in now.scene.shown(_ENTRIES, without="") if {"focused", "editable"} <= one.states)
    field = next(focused, None)
    return None if field is None or "multi_line" in field.states or field.box.height > 60 else field


def seen(check: Callable[[], _T], subject: str, times: int = _MOST_WAITS) -> Steps[_T]:
    """Wait for something to be shown. Return the last result of `check`."""
    return (yield from until(check, f"{subject} is not visible yet: wait.", times, 0.7))


def name_field(now: Now, subject: str, failed: str) -> Steps[Element]:
    """Wait for the focused field of a dialog. Without it close the dialog, and raise StuckError."""
    if field := (yield from seen(lambda: focused_entry(now), subject)):
        return field
    yield from leave(now, failed)
    raise StuckError(failed)


def field_holds(now: Now, text: str, subject: str, failed: str) -> Steps[None]:
    """Wait until the focused field contains exactly this text. Else close the dialog, and raise StuckError."""

    def holds() -> bool:
        field = focused_entry(now)
        return field is not None and (field.value or "") == text

    if not (yield from seen(holds, subject)):
        yield from leave(now, failed)


def shown_or_left(now: Now, check: Callable[[], Done | None], subject: str, why: Callable[[], str]) -> Pursuit:
    """Wait for evidence. Without it close the dialog, and raise StuckError with the reason."""
    return (yield from seen(check, subject)) or (yield from leave(now, why(), check))


def type_name(now: Now, words: str, name: str) -> Steps[str]:
    """Type a name, and read it back. Return the typed name, which the person may have changed."""
    name = (yield Step.type(words, name)).typed(name)
    yield from field_holds(now, name, "The name", f"The field does not hold “{name}”.")
    return name


def replace_name(now: Now, words: str, name: str) -> Steps[str]:
    """Replace the name in a field as `type_name` does.

    Not all of the text is selected at first, and Thunar's dialogs do not support ctrl+a.
    """
    yield Step.press("Replace the name that stands there.", "end")
    yield Step.press("Select all of it.", "shift+home")
    yield empty()
    return (yield from type_name(now, words, name))


def empty() -> Step:
    """Return the step that deletes the selected text. Typing may take the X11 selection, and then the field appends."""
    return Step.press("Take it away.", "backspace")


def leave(now: Now, why: str, done: Callable[[], Done | None] = lambda: None) -> Pursuit:
    """Close the dialog, and a question on top of it, then raise StuckError with the reason.

    `done` returns the evidence if the goal turns out to be reached after all.
    """
    for _ in range(_MOST_ESCAPES):
        left = yield Step.press("Leave it as it was.", "escape")
        if (evidence := done()) is not None:
            return evidence
        window_closed = len(now.scene.windows) < len(left.scene.windows)
        if not (window_closed and focused_entry(now) is not None):
            break
    raise StuckError(why)


def fresh(now: Now, since: Move) -> list[Change]:
    """Return the files that changed since a step."""
    return [change for change in now.changes if change.kind == "file" and change not in since.changes]
