"""Reads GTK 4's nodes: one call returns all nodes that it has created so far, and boxes are relative to the window.

GTK 4.8 (Debian 12) creates a node when its parent is asked for its children, sets "showing" only on the window, and
leaves out paddings in boxes (a round button of 34 pixels has 24, around its centre). Nodes on hidden pages keep
their boxes: only a hit test can tell that they are hidden.
"""

from collections.abc import Sequence

from agent.core.geometry import Region
from agent.desktop.trees import roles, tree
from agent.desktop.trees.bus import Body, Call, Question
from agent.desktop.trees.roles import has, numbers
from agent.desktop.trees.tree import Node, Ref

_LISTS = numbers("list")
_PLACED = roles.CONTROLS | roles.CONTAINERS | roles.SCROLL_PANES
_PLACED_IF_NAMED = roles.TEXTS | roles.NAMED_CONTAINERS
_ITEMS = "a((so)(so)(so)iiassusau)"


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


def cached(application: Ref) -> Question[dict[Ref, Node] | None]:
    """Return all nodes of an application, without boxes; None if it has no cache or an empty one.

    A page that is still being created lacks nodes, and a list with new rows claims as many as before. So these nodes
    are asked for their children each time. If they return unknown ones, all nodes are read again.
    """
    asked: set[Ref] = set()
    for _ in range(tree.DEEPEST):
        known = yield from listed(application)
        if known is None or len(known) >= tree.MOST_NODES:
            return known
        lacking = [node for node in known.values() if len(node.children) < node.count or node.role in _LISTS]
        fresh = [node.ref for node in lacking if has(node.states, roles.VISIBLE) and node.ref not in asked]
        found_new = False
        while fresh and len(asked) <= tree.MOST_NODES:  # down to the leaves, before all of them are read again
            replies = yield [tree.children(ref) for ref in fresh]
            asked.update(fresh)
            below = [ref for reply in replies for ref in tree.refs(reply)]
            fresh = [ref for ref in dict.fromkeys(below) if ref not in known and ref not in asked]
            found_new = found_new or bool(fresh)
        if not found_new:
            break
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


def inside(known: dict[Ref, Node], root: Node) -> set[Ref]:
    """Return a node and all its descendants."""
    waiting, seen = [root], {root.ref}
    while waiting:
        fresh = [ref for ref in waiting.pop().children if ref not in seen]
        seen.update(fresh)
        waiting += [known[ref] for ref in fresh]
    return seen
