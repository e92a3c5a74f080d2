"""Opens a file or folder in the home folder, with the default application or a named one; and a web page."""

import re

from agent.literal.do.now import Done, Now, Pursuit, Step, Steps, Stuck, until
from agent.literal.goals import Open
from agent.screen.outline import ShownWindow

_MOST_WAITS = 3
#: The desktop's message if several files have the name (`agent.desktop.apps.files`).
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


def open_page(now: Now, goal: Open) -> Pursuit:
    """Show a web page in the default browser."""
    attempt = yield Step(f"Show the page “{goal.name}”.", {"action": "visit", "url": goal.name}, main=True)
    if attempt.failure is not None:
        return Stuck(f"I could not show “{goal.name}”: {attempt.failure}.")
    host = re.sub(r"^(?:https?://)?(?:www\.)?|/.*", "", goal.name)
    words = f"The browser may need longer for “{goal.name}”: wait."
    if field := (yield from until(lambda: _field_with(now, host), words, _MOST_WAITS, 1)):
        return Done(f"the browser shows “{goal.name}”: its field reads “{field}”")
    return Done(f"I asked the browser for “{goal.name}”, and nothing tells which page it shows", verified=False)


def _field_with(now: Now, host: str) -> str:
    """Return the value of a field in the front window that contains the host; "" if there is none."""
    values = (one.value or "" for one in now.scene.shown(without=""))
    return next((value for value in values if host in value and "\n" not in value), "")


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


def _window_of(now: Now, name: str) -> ShownWindow | None:
    """Return the front window if its title contains the file's or folder's name."""
    front = now.scene.front
    named = front is not None and any(names_it(front.title, one) for one in now.names.of(last_name(name) or name))
    return front if named else None


def _is_shown(now: Now, name: str) -> bool:
    """Return whether an element in the front window contains the name, such as an address or a tab."""
    wanted = (last_name(name) or name).casefold()
    return any(wanted in f"{element.name} {element.value or ''}".casefold() for element in now.scene.shown())
