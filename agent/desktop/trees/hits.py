"""Hit tests: an element is trusted if the application finds it, a part of it or its twin at the element's middle."""

from collections.abc import Callable, Mapping, Sequence

from agent.desktop.trees.bus import Body, Question
from agent.desktop.trees.roles import ENABLED, HEADERS, SENSITIVE, alike, has
from agent.desktop.trees.shape import Draft, Tree
from agent.desktop.trees.tree import NULL, SCREEN, WINDOW, Ref, hit
from agent.desktop.trees.wire import Call

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


def descend(
    starts: Sequence[Ref], points: Sequence[tuple[int, int]], unanswered: set[int] | None = None
) -> Question[list[list[Ref]]]:
    """Return, for each point in the application's coordinates, the path of nodes from its start down to the point.

    The deepest node is last. ATK's bridge and Qt descend one level per call, so nodes are asked until one returns
    itself. The indices of points without an answer are added to `unanswered`.
    """
    paths: list[list[Ref]] = [[] for _ in points]
    going = list(range(len(points)))
    for _ in range(_DEEPEST):
        asked = [(index, paths[index][-1] if paths[index] else starts[index]) for index in going]
        replies = yield [hit(ref, *points[index], SCREEN) for index, ref in asked]
        going = []
        for (index, ref), reply in zip(asked, replies, strict=True):
            below = reply_ref(reply)
            if reply is None and unanswered is not None:
                unanswered.add(index)
            if below is not None and below != ref and below not in paths[index]:
                paths[index].append(below)
                going.append(index)
        if not going:
            break
    return paths


def trust(tree: Tree, wanted: Sequence[Draft], origin: tuple[int, int] = (0, 0)) -> Question[None]:
    """Hit-test drafts and set `trusted` and `tested`. `origin` is the origin of the application's coordinates.

    Some containers return nothing for any point (GTK 3's tabbed notebook). Then the test continues below them.
    """
    waiting = list(wanted)
    # A menu lies over its window, and a hit test of the window does not find it.
    starts = [draft.popup or tree.frame for draft in waiting]
    for _ in range(_RESUMED):
        unanswered: set[int] = set()
        points = [(draft.center[0] - origin[0], draft.center[1] - origin[1]) for draft in waiting]
        paths = yield from descend(starts, points, unanswered)
        for index in unanswered:
            waiting[index].tested = False
        left: list[tuple[Draft, Ref]] = []
        for draft, start, path in zip(waiting, starts, paths, strict=True):
            end = path[-1] if path else start
            draft.trusted = bool(path) and (
                _is(tree, draft, end)
                or draft.node.ref in path
                or (draft.role in HEADERS and end == draft.node.parent)  # Qt's tables find no headers
            )
            below = None if draft.trusted else _below(tree, draft, end)
            if below is not None:
                left.append((draft, below))
        waiting, starts = [draft for draft, _ in left], [below for _, below in left]
        if not waiting:
            return


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

    def question(draft: Draft, point: tuple[int, int]) -> Call:
        start = draft.popup if draft.popup in moved else tree.frame
        assert start is not None
        right, down = moved.get(start, (0, 0))
        return hit(start, point[0] - origin[0] - right, point[1] - origin[1] - down, WINDOW)

    def is_at(draft: Draft, ref: Ref) -> bool:
        # GTK 4's hit test ignores disabled elements, and finds what contains them.
        disabled = not (has(draft.node.states, ENABLED) or has(draft.node.states, SENSITIVE))
        return _is(tree, draft, ref) or (disabled and any(node.ref == ref for node in tree.above(draft.node.ref)))

    waiting = list(wanted)
    for place in _PLACES:
        replies = yield [question(draft, place(draft)) for draft in waiting]
        told = [reply_ref(reply) for reply in replies]
        for draft, reply, below in zip(waiting, replies, told, strict=True):
            draft.tested = reply is not None
            draft.trusted = below is not None and is_at(draft, below)
        waiting = [draft for draft, below in zip(waiting, told, strict=True) if below is None and draft.tested]


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
