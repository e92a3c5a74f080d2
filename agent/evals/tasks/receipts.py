"""Compares a run's receipt with the recorded states, and the state after undo with the state before the run."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.evals.tasks.state import Difference, State, differences, followers

_TOLD_ABOUT = {"setting", "file", "window", "clipboard"}
_Change = Mapping[str, Any]


def receipt_errors(changes: Sequence[_Change], before: State, after: State, home: str) -> list[str]:
    """Return what the receipt lacks and what it makes up, as lines for a person.

    Changes that programs make by themselves may be listed or not. Windows are compared by how many were
    opened and closed, because titles change while they are open.
    """
    listed = {(change["kind"], _canonical(change, home)) for change in changes if change["kind"] in _TOLD_ABOUT}
    found = differences(before, after)
    really = {(one.kind, _plain(one)) for one in found if one.kind in _TOLD_ABOUT}
    lines = []
    for one in found:
        if one.kind not in {"setting", "file", "clipboard"} or one.noise:
            continue
        moved = one.kind == "file" and any(one.what in _texts(change) for change in changes if change["kind"] == "file")
        if (one.kind, _plain(one)) not in listed and not moved:
            lines.append(f"missing: {one}")
    for change in changes:
        kind, what = change["kind"], _canonical(change, home)
        if what in after.settings and "UNSUPPORTED" in after.settings[what]:
            continue  # a list of XFCE's, which its tool does not print
        if kind in {"setting", "clipboard"} and (kind, what) not in really:
            lines.append(f"invented: {kind} {change['what']}: {change['before']} -> {change['after']}"[:300])
        if kind == "file" and (kind, what) not in really and not what.startswith("."):
            lines.append(f"invented: file {change['what']}"[:300])
        if kind == "setting" and (kind, what) in really:
            one = next(one for one in found if (one.kind, _plain(one)) == (kind, what))
            if not _alike(change["after"], one.after):
                lines.append(f"wrong: {what} became {one.after!r}, told as {change['after']!r}"[:300])
    opened = sum(one.kind == "window" and one.before is None for one in found)
    closed = sum(one.kind == "window" and one.after is None for one in found)
    told_opened = sum(change["kind"] == "window" and change["before"] is None for change in changes)
    told_closed = sum(change["kind"] == "window" and change["after"] is None for change in changes)
    if (opened, closed) != (told_opened, told_closed):
        lines.append(f"windows: {opened} opened and {closed} closed, told as {told_opened} and {told_closed}")
    return lines


def _texts(change: _Change) -> str:
    """Return all texts of a change: a moved file has its old and its new path."""
    return " ".join(str(change[name]) for name in ("what", "before", "after"))


def left_over(before: State, after: State) -> list[str]:
    """Return the settings and files that undo left changed, except settings that follow others."""
    follow = [pattern for patterns in followers().values() for pattern in patterns]
    return [
        str(one)
        for one in differences(before, after)
        if not one.noise
        and one.kind in {"setting", "file"}
        and not one.what.startswith(".local/share/Trash")
        and not any(re.match(pattern, one.what) for pattern in follow)
    ]


def _plain(one: Difference) -> str:
    return "" if one.kind == "clipboard" else one.what


def _canonical(change: _Change, home: str) -> str:
    what = str(change["what"])
    if change["kind"] == "clipboard":
        return ""
    if change["kind"] == "file":
        return re.sub(r"^(~/|" + re.escape(home) + "/)", "", what)
    return what


def _alike(listed: str | None, really: str | None) -> bool:
    if listed is None or really is None:
        return listed == really
    return listed[:60].strip("'\"").lower() == really[:60].strip("'\"").lower()
