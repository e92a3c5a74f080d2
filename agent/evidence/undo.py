"""Decides which changes of a receipt can be undone, and in which order. Pure: the caller provides the current state."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from agent.core.changes import CannotPutBackError, Change, Standing, is_empty_file

Verdict: TypeAlias = Literal["undo", "nothing_to_do", "changed_since", "cannot"]

_NEVER = {
    "window": "windows are not opened or closed again",
    "app": "applications are not started or ended again",
    "clipboard": "what the clipboard held is not kept",
    "text": "typed text is not deleted again",
}


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

    @property
    def how(self) -> str:
        """What happened to a file: "made", "moved", "gone" or "changed"; "" for anything else."""
        return str(self.undo.get("how", ""))

    @property
    def path(self) -> str:
        """The path of a file, of a moved one before the run; "" for anything else."""
        return _path(self.undo, "path")

    @property
    def place(self) -> str:
        """As `path`; of a moved file, the present path."""
        return _path(self.undo, "to") or self.path

    @property
    def is_gone_folder(self) -> bool:
        """Whether it is a folder that was deleted."""
        return self.how == "gone" and bool(self.undo.get("folder"))

    @property
    def leaves_something(self) -> bool:
        """Whether something stays changed that a person would want to have back."""
        return self.verdict == "changed_since" or (self.verdict == "cannot" and self.change.kind not in _NEVER)

    def holds(self, other: "Item") -> bool:
        """Whether the other item's place lies in this item's folder."""
        return _is_inside(other.place, self.path)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of undoing one item."""

    item: Item
    done: bool
    words: str


def plan(changes: Sequence[Change], standing: Callable[[Mapping[str, Any]], Standing]) -> list[Item]:
    """Return every change with its verdict, first those to undo, in a possible order.

    `standing` returns how a thing stands now, by a change's `undo`; it raises CannotPutBackError.
    """
    items = _without_parts(_with_replaced([_item(change, standing) for change in changes]))
    return [*_ordered([item for item in items if item.verdict == "undo"]),
            *(item for item in items if item.verdict != "undo")]  # fmt: skip


def _item(change: Change, standing: Callable[[Mapping[str, Any]], Standing]) -> Item:
    if change.undo is None:
        return Item(change, "cannot", _NEVER.get(change.kind, "there is no record of what it was"))
    try:
        stands = standing(change.undo)
    except CannotPutBackError as error:
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
    """Mark deletions as undoable whose place is now taken by something that the run made."""
    made = {item.path for item in items if item.how == "made" and item.verdict == "undo"}

    def is_replaced(item: Item) -> bool:
        is_kept = item.is_gone_folder or item.undo.get("content") is not None
        return item.how == "gone" and item.verdict == "changed_since" and item.path in made and is_kept

    return [Item(item.change, "undo", _will(item.change)) if is_replaced(item) else item for item in items]


def _without_parts(items: Sequence[Item]) -> list[Item]:
    """Adjust the verdicts of made folders and their content: all go to the trash, or none."""
    made = {item.path: item for item in items if item.how == "made"}
    stuck = [item.place for item in items if item.how in ("made", "moved") and item.verdict != "undo"]
    holding = {path for path in made if any(_is_inside(other, path) for other in stuck)}
    going = [path for path, item in made.items() if item.verdict == "undo" and path not in holding]

    def found(item: Item) -> Item:
        if item.how != "made":
            return item
        path = item.path
        if path in holding:
            return Item(item.change, "changed_since", "something in it changed since")
        if item.verdict == "undo" and any(_is_inside(path, folder) for folder in going):
            return Item(item.change, "nothing_to_do", "goes with its folder")
        return item

    return [found(item) for item in items]


def _ordered(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items in the order in which they can be undone.

    The order: settings; changed texts; new things in the place of something deleted or moved; moved things and deleted
    folders, the outermost first, so that their content has a place; then the rest.
    """
    # XFCE's daemon copies its theme and fonts to dconf when they are set, so dconf's settings come afterwards.
    yield from sorted((item for item in items if not item.how), key=lambda item: item.undo.get("store") == "dconf")
    yield from (item for item in items if item.how == "changed")
    gone = {item.path for item in items if item.how in ("gone", "moved")}
    made = [item for item in items if item.how == "made"]
    yield from (item for item in made if item.path in gone)
    places = [item for item in items if item.how == "moved" or item.is_gone_folder]
    yield from sorted(places, key=lambda item: item.path.split("/"))
    yield from (item for item in items if item.how == "gone" and not item.is_gone_folder)
    yield from (item for item in made if item.path not in gone)


def relocated(items: Iterable[Item], done: Item) -> list[Item]:
    """Return the items with new paths after `done` was undone: the content of a folder moves back with the folder.

    Moved and deleted files are named by their path before the run, which does not change.
    """
    if done.how != "moved" or not done.undo.get("folder"):
        return list(items)
    source, target = done.place, done.path

    def moved(item: Item) -> Item:
        if item.how == "gone" or not _is_inside(item.place, source):
            return item
        name = "to" if item.how == "moved" else "path"
        undo = {**item.undo, name: quote(os.fsencode(target + item.place[len(source) :]))}
        return replace(item, change=replace(item.change, undo=undo))

    return [moved(item) for item in items]


def _path(undo: Mapping[str, Any], name: str) -> str:
    return os.fsdecode(unquote_to_bytes(str(undo.get(name, ""))))


def _is_inside(path: str, folder: str) -> bool:
    return bool(folder) and path.startswith(f"{folder}/")
