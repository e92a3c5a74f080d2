"""Decides which changes of a receipt can be undone, and in which order. Pure: the caller provides the current state."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from agent.core.changes import Change, is_empty_file

#: How a thing stands: as the run left it, as it was before, or otherwise, because somebody changed it since.
Standing: TypeAlias = Literal["as_left", "as_before", "otherwise"]
Verdict: TypeAlias = Literal["undo", "nothing_to_do", "changed_since", "cannot"]

_NEVER = {
    "window": "windows are not opened or closed again",
    "app": "applications are not started or ended again",
    "clipboard": "what the clipboard held is not kept",
    "text": "typed text is not deleted again",
}


class NotKnownError(Exception):
    """The current state is unknown, or cannot be put back; the message says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Item:
    """One change, and what undoing it means."""

    change: Change
    verdict: Verdict
    words: str  # what will be done, or why not

    @property
    def undo(self) -> Mapping[str, Any]:
        """The data needed to undo it."""
        return self.change.undo or {}

    def holds(self, other: "Item") -> bool:
        """Whether the other item's path lies in this item's folder."""
        return bool(self.undo) and _is_inside(_path(other.undo, "to") or _path(other.undo), _path(self.undo))


def leaves_something(item: Item) -> bool:
    """Whether something stays changed that a person would want to have back."""
    return item.verdict == "changed_since" or (item.verdict == "cannot" and item.change.kind not in _NEVER)


def plan(changes: Sequence[Change], standing: Callable[[Mapping[str, Any]], Standing]) -> list[Item]:
    """Every change with its verdict, those to undo in the order in which they can be.

    Args:
        changes: the receipt.
        standing: how a thing stands now, by a change's `undo`; raises NotKnownError.
    """
    items = [_item(change, standing) for change in changes]
    items = list(_without_parts(_with_replaced(items)))
    able = [item for item in items if item.verdict == "undo"]
    return [*_ordered(able), *(item for item in items if item.verdict != "undo")]


def _item(change: Change, standing: Callable[[Mapping[str, Any]], Standing]) -> Item:
    if change.undo is None:
        return Item(change, "cannot", _NEVER.get(change.kind, "there is no record of what it was"))
    try:
        stands = standing(change.undo)
    except NotKnownError as error:
        return Item(change, "cannot", str(error))
    if stands == "as_before":
        return Item(change, "nothing_to_do", "it already is as it was")
    if stands == "otherwise":
        return Item(change, "changed_since", "something else changed it since")
    return Item(change, "undo", _will(change))


def _will(change: Change) -> str:
    undo = change.undo or {}
    match undo.get("how"):
        case "made":
            return "delete it, as it is empty" if is_empty_file(undo) else "move to the trash"
        case "moved":
            return f"move back to {change.what}"
        case "gone" if undo.get("folder"):
            return "make the folder again"
        case "gone" | "changed":
            return "write what it held"
    if undo.get("before") is None:
        return "reset to its default" if change.before is None else f"reset to its default, {change.before}"
    return f"set to {change.before}"


def _with_replaced(items: Sequence[Item]) -> list[Item]:
    """Return the items. A deletion can be undone even if the run itself put something else in that place."""
    made = {_path(item.undo) for item in items if item.undo.get("how") == "made" and item.verdict == "undo"}
    return [
        Item(item.change, "undo", _will(item.change)) if _is_replaced(item, made) and _is_kept(item) else item
        for item in items
    ]


def _is_replaced(item: Item, made: set[str]) -> bool:
    return item.undo.get("how") == "gone" and item.verdict == "changed_since" and _path(item.undo) in made


def _is_kept(item: Item) -> bool:
    return bool(item.undo.get("folder")) or item.undo.get("content") is not None


def _without_parts(items: Sequence[Item]) -> Iterator[Item]:
    """A folder that the run made goes to the trash with all that the run made in it, or not at all."""
    made = {_path(item.undo): item for item in items if item.undo.get("how") == "made"}
    for item in items:
        inside = {path: one for path, one in made.items() if _is_inside(path, _path(item.undo))}
        around = [path for path in made if _is_inside(_path(item.undo), path)] if item.undo.get("how") == "made" else []
        stuck = [one for one in items if one.verdict != "undo" and _is_inside(_path(one.undo, "to"), _path(item.undo))]
        if item.undo.get("how") == "made" and (stuck or any(one.verdict != "undo" for one in inside.values())):
            yield Item(item.change, "changed_since", "something in it changed since")
        elif item.verdict == "undo" and any(_whole(made, path) for path in around):
            yield Item(item.change, "nothing_to_do", "goes with its folder")
        else:
            yield item


def _whole(made: Mapping[str, Item], folder: str) -> bool:
    """Whether a folder that the run made is as the run left it, with its content."""
    return all(item.verdict == "undo" for path, item in made.items() if path == folder or _is_inside(path, folder))


def _ordered(items: Sequence[Item]) -> Iterator[Item]:
    """Settings, then texts at their present places, then what took the place of something deleted, then folders (the
    outermost first, so that their content has a place), then the rest.
    """
    # XFCE's daemon copies its theme and fonts to dconf when they are set, so dconf's settings come afterwards.
    yield from sorted(
        (item for item in items if "how" not in item.undo), key=lambda item: item.undo.get("store") == "dconf"
    )
    yield from (item for item in items if item.undo.get("how") == "changed")
    gone = {_path(item.undo) for item in items if item.undo.get("how") in ("gone", "moved")}
    made = [item for item in items if item.undo.get("how") == "made"]
    yield from (item for item in made if _path(item.undo) in gone)
    places = [item for item in items if item.undo.get("how") == "moved" or _is_gone_folder(item)]
    yield from sorted(places, key=lambda item: _path(item.undo).split("/"))
    yield from (item for item in items if item.undo.get("how") == "gone" and not _is_gone_folder(item))
    yield from (item for item in made if _path(item.undo) not in gone)


def _is_gone_folder(item: Item) -> bool:
    return item.undo.get("how") == "gone" and bool(item.undo.get("folder"))


def relocated(items: Iterable[Item], done: Item) -> list[Item]:
    """Return the items with new paths after `done` was undone: the content of a folder moves back with the folder.

    Moved and deleted files are named by their path before the run, which does not change.
    """
    source, target = _path(done.undo, "to"), _path(done.undo)
    found = []
    for item in items:
        place = "to" if item.undo.get("how") == "moved" else "path"
        path = _path(item.undo, place)
        is_in = done.undo.get("how") == "moved" and done.undo.get("folder") and _is_inside(path, source)
        if is_in and item.undo.get("how") != "gone":
            undo = {**item.undo, place: quote(os.fsencode(target + path[len(source) :]))}
            found.append(replace(item, change=replace(item.change, undo=undo)))
        else:
            found.append(item)
    return found


def _path(undo: Mapping[str, Any], name: str = "path") -> str:
    return os.fsdecode(unquote_to_bytes(str(undo.get(name, ""))))


def _is_inside(path: str, folder: str) -> bool:
    return bool(folder) and path.startswith(f"{folder}/")
