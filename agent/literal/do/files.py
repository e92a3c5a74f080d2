"""Opening a file or folder of the person's home, with the application for it or the one they name."""

import re

from agent.literal.do.now import Done, Now, Pursuit, Step, Steps, Stuck, until
from agent.literal.goals import Open
from agent.screen.outline import ShownWindow

_MOST_WAITS = 3
#: What the desktop says where a name is that of several files (`agent.desktop.apps.files`).
_SEVERAL = re.compile(r"several are called .*?: (.+)")


def open_file(now: Now, goal: Open) -> Pursuit:
    """Open a file or folder."""
    attempt = yield open_step(goal.name, folder=goal.kind == "folder", application=goal.inside, main=True)
    if attempt.failure is not None and (path := (yield from of_several(now, goal.name, attempt.failure))) is not None:
        attempt = yield open_step(path, folder=goal.kind == "folder", application=goal.inside, main=True)
    if attempt.failure is not None:
        return Stuck(f"I could not open “{goal.name}”: {attempt.failure or 'nothing has that name'}.")
    words = f"“{goal.name}” may need longer: wait."
    if (window := (yield from until(lambda: _window_of(now, goal.name), words, _MOST_WAITS, 1))) is not None:
        return Done(f"“{goal.name}” is open: the window “{window.title}” is in front")
    came = now.effects_of(attempt).windows
    if came and _is_shown(now, goal.name):
        return Done(f"“{goal.name}” is open: {'; '.join(came)}, and names it")
    if came:
        return Done(f"I opened “{goal.name}”, and {'; '.join(came)}, which does not tell that name", verified=False)
    return Stuck(f"I opened “{goal.name}”, but no window of that name appeared.")


def open_step(name: str, *, folder: bool = False, application: str = "", main: bool = False) -> Step:
    """The step that opens a file or folder; `actions.OpenApp` says how it is told apart from an application."""
    with_it = f" with “{application}”" if application else ""
    path = name if name.startswith(("/", "~", "./", "file:")) else f"./{name}"
    call = {"action": "open", "text": f"{path.rstrip('/')}/" if folder else path}
    words = f"Open {'the folder' if folder else 'the file'} “{name}”{with_it}."
    return Step(words, call | ({"application": application} if application else {}), main)


def of_several(now: Now, name: str, reason: str) -> Steps[str | None]:
    """Ask which path is meant, where the desktop says that several have a name; None where it says otherwise.

    Raises WhichError: the person has not said which.
    """
    several = _SEVERAL.search(reason)
    if several is None:
        return None
    paths = several[1].split(", ")
    yield from now.ask(name, paths)
    return paths[now.chosen(name, paths)].partition(" and ")[0]


def last_name(path: str) -> str:
    """The name of a file or folder without where it is."""
    return path.rstrip("/").rpartition("/")[2]


def names_it(title: str, name: str) -> bool:
    """Whether a window's title names a file or folder: whole, with its ending or without."""
    stem = name.rpartition(".")[0] or name
    return any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", title, re.IGNORECASE) for one in (name, stem) if one)


def _window_of(now: Now, name: str) -> ShownWindow | None:
    """The window in front, where its title names the file or folder."""
    front = now.scene.front
    named = front is not None and any(names_it(front.title, one) for one in now.names.of(last_name(name) or name))
    return front if named else None


def _is_shown(now: Now, name: str) -> bool:
    """Whether something in the window in front names it: an address, a tab."""
    wanted = (last_name(name) or name).casefold()
    return any(
        wanted in f"{element.name} {element.value or ''}".casefold()
        for element in now.scene.elements
        if now.scene.in_front(element) and "offscreen" not in element.states
    )
