"""Folders made, things renamed and moved to the trash, in the desktop's file manager.

All file managers have the same keys: ctrl+shift+n for a new folder, ctrl+s to select by a pattern, F2 to rename, Delete
to move to the trash. Nothing is renamed or trashed before the file manager itself says that this one thing is selected.
"""

import re
from collections.abc import Iterator

from agent.literal.find.scene import CLICKABLE, TEXTS, Scene
from agent.literal.goals import MakeFolder, Rename, Trash
from agent.literal.state.goal_state import Done, GoalState, Step, Stuck, Verdict, press
from agent.literal.tasks.opening import names_it, of_several, open_step
from agent.literal.tasks.stages import (
    as_changed,
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
from agent.screen.outline import ShownWindow

#: The applications that are file managers, as their windows tell it.
_FILE_MANAGERS = re.compile(r"thunar|nautilus|caja|nemo|dolphin|pcmanfm", re.IGNORECASE)
#: What file managers write between the folder and their own name.
_PROGRAM = re.compile(r"\s+[-–—]\s+")
#: Nautilus takes a name only once it has looked at it: after so many waits enter is pressed again, so often at most.
_LATE, _MOST_ENTERS = 2, 3
_ITEMS = frozenset({"icon", "table cell", "list item", "table row", "tree item", "canvas"})
#: What a file manager has above its files.
_BARS = frozenset({"menu bar", "tool bar"})
#: A name as file managers quote it in their status bars.
_QUOTES = (r"[\"'“„«‘‚”»›]\s?", r"\s?[\"'”“»«’‘‹]")


def make_folder(now: GoalState, goal: MakeFolder) -> Verdict:
    """The next step of creating a folder."""
    where, name = _split(goal.name, goal.where)
    name = as_changed(now, "name in place", as_changed(now, "name", name))
    field = focused_entry(now)
    match stage_of(now):
        case "new folder":
            if field is not None:
                return empty()  # the name that stands there is selected
            if made := _new_folders(now):  # Nemo and its kind: the name is written over in place, which no tree tells
                return type_step(f"“{made[0]}” was made at once, and waits for its name.", name, "name in place")
            return wait_or(now, "The field for the name", leave(now, "I found no field for a new folder's name."))
        case "name in place":
            return press(f"Call it “{name}”.", "act", "enter", "made")
        case "empty":
            return type_step(f"Call it “{name}”.", name, "name")
        case "name":
            if not holds(field, name):
                return wait_or(now, "The name", leave(now, f"The field does not hold “{name}”."))
            return press(f"Create “{name}”.", "act", "enter", "made")
        case "made" if now.waits == _LATE and holds(field, name) and len(now.tried("act")) < _MOST_ENTERS:
            return press("The name still stands there, which was looked at late: once more.", "act", "enter", "made")
        case "made" | "leave":
            return _came(now, name, f"I could not create the folder “{name}”")
    if not _is_name(name):
        return Stuck(f"“{goal.name}” cannot be the name of a folder.")
    way = _to_folder(now, where or "~", anywhere=not where)
    if way is not None:
        return way
    if _lists(now, name):
        return Stuck(f"“{name}” exists already in “{_front_title(now)}”.")
    folder = _front_folder(now)
    if not where and name.casefold() in map(str.casefold, (folder, *now.names.of(folder))):
        return Stuck(  # who says no place means that one, seldom a second one within it
            f"“{name}” exists already: it is the folder that is open. For one within it, say “in {name}”."
        )
    return press(f"Make a new folder in “{folder}”.", "keys", "ctrl+shift+n", "new folder")


def rename(now: GoalState, goal: Rename) -> Verdict:
    """The next step of renaming a file or folder."""
    where, old = _split(goal.old, goal.where)
    new = as_changed(now, "name", last_name(goal.new))
    field = focused_entry(now)
    match stage_of(now):
        case "rename":
            if field is None:
                return wait_or(now, "The field for the name", leave(now, f"I found no field to rename “{old}”."))
            if not holds(field, old):
                return leave(now, f"The field to rename “{old}” holds “{field.value}”: I rename nothing.")
            return to_end()
        case "end":
            return select_back()
        case "all":
            return empty()
        case "empty":
            return type_step(f"Call it “{new}”.", new, "name")
        case "name":
            if not holds(field, new):
                return wait_or(now, "The name", leave(now, f"The field does not hold “{new}”."))
            return press(f"Rename “{old}” to “{new}”.", "act", "enter", "made")
        case "made" | "leave":
            return _came(now, new, f"I could not rename “{old}” to “{new}”")
    if goal.new.rpartition("/")[0] not in ("", where):
        return Stuck(f"“{goal.new}” is no new name: it would move “{old}”.")
    if not _is_name(new) or not _is_name(old):
        return Stuck(f"“{goal.old}” cannot be renamed to “{goal.new}”.")
    way = _select(now, old, where)
    if way is not None:
        return way
    if _lists(now, new):
        return Stuck(f"“{new}” exists already in “{_front_title(now)}”.")
    return press(f"“{old}” is selected: rename it.", "keys", "f2", "rename")


def trash(now: GoalState, goal: Trash) -> Verdict:
    """The next step of moving something to the trash."""
    where, name = _split(goal.name, goal.where)
    if stage_of(now) in ("trashed", "leave"):
        for change in fresh(now, now.acted):
            if (change.after or "").startswith("in the trash") and name in (
                last_name(change.what), last_name(change.after or "")
            ):  # fmt: skip
                return Done(f"“{name}” is in the trash: {change}")
        if path := _gone(now, name):
            return Done(f"{path} is not there any more")
        return wait_or(now, "That it is gone", leave(now, f"Nothing shows that “{name}” is in the trash now."))
    if not _is_name(name):
        return Stuck(f"“{goal.name}” cannot be the name of a file or folder.")
    way = _select(now, name, where)
    return way or press(f"“{name}” is selected: move it to the trash.", "act", "delete", "trashed")


def _split(name: str, where: str) -> tuple[str, str]:
    """Where it is, and what it is called."""
    folder, slash, last = name.rstrip("/").rpartition("/")
    return (where or folder, last) if slash and folder else (where, name.rstrip("/"))


def _is_name(name: str) -> bool:
    return bool(name) and "/" not in name and name not in (".", "..") and name.isprintable()


def _file_manager(now: GoalState) -> ShownWindow | None:
    """The window in front, where it is a file manager's."""
    front = now.scene.front
    return front if front is not None and _FILE_MANAGERS.search(front.app) else None


def _front_title(now: GoalState) -> str:
    front = now.scene.front
    return front.title if front is not None else ""


def _front_folder(now: GoalState) -> str:
    """The name of the folder that the window in front shows, as its title begins; a path is cut to its end."""
    return last_name(_PROGRAM.split(_front_title(now), maxsplit=1)[0])


def _to_folder(now: GoalState, where: str, *, anywhere: bool) -> Verdict | None:
    """Open a folder in the file manager; None where it is in front. `anywhere`: any that is in front will do."""
    window = _file_manager(now)
    if window is not None and (anywhere or any(names_it(window.title, one) for one in now.names.of(last_name(where)))):
        return None
    opened = last_stage(now)
    if opened is not None and opened.about == f"in {where}":
        if opened.has("failed"):
            reason = next((note.detail for note in opened.notes if note.kind == "failed"), "")
            return Stuck(f"I could not open “{where}”: {reason}.")
        if window is not None and where == "~":
            return None
        return wait_or(now, f"“{where}”", Stuck(f"I opened “{where}”, but it did not come to the front."), 1)
    return open_step(where, folder=True, intent="place", about=f"in {where}")


def _select(now: GoalState, name: str, where: str) -> Verdict | None:
    """Select something by its name; None where it, and nothing else, is selected."""
    stage, pattern = stage_of(now), _pattern(name)
    field = focused_entry(now)
    match stage:
        case "by pattern":
            if field is None:
                return wait_or(now, "The field for a pattern", leave(now, "I found no way to select by name."))
            return type_step(f"Select “{name}”.", pattern, "pattern")
        case "pattern":
            if not holds(field, pattern):
                return wait_or(now, "The pattern", leave(now, f"The field does not hold “{pattern}”."))
            return press("Select it.", "pick", "enter", "selected")
        case "selected":
            if _is_selected(now, name):
                return None
            why = f"I could not select “{name}” alone in “{_front_title(now)}”: is it there?"
            return wait_or(now, f"“{name}”", Stuck(why))
        case "leave":
            return Stuck(f"I could not select “{name}”.")
    way = _to_folder(now, where, anywhere=False) if where else _to_holder(now, name)
    return way or press("Select by name.", "pick", "ctrl+s", "by pattern")


def _to_holder(now: GoalState, name: str) -> Verdict | None:
    """Open the folder that holds something of that name; None where a file manager is in front, which is taken for it.

    Raises WhichError: several folders hold something of that name.
    """
    opened = next(iter(now.tried("place")[-1:]), None)
    if opened is not None and opened.has("failed"):
        reason = next((note.detail for note in opened.notes if note.kind == "failed"), "")
        if (path := of_several(now, name, reason)) is not None:
            return open_step(path.rpartition("/")[0] or "~", folder=True, intent="place", about=f"where {name} is")
        return Stuck(f"I found nothing called “{name}”: {reason}.")
    if _file_manager(now) is not None:
        return None
    if opened is not None:
        return wait_or(
            now, "The folder", Stuck(f"I opened the folder of “{name}”, but it did not come to the front."), 1
        )
    words = f"Open the folder that “{name}” is in."
    return Step(words, "place", {"action": "open", "text": f"./{name}/.."}, f"where {name} is")


def _pattern(name: str) -> str:
    """A pattern for exactly that name; one without any wildcard would be searched for within names by Thunar."""
    pattern = re.sub(r"[*?\[\]{}\\]", "?", name)
    if "?" in pattern:
        return pattern
    stem, dot, ending = pattern.rpartition(".")
    return f"{stem}?{ending}" if dot and stem else f"?{pattern[1:]}"


def _is_selected(now: GoalState, name: str) -> bool:
    """Whether the file manager says that this, and only this, is selected."""
    inside = [element for element in now.scene.elements if now.scene.in_front(element) and element.source != "words"]
    if now.scene.front is not None and "nautilus" in now.scene.front.app.casefold():
        # Its list of files is in the tree; what it says may be about something that is gone.
        chosen = {one.name.split("\n")[0] for one in inside if one.role == "table cell" and "selected" in one.states}
        if chosen - {""}:
            return chosen - {""} == {name}
    quoted = re.compile(rf"\s*{_QUOTES[0]}{re.escape(name)}{_QUOTES[1]}")
    return any(quoted.match(one.name) for one in inside if one.role in TEXTS | {"status bar"})


def _lists(now: GoalState, name: str) -> bool:
    """Whether the file manager in front shows something of that name."""
    items = _ITEMS - {"list item"}
    shown = [one for one in now.scene.elements if one.name.split("\n")[0] == name and now.scene.in_front(one)]
    bars = [one.box for one in now.scene.elements if one.role in _BARS and now.scene.in_front(one)]
    # What is in Thunar's view of icons is only read; so is what stands in its title bar, above all bars.
    below = max((box.top + box.height for box in bars), default=None)
    return any(
        one.role in items & CLICKABLE or (one.source == "words" and below is not None and one.box.top > below)
        for one in shown
    )


def _new_folders(now: GoalState) -> list[str]:
    """The names of what came into being since a new folder was asked for, and is there."""
    asked = next((move for move in now.moves if move.about == "new folder"), None)
    return [last_name(change.what) for change in fresh(now, asked) if change.before is None and change.after]


def _gone(now: GoalState, name: str) -> str:
    """The path of something of that name that the run itself had made, and that is not there any more; "" for none."""
    acted = now.acted
    before = acted.screen.changes if acted is not None and acted.screen is not None else ()
    here = {change.what for change in now.changes}
    if not here & {change.what for change in before}:  # nothing is told now
        return ""
    made = (change.what for change in before if change.kind == "file" and change.before is None)
    return next((path for path in made if last_name(path) == name and path not in here), "")


def _came(now: GoalState, name: str, failed: str) -> Verdict:
    """Whether something of that name came into being."""
    for change in fresh(now, now.acted):
        if change.before is None and change.after is not None and last_name(change.what) == name:
            return Done(f"“{name}” is there: {change}")
        if (change.after or "").startswith("moved to ") and last_name(change.after or "") == name:
            return Done(f"“{name}” is there: {change}")
    said = next(filter(None, (_says(scene, name) for scene in _scenes(now))), "")
    instead = "".join(f" “{other}” came instead, and is still there." for other in _new_folders(now) if other != name)
    give_up = leave(now, f"{failed}: no file of that name came.{said}{instead}")
    return give_up if said and now.waits else wait_or(now, f"“{name}”", give_up)


def _scenes(now: GoalState) -> Iterator[Scene]:
    """The screen now, and those on which was left what was begun in vain."""
    yield now.scene
    for move in now.tried("back"):
        if move.screen is not None and move.screen.outline is not None:
            yield Scene(move.screen.outline)


def _says(scene: Scene, name: str) -> str:
    """What the window in front says about something of that name; "" for nothing."""
    texts = (one.name for one in scene.elements if scene.in_front(one) and one.role in TEXTS and name in one.name)
    return next((f" It says: “{' '.join(text.split())[:120]}”." for text in texts if len(text) > len(name) + 8), "")
