"""Hit tests: an element is trusted if the application finds it, a part of it, or its twin at its middle."""

from collections.abc import Mapping, Sequence

from agent.desktop.trees.bus import Body, Question
from agent.desktop.trees.roles import ENABLED, HEADERS, SENSITIVE, alike, has
from agent.desktop.trees.shape import Draft, Tree
from agent.desktop.trees.tree import NULL, SCREEN, WINDOW, Ref, hit
from agent.desktop.trees.wire import Call

_DEEPEST = 40
_RESUMED = 4
#: An icon on a button is often no node of its own: then its edge is asked for as well.
_BESIDE = 3


def descend(
    starts: Sequence[Ref], points: Sequence[tuple[int, int]], unanswered: set[int] | None = None
) -> Question[list[list[Ref]]]:
    """For each point, as the application counts, the nodes from where it starts down to what lies there.

    The deepest is last.

    ATK's bridge and Qt go down one level a call, so it is asked again until it answers itself. The indices of points
    about which an application was silent are added to `unanswered`.
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
    """Mark those that are not where they say, by an application whose coordinates begin at `origin` on the screen.

    Some containers answer nothing for any point (GTK 3's tabbed notebook): then it goes on below them.
    """
    waiting = list(wanted)
    # A menu lies over its window, whose other nodes know nothing of it.
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
                or (draft.role in HEADERS and end == draft.node.parent)  # Qt's tables answer nothing for their headers
            )
            below = None if draft.trusted else _below(tree, draft, end)
            if below is not None:
                left.append((draft, below))
        waiting, starts = [draft for draft, _ in left], [below for _, below in left]
        if not waiting:
            return


def _below(tree: Tree, draft: Draft, end: Ref) -> Ref | None:
    """The next container on the way from where an answer ended down to an element; None where there is none between."""
    way = [node.ref for node in tree.above(draft.node.ref)]
    if end == tree.frame:
        return way[-1] if way else None
    at = way.index(end) if end in way else 0
    return way[at - 1] if at > 0 else None


def trust_gtk4(
    tree: Tree, wanted: Sequence[Draft], origin: tuple[int, int], moved: Mapping[Ref, tuple[int, int]]
) -> Question[None]:
    """The same for GTK 4, which answers at once, in coordinates of the window that begins at `origin` on the screen.

    It answers nothing for an icon on a button or the knob of a switch, which are no nodes: then points beside them are
    tried. What is in a popover is asked of that, where it says that it is; `moved` tells how far that is away.
    """

    def question(draft: Draft, point: tuple[int, int]) -> Call:
        start = draft.popup if draft.popup in moved else tree.frame
        assert start is not None
        right, down = moved.get(start, (0, 0))
        return hit(start, point[0] - origin[0] - right, point[1] - origin[1] - down, WINDOW)

    waiting = list(wanted)
    for place in (_middle, _upper, _inner_edge, _outer_edge, _above):
        replies = yield [question(draft, place(draft)) for draft in waiting]
        told = [reply_ref(reply) for reply in replies]
        for draft, reply, below in zip(waiting, replies, told, strict=True):
            draft.tested = reply is not None
            draft.trusted = below is not None and (_is(tree, draft, below) or _is_disabled_in(tree, draft, below))
        waiting = [draft for draft, below in zip(waiting, told, strict=True) if below is None and draft.tested]


def _is_disabled_in(tree: Tree, draft: Draft, ref: Ref) -> bool:
    """Whether a node is what a disabled element stands on: GTK 4 looks through what takes no input."""
    states = draft.node.states
    return not (has(states, ENABLED) or has(states, SENSITIVE)) and ref in [
        node.ref for node in tree.above(draft.node.ref)
    ]


def _middle(draft: Draft) -> tuple[int, int]:
    return draft.center


def _upper(draft: Draft) -> tuple[int, int]:
    return draft.center[0], draft.box.top + draft.box.height // 5


def _inner_edge(draft: Draft) -> tuple[int, int]:
    return draft.box.left + 1, draft.center[1]


def _outer_edge(draft: Draft) -> tuple[int, int]:
    return draft.box.left - _BESIDE, draft.center[1]


def _above(draft: Draft) -> tuple[int, int]:
    return draft.center[0], draft.box.top - _BESIDE


def _is(tree: Tree, draft: Draft, ref: Ref) -> bool:
    """Whether a node is an element, a part of it, or its twin."""
    own = {draft.node.ref, *draft.twins}
    if ref in own or any(node.ref in own for node in tree.above(ref)):
        return True
    other = tree.nodes.get(ref)
    return other is not None and alike(other.role, draft.role) and bool(draft.name) and tree.name(other) == draft.name


def reply_ref(reply: Body) -> Ref | None:
    """The node in a reply; None for none."""
    if not reply or reply[0][1] in (NULL, ""):
        return None
    name, path = reply[0]
    return str(name), str(path)
