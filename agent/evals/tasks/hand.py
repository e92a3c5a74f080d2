"""Derives shell commands that reach the state that a task expects, without the agent's tools, to test its judge."""

import re
from shlex import quote

from agent.evals.tasks.state import State
from agent.evals.tasks.task import EvalTask


class NoHandError(Exception):
    """No commands follow from the expected state: the task must have `by_hand`."""


def by_hand(task: EvalTask, before: State) -> list[str]:
    """Return the commands of `by_hand`, or commands derived from the expected state. Raises NoHandError."""
    if task.by_hand:
        return task.by_hand
    expect = task.expect
    if expect.tree or not all(_ids(pattern, before) for pattern in expect.windows):
        raise NoHandError("it expects windows or controls that are not there, and has no by_hand")
    commands = [
        _setting(name, value if isinstance(value, str) else value[-1]) for name, value in expect.settings.items()
    ]
    commands += [_file(paths.split("|")[0], wanted) for paths, wanted in expect.files.items()]
    commands += [f"wmctrl -ic {window}" for pattern in expect.no_windows for window in _ids(pattern, before)]
    if expect.active:
        commands += [f"wmctrl -ia {window}" for window in _ids(expect.active, before)]
    if expect.clipboard is not None:
        commands.append(f"printf %s {quote(expect.clipboard)} | xclip -i -selection clipboard")
    return commands


def _ids(pattern: str, before: State) -> list[str]:
    return [window for window, shown in before.windows.items() if re.search(pattern, shown)]


def _setting(name: str, value: str) -> str:
    """Return the command that sets a setting. A new property of xfconf gets the type that its value looks like."""
    kind, first, *rest = name.split(" ", 2)
    if value.startswith("/") or not rest or kind == "kde":
        raise NoHandError(f"no value follows from {name} = {value!r}, and it has no by_hand")
    if kind == "gsettings":
        return f"gsettings set {quote(first)} {quote(rest[0])} {quote(value)}"
    query = f"xfconf-query -c {quote(first)} -p {quote(rest[0])}"
    if not value:
        return f"{query} -r"
    kinds = {"true|false": "bool", r"-?\d+": "int", r"-?\d*\.\d+": "double"}
    made = next((kind for pattern, kind in kinds.items() if re.fullmatch(pattern, value)), "string")
    return f"{query} -s {quote(value)} || {query} -n -t {made} -s {quote(value)}"


def _file(path: str, wanted: object) -> str:
    name = quote(path)
    if wanted is False:
        return f"rm -r {name}"
    folder = quote(path.rpartition("/")[0] or ".")
    if wanted is True:
        return f"mkdir -p {folder} && touch {name}" if "." in path else f"mkdir -p {name}"
    if not isinstance(wanted, str):
        raise NoHandError(f"no text follows from what {path} is to hold, and it has no by_hand")
    return f"mkdir -p {folder} && printf '%s\\n' {quote(wanted)} > {name}"
