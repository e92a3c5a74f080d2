"""Turns the trees that were read into the elements that a person sees: which nodes count, with names and boxes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.core.geometry import DesktopPoint, Region, shared, without
from agent.desktop.protocol.windows import Layer, WindowId, Windows
from agent.desktop.trees import roles
from agent.desktop.trees.applications import Application
from agent.desktop.trees.roles import alike, has
from agent.desktop.trees.tree import Node, Ref
from agent.safety.text import one_line
from agent.screen.outline import Element, ShownWindow

#: Names are cut to this many characters, about as much as a person reads of a button.
LONGEST_NAME = 60
#: GTK 4.8 uses the class as the name of a nameless widget.
_CLASS_NAME = re.compile(r"(Gtk|Adw|Cc|Nautilus|Gd|Gcal|Hdy|Panel|[A-Z][a-z]+)[A-Z]\w*\Z")
#: GTK 4.8 reports wrong places for its tooltips.
_TOOL_TIP = "GtkTooltipWindow"
#: Pixels in each direction that must be left of an element that is partly scrolled away, to count as visible.
_SEEN = 4
_MOST_ELEMENTS = 3000
_LONGEST_TITLE = 120
_MOST_TITLES = 3


@dataclass(slots=True)
class Draft:
    """An element in the making."""

    node: Node
    role: int
    name: str
    box: Region  # its visible part within its window
    offscreen: bool = False
    clickable: bool = False  # a clickable part of a page
    popup: Ref | None = None  # the menu or list that contains it and may extend beyond its window
    parent: Ref | None = None
    label: str = ""
    value: str | None = None
    limits: tuple[float, float] | None = None
    trusted: bool = True
    tested: bool = True  # False if the application did not answer the hit test
    twins: set[Ref] = field(default_factory=set)  # other nodes that stand for the same thing

    @property
    def center(self) -> tuple[int, int]:
        """The middle of its box, where it is clicked."""
        return self.box.left + self.box.width // 2, self.box.top + self.box.height // 2

    @property
    def is_control(self) -> bool:
        return self.role in roles.CONTROLS or self.clickable


class Tree:
    """The nodes of one window with their ancestors and children. Cycles and unknown parents are ignored."""

    def __init__(self, frame: Ref, nodes: Sequence[Node], *, class_names: bool = False) -> None:
        self.frame = frame
        self.nodes = {node.ref: node for node in nodes}
        self.below: dict[Ref, list[Node]] = {}
        for node in nodes:
            if node.parent in self.nodes and node.parent != node.ref:
                self.below.setdefault(node.parent, []).append(node)
        self._class_names = class_names

    def above(self, ref: Ref) -> Iterator[Node]:
        """Yield a node's ancestors in the window, the nearest first."""
        seen = {ref}
        node = self.nodes.get(ref)
        while node is not None and (parent := node.parent) in self.nodes and parent not in seen:
            assert parent is not None
            seen.add(parent)
            node = self.nodes[parent]
            yield node

    def inside(self, ref: Ref) -> Iterator[Node]:
        waiting = list(reversed(self.below.get(ref, ())))
        seen = {ref}
        while waiting:
            node = waiting.pop()
            if node.ref not in seen:
                seen.add(node.ref)
                yield node
                waiting += reversed(self.below.get(node.ref, ()))

    def name(self, node: Node) -> str:
        """Return a node's own name, shortened; "" if it has none."""
        text = _once(node.name.strip()) if self._class_names else node.name.strip()
        lines = text.splitlines()
        # Further lines of a row only describe it: "Adwaita-dark", "GTK 3, GTK 2".
        name = one_line(lines[0] if lines and node.role in roles.ROWS else text, LONGEST_NAME)
        if self._class_names and (_CLASS_NAME.match(name) if node.role not in roles.LABELS else name == "GtkLabel"):
            return ""
        return name

    def labels(self, ref: Ref) -> list[str]:
        """Return the texts of the labels below a node, without duplicates."""
        found: dict[str, None] = {}
        for node in self.inside(ref):
            if node.role in roles.LABELS and (name := self.name(node)):
                found.setdefault(name)
        return list(found)

    def controls(self, ref: Ref) -> int:
        return sum(node.role in roles.CONTROLS for node in self.inside(ref))


@dataclass(slots=True)
class Seen:
    """A window whose tree was read."""

    application: Application
    layer: Layer
    tree: Tree
    drafts: list[Draft]
    origin: tuple[int, int]  # the origin of its coordinates on the screen
    moved: dict[Ref, tuple[int, int]]  # popover -> the distance from its reported to its real place (GTK 4)


def drafts(tree: Tree, window: Region, screen: Region, clickable: Iterable[Ref] = ()) -> list[Draft]:
    """Return the elements of a window in tree order.

    `window` is the window's region on the screen, and `screen` the region where its menus may be. `clickable` are the
    clickable parts of a page, whatever their role.
    """
    taking = set(clickable)
    made: dict[Ref, Draft] = {}
    for node in tree.nodes.values():
        if node.box is None or not _kept(tree, node, taking):
            continue
        popup = _popup(tree, node)
        box, offscreen = _seen(tree, node, window if popup is None else screen)
        draft = Draft(node, node.role, tree.name(node), box, offscreen, node.ref in taking, popup)
        if not draft.name and (node.role in roles.HOLDERS or draft.clickable):
            written = tree.labels(node.ref)
            if len(written) == 1 or (written and node.role in roles.ROWS and tree.controls(node.ref) < 2):
                draft.name = written[0]
        if not draft.name and draft.is_control:
            draft.name = one_line(node.description, LONGEST_NAME)
        made[node.ref] = draft
    _merge(tree, made)
    for draft in made.values():
        draft.parent = next((node.ref for node in tree.above(draft.node.ref) if node.ref in made), None)
        if draft.is_control and not draft.name:
            draft.label = _row_label(tree, draft.node)
    return list(made.values())


def _once(name: str) -> str:
    """Undo GTK 4's doubling of names: "Open Open", or with a mnemonic "_Open Open"."""
    for at in {(len(name) - 1) // 2, len(name) // 2}:
        if name[at : at + 1] == " " and name[:at].replace("_", "", 1) == name[at + 1 :]:
            return name[at + 1 :]
    return name


def _kept(tree: Tree, node: Node, taking: set[Ref]) -> bool:
    if any(one.name == _TOOL_TIP for one in tree.above(node.ref)):
        return False
    if node.ref in taking or node.role in roles.CONTAINERS:
        return True
    if node.role in roles.CONTROLS:
        return node.role != roles.SCROLL_BAR or (node.box is not None and min(node.box.width, node.box.height) > 1)
    return node.role in roles.TEXTS | roles.NAMED_CONTAINERS and bool(tree.name(node))


def _popup(tree: Tree, node: Node) -> Ref | None:
    """Return the popup (menu or list) that contains a node; None if the node is in the window itself."""
    if node.role in roles.POPUP_MENUS:
        return node.ref
    return next((one.ref for one in tree.above(node.ref) if one.role in roles.POPUPS), None)


def _seen(tree: Tree, node: Node, clip: Region) -> tuple[Region, bool]:
    """Return the visible part of a node, or its whole box if it is off the screen; and whether it is off the screen."""
    assert node.box is not None
    seen: Region | None = node.box
    for window in (clip, *(one.box for one in tree.above(node.ref) if one.role in roles.SCROLL_PANES and one.box)):
        seen = seen and shared(seen, window)
    if seen is None or seen.width < min(_SEEN, node.box.width) or seen.height < min(_SEEN, node.box.height):
        return node.box, True
    return seen, False


def _merge(tree: Tree, made: dict[Ref, Draft]) -> None:
    """Remove redundant drafts: texts that only name their holder, and one of two drafts for the same thing."""
    for ref, draft in list(made.items()):
        holder = next((made[node.ref] for node in tree.above(ref) if node.ref in made), None)
        if holder is None or holder.node.ref not in made:
            continue
        if holder.role == roles.COMBO_BOX and draft.box == holder.box:  # the entries of a closed list have its box
            if has(draft.node.states, roles.SELECTED):
                holder.value = draft.name
            del made[ref]
        elif _is_choice_shown(tree, draft, holder):
            holder.value = draft.name or holder.value
            del made[ref]
        elif draft.role in roles.TEXTS and not draft.clickable:
            named = holder.name == draft.name
            # In GTK 3, a tab's page is below the tab in the tree: texts on the page do not belong to the tab.
            on_it = holder.box.contains(DesktopPoint(*draft.center))
            if named or (on_it and holder.is_control and holder.role not in roles.ROWS):
                holder.twins.add(ref)
                del made[ref]
        elif alike(draft.role, holder.role) and draft.is_control and holder.is_control:
            if holder.name and draft.name and holder.name != draft.name:
                continue
            # A button in a button fills at least a quarter of it.
            if draft.box.width * draft.box.height * 4 >= holder.box.width * holder.box.height:
                holder.name = holder.name or draft.name
                holder.twins |= {ref, *draft.twins}
                holder.node.states |= draft.node.states
                del made[ref]


def _is_choice_shown(tree: Tree, draft: Draft, holder: Draft) -> bool:
    """Whether a node is the list of one row that a closed combo box of GTK 4 shows."""
    if holder.role != roles.COMBO_BOX or draft.role not in roles.CONTAINERS | roles.ROWS:
        return False
    inside = holder.box.contains(DesktopPoint(*draft.center))
    return inside and not any(node.role in roles.POPUP_MENUS for node in tree.above(draft.node.ref))


def _row_label(tree: Tree, node: Node) -> str:
    """Return the title of the row that contains a nameless control; "" if there is none."""
    row = next((one for one in tree.above(node.ref) if one.role in roles.ROWS), None)
    written = tree.labels(row.ref) if row is not None else []
    return written[0] if written else ""


def smallest_at(found: Iterable[Draft], point: DesktopPoint) -> Draft | None:
    """Return the smallest element at a point, controls before others; None if there is none."""
    here = [draft for draft in found if not draft.offscreen and draft.box.contains(point)]
    controls = [draft for draft in here if draft.is_control]
    return min(controls or here, key=lambda draft: draft.box.width * draft.box.height, default=None)


def clickable_sections(tree: Tree) -> list[Ref]:
    """Return the parts of a page that may be clickable despite their role, outside of controls."""
    return [
        node.ref
        for node in tree.nodes.values()
        if node.role in roles.SECTIONS - roles.CONTROLS
        and node.box
        and not any(one.role in roles.CONTROLS for one in tree.above(node.ref))
    ]


def elements_of(found: Iterable[Seen], layers: Sequence[Layer]) -> tuple[tuple[Element, ...], dict[Ref, Element]]:
    """Return the elements, window by window from the top, and a map from nodes to elements.

    Elements of open menus come first, and all are in reading order.
    """
    rank = {layer.window.id: index for index, layer in enumerate(layers)}
    windows = sorted(found, key=lambda seen: rank.get(seen.layer.window.id, len(rank)))
    by_ref: dict[Ref, tuple[Seen, Draft]] = {}
    for seen in windows:
        popups = [draft for draft in seen.drafts if draft.popup is not None]
        others = [draft for draft in seen.drafts if draft.popup is None]
        for draft in (*_by_rows(popups), *_by_rows(others)):
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
        role=roles.role_name(draft.role),
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
    states = {name for number, name in roles.STATES.items() if has(draft.node.states, number)}
    if draft.role in roles.CONTROLS and not (
        has(draft.node.states, roles.ENABLED) or has(draft.node.states, roles.SENSITIVE)
    ):
        states.add("disabled")
    flags = {"offscreen": draft.offscreen, "clickable": draft.clickable}
    return frozenset(states | {name for name, true in flags.items() if true})


def _by_rows(found: Sequence[Draft]) -> list[Draft]:
    """Sort drafts row by row, each from the left."""
    rows: list[list[Draft]] = []
    for draft in sorted(found, key=lambda one: (one.center[1], one.center[0])):
        if rows and draft.center[1] - rows[-1][0].center[1] <= min(rows[-1][0].box.height, draft.box.height) // 4:
            rows[-1].append(draft)
        else:
            rows.append([draft])
    return [draft for row in rows for draft in sorted(row, key=lambda one: one.box.left)]


def shown_window(layer: Layer, active: WindowId | None, *, dialog: bool) -> ShownWindow:
    """Return a window as the outline shows it. `dialog`: whether the active window is a dialog."""
    title, app = (one_line(text, _LONGEST_TITLE) for text in (layer.window.title, layer.window.app))
    has_focus = layer.window.id == active
    return ShownWindow(title, app, layer.box, has_focus, dialog and has_focus)


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
        why = "some application did not answer in time" if strangers else "they do not report it"
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
