"""Reads GTK 4's nodes: one call returns all nodes that it has created so far, and boxes are relative to the window.

GTK 4.8 (Debian 12) creates a node when its parent is asked for its children, sets "showing" only on the window, and
leaves out paddings in boxes (a round button of 34 pixels has 24, around its centre). Nodes on hidden pages keep
their boxes: only a hit test can tell that they are hidden.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agent.core.geometry import Region
from agent.desktop.trees import roles, tree
from agent.desktop.trees.bus import Body, Call, Question
from agent.desktop.trees.roles import has, numbers
from agent.desktop.trees.tree import Node, Ref

_LISTS = numbers("list")
_PLACED = roles.CONTROLS | roles.CONTAINERS | roles.SCROLL_PANES
_PLACED_IF_NAMED = roles.TEXTS | roles.NAMED_CONTAINERS
#: A node that returns fewer children than it claims is asked this many times in a row, then again after this many
#: seconds, which double each time: on a busy computer a page may be created late.
_MOST_TIMES, _AGAIN = 5, 1.0
_LONGEST_PAUSE = 30.0
_ITEMS = "a((so)(so)(so)iiassusau)"


@dataclass(frozen=True, slots=True)
class Asked:
    """The result of asking a node for its children."""

    claimed: int  # the number of children that it claims
    known: int  # the number of children that it returned
    times: int  # how many times in a row the answer was the same
    at: float  # the time of the last call (monotonic seconds)

    def is_enough(self, node: Node) -> bool:
        if (self.claimed, self.known) != (node.count, len(node.children)) or self.times < _MOST_TIMES:
            return False
        return time.monotonic() - self.at < min(_AGAIN * 2.0 ** (self.times - _MOST_TIMES), _LONGEST_PAUSE)


def listed(application: Ref) -> Question[dict[Ref, Node] | None]:
    """Return the nodes that an application has created so far, without boxes; None if it has no cache."""
    [reply] = yield [Call(application[0], "/org/a11y/atspi/cache", "org.a11y.atspi.Cache", "GetItems", _ITEMS)]
    if not reply or not reply[0]:
        return None
    known: dict[Ref, Node] = {}
    for ref, _, parent, _, count, _, name, role, described, states in reply[0][: tree.MOST_NODES]:
        texts = [tree.text_of(("s", text)) for text in (name, described)]
        node = Node(tuple(ref), role, texts[0], tree.states_of((states,)), None, tuple(parent), [], count, texts[1])
        known[node.ref] = node
    for node in known.values():
        if node.parent in known and node.parent != node.ref:
            known[node.parent].children.append(node.ref)
    return known


def cached(
    application: Ref, unfolded: dict[Ref, Asked], hollow: Collection[Ref] = ()
) -> Question[dict[Ref, Node] | None]:
    """Return all nodes of an application, without boxes; None if it has no cache or an empty one.

    `unfolded` remembers the nodes that were asked for their children. A page that is still being created lacks some,
    so its nodes are asked again, and so are the nodes in `hollow`.
    """
    known: dict[Ref, Node] = {}
    asked: set[Ref] = set()
    answered: set[Ref] = set()  # a busy application may not answer; then it is asked again the next time
    for _ in range(tree.DEEPEST):
        nodes = yield from listed(application)
        if nodes is None:
            return None
        known = nodes
        fresh = [
            node.ref
            for node in known.values()
            if (len(node.children) < node.count or node.ref in hollow)
            and has(node.states, roles.VISIBLE)
            and node.ref not in asked
            and not ((before := unfolded.get(node.ref)) is not None and before.is_enough(node))
        ]
        if not fresh or len(known) >= tree.MOST_NODES:
            break
        for _ in range(tree.DEEPEST):  # down to the leaves, before all of them are read again
            replies = yield [tree.children(ref) for ref in fresh]
            asked.update(fresh)
            answered.update(ref for ref, reply in zip(fresh, replies, strict=True) if reply is not None)
            below = [ref for reply in replies for ref in tree.refs(reply)]
            fresh = [ref for ref in below if ref not in known and ref not in asked]
            if not fresh or len(asked) > tree.MOST_NODES:
                break
    for ref in [ref for ref in unfolded if ref not in known]:
        del unfolded[ref]
    for ref in answered & known.keys():
        now = known[ref].count, len(known[ref].children)
        last = unfolded.get(ref)
        times = last.times + 1 if last is not None and now == (last.claimed, last.known) else 1
        unfolded[ref] = Asked(*now, times, time.monotonic())
    return known


def placed(
    known: dict[Ref, Node], frame: Ref, left: int, top: int, popovers: Sequence[Region] = ()
) -> Question[tuple[list[Node], dict[Ref, tuple[int, int]]]]:
    """Return a window's visible nodes in tree order, and how far popovers were moved.

    Boxes are only requested for nodes that can be elements, because that costs most: half of all nodes are for layout.

    `left` and `top` are the origin of the window's coordinates on the screen, and `popovers` the regions of windows
    without a frame. GTK reports a popover as if it began at its button. Its node has exactly the size of its window, so
    it is moved there.
    """
    below: list[Node] = []
    asked: list[Node] = []
    waiting = [(known[frame], False)] if frame in known else []
    seen = {frame}
    while waiting and len(below) < tree.MOST_NODES:
        node, within = waiting.pop()  # `within`: whether it is part of a button or the like
        if node.ref != frame:
            below.append(node)
            if popovers or node.role in _PLACED or (node.name and not within and node.role in _PLACED_IF_NAMED):
                asked.append(node)
        within = within or node.role in roles.CONTROLS - roles.ROWS
        fresh = [ref for ref in node.children if ref not in seen and has(known[ref].states, roles.VISIBLE)]
        seen.update(fresh)
        waiting += [(known[ref], within) for ref in reversed(fresh)]
    replies: list[Body] = yield [tree.extents(node.ref, tree.WINDOW) for node in asked]
    for node, reply in zip(asked, replies, strict=True):
        node.box = tree.region_of(reply, left, top)
    moved: dict[Ref, tuple[int, int]] = {}
    for window in popovers:
        sized = (node for node in below if node.ref not in moved and node.box and node.box.size == window.size)
        if (root := next(sized, None)) is not None and root.box is not None:
            moved[root.ref] = window.left - root.box.left, window.top - root.box.top
            tree.move(map(known.__getitem__, inside(known, root)), *moved[root.ref])
            root.role = roles.POPUP_MENU
    opened = {ref for root in moved for ref in inside(known, known[root])}
    closed = {
        ref
        for node in below  # a closed popover keeps its contents and their boxes
        if (node.role == roles.MENU or node.name.startswith("GtkPopover"))
        and node.ref not in opened
        and not (held := inside(known, node)) & moved.keys()
        for ref in held
    }
    return [node for node in below if node.ref not in closed], moved


def hollow_lists(nodes: Sequence[Node]) -> set[Ref]:
    """Return visible lists without visible known rows: they have new rows, but claim as many as before."""
    boxed = {node.ref for node in nodes if node.box is not None}
    return {
        node.ref
        for node in nodes
        if node.role in _LISTS and node.ref in boxed and node.children and not boxed.intersection(node.children)
    }


def inside(known: dict[Ref, Node], root: Node) -> set[Ref]:
    """Return a node and all its descendants."""
    waiting, seen = [root], {root.ref}
    while waiting:
        fresh = [ref for ref in waiting.pop().children if ref not in seen]
        seen.update(fresh)
        waiting += [known[ref] for ref in fresh]
    return seen
