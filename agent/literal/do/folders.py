"""Makes folders, renames files and moves them to the trash, in the desktop's file manager.

All file managers share keys: ctrl+shift+n for a new folder, ctrl+s to select by a pattern, F2 to rename, Delete to move
to the trash. Nothing is renamed or trashed before the file manager reports that only this item is selected.
"""

import re
from collections.abc import Iterator

from agent.core.changes import Change
from agent.literal.do.documents import (
    empty,
    field_holds,
    focused_entry,
    fresh,
    last_name,
    leave,
    name_field,
    names_it,
    of_several,
    open_file,
    open_step,
    replace_name,
    seen,
    shown_or_left,
    type_name,
)  # fmt: skip
from agent.literal.do.now import Done, Move, Now, Pursuit, Step, Steps, StuckError, opened, surely
from agent.literal.find.scene import CLICKABLE, TEXTS, Scene
from agent.literal.goals import MakeFolder, Open, Rename, Transfer, Trash

#: Separator between the folder and the program's name in titles.
_PROGRAM = re.compile(r"\s+[-–—]\s+")
_ITEMS = frozenset({"icon", "table cell", "table row", "tree item", "canvas"})
#: Roles of the bars above the files.
_BARS = frozenset({"menu bar", "tool bar"})
#: Quotation marks around names in status bars.
_QUOTES = (r"[\"'“„«‘‚”»›]\s?", r"\s?[\"'”“»«’‘‹]")
#: A file's size in the status bar. Folders have none there.
_SIZE = re.compile(r"(?i)\d\s?(?:bytes?|octets?|[kmgt]i?b)\b")
_MOST_WAITS = 3
#: Nautilus accepts a name only after it has validated it, so enter may be needed again.
_MOST_ENTERS = 3


def make_folder(now: Now, goal: MakeFolder) -> Pursuit:
    """Create a folder."""
    parent, name = _split(goal.name, goal.where)
    if not _is_name(name):
        raise StuckError(f"“{goal.name}” cannot be the name of a folder.")
    yield from _to_folder(now, parent or "~", anywhere=not parent)
    if _lists(now, name):
        raise StuckError(f"“{name}” exists already in “{_front_title(now)}”.")
    folder = last_name(_PROGRAM.split(_front_title(now), maxsplit=1)[0])  # titles may show its path
    if not parent and name.casefold() in map(str.casefold, (folder, *now.names.of(folder))):
        raise StuckError(  # without a place, the open folder itself is meant, rarely a folder of the same name in it
            f"“{name}” exists already: it is the folder that is open. For one within it, say “in {name}”."
        )
    request = yield Step.press(f"Make a new folder in “{folder}”.", "ctrl+shift+n")
    made = yield from seen(lambda: focused_entry(now) or _new_folders(now, request), "The field for the name")
    if not made:
        return (yield from leave(now, "I found no field for a new folder's name."))
    if isinstance(made, list):  # Nemo and others: the name is edited in place, which the tree does not report
        name = (yield Step.type(f"“{made[0]}” was made at once, and waits for its name.", name)).typed(name)
    else:
        yield empty()  # the default name is selected
        name = yield from type_name(now, f"Call it “{name}”.", name)
    failed = f"I could not create the folder “{name}”"
    return (yield from _called(now, name, f"Create “{name}”.", failed, request))


def enter_folder(now: Now, name: str) -> Steps[Done | None]:
    """Go to a folder that the file manager in front lists, or else to the folder of that name in the home.

    A click would only select it. None if there is no such folder, or no file manager in front.
    """
    if now.scene.front_of_kind("file manager") is None:
        return None
    if not _lists(now, name):
        try:
            return (yield from open_file(now, Open(name, "folder")))
        except StuckError:
            return None
    yield from _select(now, name, "")
    texts = (one.name for one in now.scene.shown(without="") if one.role in TEXTS | {"status bar"})
    if any(name in text and _SIZE.search(text) for text in texts):
        raise StuckError(f"“{name}” is a file and no folder: say “open {name}” to open it.")  # it may be a program
    yield Step.press(f"“{name}” is selected: open it.", "enter", main=True)

    def is_open() -> Done | None:
        front = now.scene.front_of_kind("file manager")
        shown = front is not None and names_it(front.title, name)
        return Done(f"“{name}” is open: the window “{_front_title(now)}” is in front") if shown else None

    failed = f"I opened “{name}”, but no window of that name appeared."
    return (yield from surely(is_open, f"“{name}” may need longer: wait.", failed, _MOST_WAITS))


def rename(now: Now, goal: Rename) -> Pursuit:
    """Rename a file or folder."""
    parent, old = _split(goal.old, goal.where)
    new = last_name(goal.new)
    if goal.new.rpartition("/")[0] not in ("", parent):
        raise StuckError(f"“{goal.new}” is no new name: it would move “{old}”.")
    if not _is_name(new):
        raise StuckError(f"“{goal.old}” cannot be renamed to “{goal.new}”.")
    yield from _select(now, old, parent)
    if _lists(now, new):
        raise StuckError(f"“{new}” exists already in “{_front_title(now)}”.")
    yield Step.press(f"“{old}” is selected: rename it.", "f2")
    field = yield from name_field(now, "The field for the name", f"I found no field to rename “{old}”.")
    if (field.value or "") != old:
        return (yield from leave(now, f"The field to rename “{old}” holds “{field.value}”: I rename nothing."))
    new = yield from replace_name(now, f"Call it “{new}”.", new)
    failed = f"I could not rename “{old}” to “{new}”"
    return (yield from _called(now, new, f"Rename “{old}” to “{new}”.", failed))


def trash(now: Now, goal: Trash) -> Pursuit:
    """Move something to the trash."""
    parent, name = _split(goal.name, goal.where)
    yield from _select(now, name, parent)
    acted = yield Step.press(f"“{name}” is selected: move it to the trash.", "delete", main=True)

    def gone() -> Done | None:
        for change in fresh(now, acted):
            names = map(last_name, (change.what, change.after or ""))
            if (change.after or "").startswith("in the trash") and name in names:
                return Done(f"“{name}” is in the trash: {change}")
        here = {change.what for change in now.changes}
        if not here & {change.what for change in acted.changes}:  # no changes are reported now
            return None
        made = (change.what for change in acted.changes if change.kind == "file" and change.before is None)
        path = next((path for path in made if last_name(path) == name and path not in here), None)
        return Done(f"{path} is not there any more") if path else None

    why = f"Nothing shows that “{name}” is in the trash now."
    return (yield from shown_or_left(now, gone, "That it is gone", lambda: why))


def transfer(now: Now, goal: Transfer) -> Pursuit:
    """Move or copy something into another folder, by the file manager's clipboard."""
    parent, name = _split(goal.name, goal.where)
    folder = last_name(goal.to)
    if now.scene.front_of_kind("file manager") is None:  # first, so that nothing is copied if the folder is missing
        yield from _to_folder(now, goal.to)
        yield from () if parent else _open_holder(now, name)
    yield from _select(now, name, parent)
    verb = "copy" if goal.copy else "move"
    yield Step.press(f"“{name}” is selected: {verb} it.", "ctrl+c" if goal.copy else "ctrl+x")
    yield from _to_folder(now, goal.to)
    acted = yield Step.press(f"Put it into “{goal.to}”.", "ctrl+v", main=True)

    def there() -> Done | None:
        for change, path in _arrived(now, acted, name):
            if (path == change.what or not goal.copy) and (
                folder == "~" or last_name(path.rpartition("/")[0]) in now.names.of(folder)
            ):
                return Done(f"“{name}” is in “{goal.to}”: {change}")
        return None

    why = lambda: f"I could not {verb} “{name}” to “{goal.to}”.{_said(now.scene, name)}"  # noqa: E731
    return (yield from shown_or_left(now, there, f"“{name}”", why))


def _split(name: str, parent: str) -> tuple[str, str]:
    """Return the folder and the name."""
    folder, slash, last = name.rstrip("/").rpartition("/")
    return (parent or folder, last) if slash and folder else (parent, name.rstrip("/"))


def _is_name(name: str) -> bool:
    return bool(name) and "/" not in name and name not in (".", "..") and name.isprintable()


def _front_title(now: Now) -> str:
    front = now.scene.front
    return front.title if front is not None else ""


def _to_folder(now: Now, folder: str, *, anywhere: bool = False) -> Steps[None]:
    """Bring a folder to the front in the file manager. `anywhere`: accept any folder in front."""

    def in_front() -> bool:
        window = now.scene.front_of_kind("file manager")
        if window is None or anywhere:
            return window is not None
        return any(names_it(window.title, one) for one in now.names.of(last_name(folder)))

    arrived = lambda: in_front() or (folder == "~" and now.scene.front_of_kind("file manager") is not None)  # noqa: E731
    if not in_front():
        yield from opened(open_step(folder, folder=True), arrived, folder)


def _select(now: Now, name: str, parent: str) -> Steps[None]:
    """Select something by its name, and nothing else."""
    if not _is_name(name):
        raise StuckError(f"“{name}” cannot be the name of a file or folder.")
    if parent:
        yield from _to_folder(now, parent)
    elif now.scene.front_of_kind("file manager") is None:
        yield from _open_holder(now, name)
    pattern, failed = _pattern(name), f"I could not select “{name}”."
    yield Step.press("Select by name.", "ctrl+s")
    yield from name_field(now, "The field for a pattern", failed)
    yield Step.type(f"Select “{name}”.", pattern)
    yield from field_holds(now, pattern, "The pattern", failed)
    yield Step.press("Select it.", "enter")
    if not (yield from seen(lambda: _is_selected(now, name), f"“{name}”")):
        raise StuckError(f"I could not select “{name}” alone in “{_front_title(now)}”: is it there?")


def _open_holder(now: Now, name: str) -> Steps[None]:
    """Open the folder that contains the name.

    Raises WhichError if several folders contain it and the person does not say which.
    """
    before = _front_title(now)
    attempt = yield Step.start(f"Open the folder that “{name}” is in.", f"./{name}/..")
    if attempt.failure is not None and (path := (yield from of_several(now, name, attempt.failure))) is not None:
        attempt = yield open_step(path.rpartition("/")[0] or "~", folder=True)
    if attempt.failure is not None:
        raise StuckError(f"I found nothing called “{name}”: {attempt.failure.replace(f'./{name}/..', name)}.")
    failed = f"I opened the folder of “{name}”, but it did not come to the front."
    came = lambda: now.scene.front_of_kind("file manager") if _front_title(now) != before else None  # noqa: E731
    yield from surely(came, "The folder is not visible yet: wait.", failed, _MOST_WAITS)


def _pattern(name: str) -> str:
    """Return a pattern for the name. Thunar also matches a pattern without a wildcard inside longer names."""
    pattern = re.sub(r"[*?\[\]{}\\]", "?", name)
    if "?" in pattern:
        return pattern
    stem, dot, ending = pattern.rpartition(".")
    return f"{stem}?{ending}" if dot and stem else f"?{pattern[1:]}"


def _is_selected(now: Now, name: str) -> bool:
    """Return whether the file manager reports that only this item is selected."""
    inside = [one for one in now.scene.shown(without="") if one.source != "words"]
    if now.scene.front is not None and "nautilus" in now.scene.front.app.casefold():
        # Nautilus has its files in the tree, while its status text may be outdated.
        chosen = {one.name.split("\n")[0] for one in inside if one.role == "table cell" and "selected" in one.states}
        if chosen - {""}:
            return chosen - {""} == {name}
    quoted = re.compile(rf"\s*{_QUOTES[0]}{re.escape(name)}{_QUOTES[1]}")
    return any(quoted.match(one.name) for one in inside if one.role in TEXTS | {"status bar"})


def _lists(now: Now, name: str) -> bool:
    """Return whether the file manager in front shows an item of that name."""
    shown = [one for one in now.scene.shown(without="") if one.name.split("\n")[0] == name]
    bars = [one.box for one in now.scene.shown(_BARS, without="")]
    # Thunar's icon view is known by OCR only. So is its title bar, which lies above all bars and does not count.
    below = max((box.bottom for box in bars), default=None)
    return any(
        one.role in _ITEMS & CLICKABLE or (one.source == "words" and below is not None and one.box.top > below)
        for one in shown
    )


def _new_folders(now: Now, request: Move) -> list[str]:
    """Return the names of files and folders created since a new folder was requested."""
    return [last_name(change.what) for change in fresh(now, request) if change.before is None and change.after]


def _arrived(now: Now, since: Move, name: str) -> Iterator[tuple[Change, str]]:
    """Yield the changes that made or moved a file or folder of that name since a step, with its path."""
    for change in fresh(now, since):
        after = change.after or ""
        path = after.removeprefix("moved to ") if after.startswith("moved to ") else change.what
        if last_name(path) == name and (path != change.what or (change.before is None and change.after is not None)):
            yield change, path


def _called(now: Now, name: str, words: str, failed: str, request: Move | None = None) -> Pursuit:
    """Press enter, and check whether a file or folder of that name appeared.

    `request` is the step that requested a new folder.
    """
    entered = yield Step.press(words, "enter", main=True)

    def came() -> Done | None:
        return next((Done(f"“{name}” is there: {change}") for change, _ in _arrived(now, entered, name)), None)

    for enters in range(1, _MOST_ENTERS + 1):
        more = 1 if request and enters < _MOST_ENTERS else _MOST_WAITS - 1
        done: object = (yield from seen(came, f"“{name}”", 1)) or (
            yield from seen(lambda: came() or _said(now.scene, name), f"“{name}”", more)
        )
        field = focused_entry(now)
        if done or not request or field is None or field.value != name or enters == _MOST_ENTERS:
            break
        entered = yield Step.press("The name is still in the field: press Enter once more.", "enter", main=True)
    if (evidence := came()) is not None:
        return evidence
    message = _said(now.scene, name)
    others = _new_folders(now, request) if request is not None else []
    instead = "".join(f" “{other}” appeared instead, and is still there." for other in others if other != name)
    return (yield from leave(now, f"{failed}: no file of that name appeared.{message}{instead}", came))


def _said(scene: Scene, name: str) -> str:
    """Return the front window's message about that name; "" for none."""
    texts = (one.name for one in scene.shown(TEXTS, without="") if name in one.name)
    return next((f" It says: “{' '.join(text.split())[:120]}”." for text in texts if len(text) > len(name) + 8), "")
