"""GTK 4: one call tells all nodes that it has made so far, and their boxes are those in the window.

GTK 4.8 (Debian 12) makes a node when its parent is asked for children, never says that anything but the window is
showing, and counts boxes without paddings (a round button of 34 pixels has 24: its middle is right). What hidden pages
hold keeps its box: only the hit test tells.
"""

from typing import Any

from agent.desktop.atspi.bus import Body, Question
from agent.desktop.atspi.roles import VISIBLE, WINDOWS, has
from agent.desktop.atspi.tree import _DEEPEST, _MOST_NODES, WINDOW, Node, Ref, children, extents, refs, region_of
from agent.desktop.atspi.wire import Call

_ITEMS = "a((so)(so)(so)iiassusau)"


def _cached(application: Ref) -> Call:
    return Call(application[0], "/org/a11y/atspi/cache", "org.a11y.atspi.Cache", "GetItems", _ITEMS)


def cached(application: Ref) -> Question[dict[Ref, Node] | None]:
    """All nodes of an application, without boxes; None where it has no such cache, or an empty one."""
    known: dict[Ref, Node] = {}
    empty: set[Ref] = set()  # was asked for children
    for _ in range(_DEEPEST):
        [reply] = yield [_cached(application)]
        if not reply or not reply[0]:
            return None
        known = {node.ref: node for node in map(_node, reply[0][:_MOST_NODES])}
        _link(known)
        asked = [
            node.ref
            for node in known.values()
            if len(node.children) < node.count and has(node.states, VISIBLE) and node.ref not in empty
        ]
        if not asked or len(known) >= _MOST_NODES:
            break
        fresh = asked
        for _ in range(_DEEPEST):  # down to the leaves, before all of them are read again
            replies = yield [children(ref) for ref in fresh]
            empty.update(fresh)
            below = [ref for reply in replies for ref in refs(reply)]
            fresh = [ref for ref in below if ref not in known and ref not in empty]
            if not fresh or len(empty) > _MOST_NODES:
                break
    return known


def placed(known: dict[Ref, Node], frame: Ref, left: int, top: int) -> Question[list[Node]]:
    """The nodes of a window that may be seen, with boxes, in the order of the tree; `left`, `top` is its origin."""
    below: list[Node] = []
    open_ones = [known[frame]] if frame in known else []
    seen = {frame}
    while open_ones and len(below) < _MOST_NODES:
        node = open_ones.pop()
        if node.ref != frame:
            below.append(node)
        fresh = [ref for ref in node.children if ref not in seen and has(known[ref].states, VISIBLE)]
        seen.update(fresh)
        open_ones += [known[ref] for ref in reversed(fresh)]
    replies: list[Body] = yield [extents(node.ref, WINDOW) for node in below]
    for node, reply in zip(below, replies, strict=True):
        node.box = region_of(reply, left, top)
    return below


def frames(known: dict[Ref, Node]) -> list[Ref]:
    """The windows among the nodes."""
    return [node.ref for node in known.values() if node.role in WINDOWS and node.parent and node.parent not in known]


def _node(item: Any) -> Node:
    ref, _, parent, _, count, _, name, role, description, states = item
    bits = sum(int(word) << 32 * index for index, word in enumerate(states[:2]))
    return Node(tuple(ref), role, str(name)[:400], bits, None, tuple(parent), [], count, str(description)[:400])


def _link(known: dict[Ref, Node]) -> None:
    """Give every node its children, in the order in which they are told."""
    for node in known.values():
        if node.parent in known and node.parent != node.ref:
            known[node.parent].children.append(node.ref)
