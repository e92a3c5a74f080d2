"""Turns the trees that were read into elements, and into sentences about what could not be read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.core.geometry import DesktopPoint, Region, shared, without
from agent.desktop.protocol.windows import Layer, WindowId, Windows
from agent.desktop.trees.applications import Application
from agent.desktop.trees.roles import CONTROLS, ENABLED, SENSITIVE, STATES, has, role_name
from agent.desktop.trees.shape import Draft, Tree
from agent.desktop.trees.tree import Ref
from agent.safety.text import one_line
from agent.screen.outline import Element, ShownWindow

_MOST_ELEMENTS = 3000
_LONGEST_TITLE = 120
_MOST_TITLES = 3


@dataclass(slots=True)
class Seen:
    """A window whose tree was read."""

    application: Application
    layer: Layer
    tree: Tree
    drafts: list[Draft]
    origin: tuple[int, int]  # the origin of its coordinates on the screen
    moved: dict[Ref, tuple[int, int]]  # popover -> the distance from its reported to its real place (GTK 4)


def elements_of(found: Iterable[Seen], layers: Sequence[Layer]) -> tuple[tuple[Element, ...], dict[Ref, Element]]:
    """Return the elements, window by window from the top, each in reading order; and a map from nodes to elements."""
    rank = {layer.window.id: index for index, layer in enumerate(layers)}
    windows = sorted(found, key=lambda seen: rank.get(seen.layer.window.id, len(rank)))
    by_ref: dict[Ref, tuple[Seen, Draft]] = {}
    for seen in windows:
        for draft in reading_order(seen.drafts):
            by_ref.setdefault(draft.node.ref, (seen, draft))  # an open list is in the trees of two windows
    entries = list(by_ref.values())[:_MOST_ELEMENTS]
    numbers = {draft.node.ref: index + 1 for index, (_, draft) in enumerate(entries)}
    elements = tuple(
        element_of(seen.layer, draft, numbers[draft.node.ref], numbers.get(draft.parent) if draft.parent else None)
        for seen, draft in entries
    )
    by_node = dict(zip(numbers, elements, strict=True))
    for _, draft in entries:
        by_node |= {twin: by_node[draft.node.ref] for twin in draft.twins if twin not in by_node}
    return elements, by_node


def element_of(layer: Layer, draft: Draft, number: int, parent: int | None = None) -> Element:
    """Build one element of a window from its draft."""
    return Element(
        id=number,
        role=role_name(draft.role),
        name=draft.name,
        box=draft.box,
        value=draft.value,
        states=states_of(draft),
        window=one_line(layer.window.title, _LONGEST_TITLE),
        trusted=draft.trusted,
        app=one_line(layer.window.app, _LONGEST_TITLE),
        parent=parent,
        label=draft.label if draft.label != draft.name else "",
        limits=draft.limits,
    )


def states_of(draft: Draft) -> frozenset[str]:
    """Return the states of an element."""
    states = {name for number, name in STATES.items() if has(draft.node.states, number)}
    if draft.role in CONTROLS and not (has(draft.node.states, ENABLED) or has(draft.node.states, SENSITIVE)):
        states.add("disabled")
    flags = {"offscreen": draft.offscreen, "clickable": draft.clickable}
    return frozenset(states | {name for name, true in flags.items() if true})


def reading_order(found: Sequence[Draft]) -> list[Draft]:
    """Sort drafts row by row, each from the left. Elements of open menus come first."""
    popups = [draft for draft in found if draft.popup is not None]
    return _by_rows(popups) + _by_rows([draft for draft in found if draft.popup is None])


def _by_rows(found: Sequence[Draft]) -> list[Draft]:
    rows: list[list[Draft]] = []
    for draft in sorted(found, key=lambda one: (one.center[1], one.center[0])):
        if rows and draft.center[1] - rows[-1][0].center[1] <= min(rows[-1][0].box.height, draft.box.height) // 4:
            rows[-1].append(draft)
        else:
            rows.append([draft])
    return [draft for row in rows for draft in sorted(row, key=lambda one: one.box.left)]


def shown_window(layer: Layer, active: WindowId | None) -> ShownWindow:
    """Return a window as the outline shows it."""
    title, app = (one_line(text, _LONGEST_TITLE) for text in (layer.window.title, layer.window.app))
    return ShownWindow(title, app, layer.box, layer.window.id == active)


def what_lacks(unread: Sequence[Layer], hung: Iterable[int | None], *, strangers: bool) -> str:
    """Say why elements are missing, as sentences; "" if all windows were read.

    `hung` are the PIDs of processes that did not answer. `strangers`: an application with unknown PID did not answer.
    """
    late = [layer for layer in unread if layer.window.pid in {*hung}]
    mute = [layer for layer in unread if layer not in late]
    sentences = []
    if late:
        sentences.append(f"{_titles(late)} did not answer in time: the contents are unknown.")
    if mute:
        why = "some application did not answer in time" if strangers else "they tell nothing of it"
        sentences.append(f"What is in {_titles(mute)} is not known: {why}.")
    return " ".join(sentences)


def _titles(layers: Sequence[Layer]) -> str:
    names = [f"“{one_line(layer.window.title or layer.window.app, 60)}”" for layer in layers]
    more = f" and {len(names) - _MOST_TITLES} more" if len(names) > _MOST_TITLES else ""
    return ", ".join(names[:_MOST_TITLES]) + more


def visible_parts(layers: Sequence[Layer], monitors: Sequence[Region]) -> dict[WindowId, list[Region]]:
    """Return, by window, the parts on a monitor that no other layer covers. `layers` begin with the topmost."""
    found: dict[WindowId, list[Region]] = {}
    for index, layer in enumerate(layers):
        parts = [part for monitor in monitors if (part := shared(layer.box, monitor)) is not None]
        for above in layers[:index]:
            if above.passing:
                continue
            parts = [rest for part in parts for rest in without(part, above.outer)]
        found[layer.window.id] = parts
    return found


def tops_at(windows: Windows, layers: Sequence[Layer], points: Sequence[tuple[int, int]]) -> list[WindowId | None]:
    """Return the window that gets a click at each of these points. Tooltips disappear before a click."""
    passing = {layer.window.id for layer in layers if layer.passing}
    lasting = [layer for layer in layers if not layer.passing]

    def below(point: tuple[int, int]) -> WindowId | None:
        here = DesktopPoint(*map(float, point))
        return next((layer.window.id for layer in lasting if layer.outer.contains(here)), None)

    tops = windows.layers_at(points)
    return [below(point) if top in passing else top for top, point in zip(tops, points, strict=True)]


def largest_part(box: Region, parts: Sequence[Region]) -> Region | None:
    """Return the largest part of a box within one of these regions; None if it is less than a fifth of the box."""
    found = [part for one in parts if (part := shared(box, one)) is not None]
    best = max(found, key=lambda part: part.width * part.height, default=None)
    if best is None or best.width * best.height * 5 < box.width * box.height:
        return None
    return best
