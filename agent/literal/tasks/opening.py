"""Opening a file or folder of the person's home, with the application for it or the one they name."""

import re

from agent.literal.goals import Open
from agent.literal.state.conversation import Intent
from agent.literal.state.goal_state import Done, GoalState, Step, Stuck, Verdict, wait
from agent.screen.outline import ShownWindow

_MOST_WAITS = 3
#: What the desktop says where a name is that of several files (`agent.desktop.apps.files`).
_SEVERAL = re.compile(r"several are called .*?: (.+)")


def open_file(now: GoalState, goal: Open) -> Verdict:
    """The next step of opening a file or folder."""
    attempt = now.acted
    if attempt is None:
        return open_step(goal.name, folder=goal.kind == "folder", application=goal.inside)
    if attempt.has("failed"):
        reason = next((note.detail for note in attempt.notes if note.kind == "failed"), "nothing has that name")
        if (path := of_several(now, goal.name, reason)) is not None:
            return open_step(path, folder=goal.kind == "folder", application=goal.inside)
        return Stuck(f"I could not open “{goal.name}”: {reason}.")
    if (window := window_of(now, goal.name)) is not None:
        return Done(f"“{goal.name}” is open: the window “{window.title}” is in front")
    if now.waits < _MOST_WAITS:
        return wait(f"“{goal.name}” may need longer: wait.", 1)
    came = now.effects_of(attempt).windows
    if came and _is_shown(now, goal.name):
        return Done(f"“{goal.name}” is open: {'; '.join(came)}, and names it")
    if came:
        return Done(f"I opened “{goal.name}”, and {'; '.join(came)}, which does not tell that name", verified=False)
    return Stuck(f"I opened “{goal.name}”, but no window of that name appeared.")


def open_step(
    name: str, *, folder: bool = False, application: str = "", intent: Intent = "act", about: str = ""
) -> Step:
    """The step that opens a file or folder; see `actions.OpenApp` for how it is told apart from an application."""
    words = f"Open {'the folder' if folder else 'the file'} “{name}”" + (
        f" with “{application}”" if application else ""
    )
    path = name if name.startswith(("/", "~", "./", "file:")) else f"./{name}"
    path = f"{path.rstrip('/')}/" if folder else path
    arguments = {"action": "open", "text": path} | ({"application": application} if application else {})
    return Step(f"{words}.", intent, arguments, about or name)


def of_several(now: GoalState, name: str, reason: str) -> str | None:
    """The path that the person means, where the desktop says that several have a name; None where it says otherwise.

    Raises WhichError: the person has not said which.
    """
    several = _SEVERAL.search(reason)
    if several is None:
        return None
    paths = several[1].split(", ")
    return paths[now.choose(name, paths)].partition(" and ")[0]


def last_part(path: str) -> str:
    """The name of a file or folder without where it is."""
    return path.rstrip("/").rpartition("/")[2] or path


def window_of(now: GoalState, name: str) -> ShownWindow | None:
    """The window in front, where its title names the file or folder."""
    front = now.scene.front
    if front is None:
        return None
    return front if any(names_it(front.title, one) for one in now.names.of(last_part(name))) else None


def names_it(title: str, name: str) -> bool:
    """Whether a window's title names a file or folder: whole, with its ending or without."""
    stem = name.rpartition(".")[0] or name
    return any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", title, re.IGNORECASE) for one in (name, stem) if one)


def _is_shown(now: GoalState, name: str) -> bool:
    """Whether something in the window in front names it: an address, a tab."""
    wanted = last_part(name).casefold()
    return any(
        wanted in f"{element.name} {element.value or ''}".casefold()
        for element in now.scene.elements
        if now.scene.in_front(element) and "offscreen" not in element.states
    )
