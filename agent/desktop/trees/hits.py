"""Hit tests: an element is trusted if the application finds it, a part of it or its twin at the element's middle."""

from collections.abc import Callable, Mapping, Sequence

from agent.desktop.trees.bus import Body, Question, together
from agent.desktop.trees.roles import ENABLED, HEADERS, SENSITIVE, alike, has
from agent.desktop.trees.shape import Draft, Tree
from agent.desktop.trees.tree import NULL, SCREEN, WINDOW, Ref, hit

_DEEPEST = 40
_RESUMED = 4
#: Where elements of GTK 4 are tested, one place after the other: in the middle, above it, at the left edge, beside it
#: and above the element, because an icon on a button often has no node of its own.
_PLACES: tuple[Callable[[Draft], tuple[int, int]], ...] = (
    lambda draft: draft.center,
    lambda draft: (draft.center[0], draft.box.top + draft.box.height // 5),
    lambda draft: (draft.box.left + 1, draft.center[1]),
    lambda draft: (draft.box.left - 3, draft.center[1]),
    lambda draft: (draft.center[0], draft.box.top - 3),
)


def descend(start: Ref, point: tuple[int, int]) -> Question[tuple[list[Ref], bool]]:
    """Return the path of nodes down to a point in the application's coordinates, and whether the application answered.

    The deepest node is last. ATK's bridge and Qt descend one level per call, so nodes are asked until one returns
    itself.
    """
    path: list[Ref] = []
    for _ in range(_DEEPEST):
        ref = path[-1] if path else start
        [reply] = yield [hit(ref, *point, SCREEN)]
        below = reply_ref(reply)
        if below is None or below == ref or below in path:
            return path, reply is not None
        path.append(below)
    return path, True


def trust(tree: Tree, wanted: Sequence[Draft], origin: tuple[int, int] = (0, 0)) -> Question[None]:
    """Hit-test drafts and set `trusted` and `tested`. `origin` is the origin of the application's coordinates."""
    yield from together(*(_trust(tree, draft, origin) for draft in wanted))


def _trust(tree: Tree, draft: Draft, origin: tuple[int, int]) -> Question[None]:
    point = draft.center[0] - origin[0], draft.center[1] - origin[1]
    # A menu lies over its window, and a hit test of the window does not find it.
    start: Ref | None = draft.popup or tree.frame
    # Some containers return nothing for any point (GTK 3's tabbed notebook). Then the test continues below them.
    for _ in range(_RESUMED):
        if start is None:
            return
        path, answered = yield from descend(start, point)
        draft.tested = draft.tested and answered
        end = path[-1] if path else start
        draft.trusted = bool(path) and (
            _is(tree, draft, end)
            or draft.node.ref in path
            or (draft.role in HEADERS and end == draft.node.parent)  # Qt's tables find no headers
        )
        start = None if draft.trusted else _below(tree, draft, end)


def _below(tree: Tree, draft: Draft, end: Ref) -> Ref | None:
    """Return the container one level below `end` on the path to an element; None if there is none."""
    way = [node.ref for node in tree.above(draft.node.ref)]
    if end == tree.frame:
        return way[-1] if way else None
    at = way.index(end) if end in way else 0
    return way[at - 1] if at > 0 else None


def trust_gtk4(
    tree: Tree, wanted: Sequence[Draft], origin: tuple[int, int], moved: Mapping[Ref, tuple[int, int]]
) -> Question[None]:
    """Hit-test drafts of GTK 4, which needs one call, in window coordinates with their origin at `origin`.

    GTK 4 finds nothing at an icon on a button or the knob of a switch, which are no nodes, so points beside them are
    tried. Elements of a popover are tested at the place that GTK reports; `moved` is the distance to the real place.
    """

    yield from together(*(_trust_gtk4(tree, draft, origin, moved) for draft in wanted))


def _trust_gtk4(
    tree: Tree, draft: Draft, origin: tuple[int, int], moved: Mapping[Ref, tuple[int, int]]
) -> Question[None]:
    start = draft.popup if draft.popup is not None and draft.popup in moved else tree.frame
    right, down = moved.get(start, (0, 0))
    # GTK 4's hit test ignores disabled elements, and finds what contains them.
    disabled = not (has(draft.node.states, ENABLED) or has(draft.node.states, SENSITIVE))
    for place in _PLACES:
        x, y = place(draft)
        [reply] = yield [hit(start, x - origin[0] - right, y - origin[1] - down, WINDOW)]
        found = reply_ref(reply)
        draft.tested = reply is not None
        if found is not None:
            around = disabled and any(node.ref == found for node in tree.above(draft.node.ref))
            draft.trusted = around or _is(tree, draft, found)
            return
        draft.trusted = False
        if not draft.tested:
            return


def _is(tree: Tree, draft: Draft, ref: Ref) -> bool:
    """Whether a node is the draft's element, a part of it, or its twin."""
    own = {draft.node.ref, *draft.twins}
    if ref in own or any(node.ref in own for node in tree.above(ref)):
        return True
    other = tree.nodes.get(ref)
    return other is not None and alike(other.role, draft.role) and bool(draft.name) and tree.name(other) == draft.name


def reply_ref(reply: Body) -> Ref | None:
    """Return the node in a reply; None if there is none."""
    return None if not reply or reply[0][1] in (NULL, "") else tuple(reply[0])
