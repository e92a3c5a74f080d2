"""Reads the contents of elements (text of fields, numbers of sliders, choice of combo boxes), and hit-tests elements.

An element is trusted if the application finds it, a part of it or its twin at the element's middle.
"""

import math
from collections.abc import Callable, Sequence

from agent.desktop.trees import roles
from agent.desktop.trees.bus import Body, Call, Question, together
from agent.desktop.trees.roles import alike, has
from agent.desktop.trees.shape import LONGEST_NAME, Draft, Seen, Tree
from agent.desktop.trees.tree import (
    NULL,
    SCREEN,
    WINDOW,
    Ref,
    below,
    getter,
    hit,
    method,
    refs,
    text_between,
    text_of,
    variant,
)
from agent.safety.text import one_line

#: Most characters to keep of a text, and to read from a terminal. Texts keep their beginning, terminals their end.
_LONGEST_TEXT, _LONGEST_TERMINAL = 1000, 8000
_NUMBERS = ("CurrentValue", "MinimumValue", "MaximumValue")
_LABELLED = roles.FIELDS | roles.RANGES | {roles.COMBO_BOX, roles.PASSWORD}
_LABELLED_BY = 2  # AtspiRelationType
#: Names of first actions that make a part of a page clickable. "clickAncestor" and the like belong to an ancestor.
_TAKES = frozenset({"click", "press", "jump", "activate", "check", "uncheck", "toggle", "open"})
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


def fill(tree: Tree, wanted: Sequence[Draft]) -> Question[None]:
    """Read values, limits and labels into drafts. The contents of password fields are never read."""
    yield from together(*(_fill(tree, draft) for draft in wanted))


def _fill(tree: Tree, draft: Draft) -> Question[None]:
    ref, calls = draft.node.ref, dict[str, Call]()
    if draft.role in roles.RANGES:
        calls = {name: getter(ref, "Value", name) for name in _NUMBERS}
    elif draft.role == roles.TERMINAL:
        calls["caret"] = getter(ref, "Text", "CaretOffset")
        calls["text"] = text_between(ref, 0, _LONGEST_TERMINAL)
    elif draft.role == roles.COMBO_BOX:
        calls["choice"] = method(ref, "Selection", "GetSelectedChild", "(so)", "i", 0)
        calls["selected"] = below(ref, 1, roles.SELECTED)  # Chromium's combo boxes have no interface for selections
    elif draft.role != roles.PASSWORD and (draft.role in roles.FIELDS or has(draft.node.states, roles.EDITABLE)):
        calls["text"] = text_between(ref, 0, _LONGEST_TEXT)
    if draft.role in _LABELLED or (draft.is_control and not draft.name):
        calls["label"] = method(ref, "Accessible", "GetRelationSet", "a(ua(so))")
    if not calls:
        return
    replies = dict(zip(calls, (yield [*calls.values()]), strict=True))
    if text := replies.get("text"):
        draft.value = str(text[0])[:_LONGEST_TEXT]
        if draft.role == roles.TERMINAL:  # up to the cursor, which may be on an empty line
            caret, full_text = variant(replies["caret"], "i") or 0, str(text[0])
            draft.value = full_text[: max(caret, len(full_text.rstrip()))][-_LONGEST_TEXT:]
    value, *limits = (variant(replies.get(name), "d") for name in _NUMBERS)
    if value is not None and math.isfinite(value):
        draft.value = f"{value:.6g}"
    match limits:
        case [float(least), float(most)] if math.isfinite(least) and math.isfinite(most):
            draft.limits = least, most
    relations = replies.get("label") or ((),)
    labels = [tuple(target) for kind, targets in relations[0] if kind == _LABELLED_BY for target in targets[:1]]
    chosen = [reply_ref(replies.get("choice")), *refs(replies.get("selected"), 1)]
    choice, label = yield from together(
        _name_of(tree, next(filter(None, chosen), None)), _name_of(tree, labels[0] if labels else None)
    )
    draft.value, draft.label = choice or draft.value, label or draft.label
    if draft.role == roles.COMBO_BOX and draft.value is None:
        draft.value = next(iter(tree.labels(ref)), None) or (draft.name if draft.label else None)
    draft.name = draft.name or draft.label


def clicked(candidates: Sequence[Ref]) -> Question[list[Ref]]:
    """Return the clickable ones among these parts of a page, recognized by the name of their first action."""
    replies = yield [method(ref, "Action", "GetName", "s", "i", 0) for ref in candidates]
    return [ref for ref, reply in zip(candidates, replies, strict=True) if reply and reply[0] in _TAKES]


def _name_of(tree: Tree, ref: Ref | None) -> Question[str]:
    """Return the name of any node; "" for None."""
    if ref is None:
        return ""
    if (known := tree.nodes.get(ref)) is not None:
        return tree.name(known)
    [reply] = yield [getter(ref, "Accessible", "Name")]
    return one_line(text_of(reply[0] if reply else None), LONGEST_NAME)


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


def trust(seen: Seen, wanted: Sequence[Draft]) -> Question[None]:
    """Hit-test drafts of a window and set `trusted` and `tested`."""
    test = _trust_gtk4 if seen.application.is_gtk4 else _trust
    yield from together(*(test(seen, draft) for draft in wanted))


def _trust(seen: Seen, draft: Draft) -> Question[None]:
    tree, origin = seen.tree, seen.origin
    point = draft.center[0] - origin[0], draft.center[1] - origin[1]
    # A menu lies over its window, and a hit test of the window does not find it.
    start: Ref | None = draft.popup or tree.frame
    # Some containers return nothing for any point (GTK 3's tabbed notebook). Then the test continues below them.
    for _ in range(_RESUMED):
        if start is None:
            return
        path, answered = yield from descend(start, point)
        draft.tested = draft.tested and answered
        end = yield from _shown(tree, path[-1] if path else start)
        draft.trusted = bool(path) and (
            _is(tree, draft, end)
            or draft.node.ref in path
            or (draft.role in roles.HEADERS and end == draft.node.parent)  # Qt's tables find no headers
        )
        start = None if draft.trusted else _below(tree, draft, end)


def _shown(tree: Tree, ref: Ref) -> Question[Ref]:
    """Return the first node at or above a node that is in the tree.

    Chromium finds the hidden choices of a combo box at its middle.
    """
    found: Ref | None = ref
    for _ in range(_RESUMED):
        if found is None or found in tree.nodes:
            break
        [reply] = yield [getter(found, "Accessible", "Parent")]
        found = reply_ref((variant(reply, "(so)"),))
    return found or ref


def _below(tree: Tree, draft: Draft, end: Ref) -> Ref | None:
    """Return the child of `end` that an element lies in; None if it lies elsewhere."""
    way = [node.ref for node in tree.above(draft.node.ref)]
    if end == tree.frame:
        return way[-1] if way else None
    at = way.index(end) if end in way else 0
    return way[at - 1] if at > 0 else None


def _trust_gtk4(seen: Seen, draft: Draft) -> Question[None]:
    """Hit-test a draft of GTK 4, which needs one call, in window coordinates.

    GTK 4 finds nothing at an icon on a button or the knob of a switch, which are no nodes, so points beside them are
    tried. Elements of a popover are tested at the place that GTK reports.
    """
    tree, origin, moved = seen.tree, seen.origin, seen.moved
    start = draft.popup if draft.popup is not None and draft.popup in moved else tree.frame
    right, down = moved.get(start, (0, 0))
    # GTK 4's hit test ignores disabled elements, and finds what contains them.
    disabled = not (has(draft.node.states, roles.ENABLED) or has(draft.node.states, roles.SENSITIVE))
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
    """Return the node that a reply names; None if it names none."""
    return None if not reply or not reply[0] or reply[0][1] in (NULL, "") else tuple(reply[0])
