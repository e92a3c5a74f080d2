"""Which element has the keyboard focus in a window."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agent.desktop.protocol.elements import FieldText
from agent.desktop.protocol.windows import Layer
from agent.desktop.trees import gtk4
from agent.desktop.trees.applications import Application, matching, windows_of
from agent.desktop.trees.bus import Question
from agent.desktop.trees.pointing import origin_of
from agent.desktop.trees.roles import FIELDS, FOCUSABLE, FOCUSED, PASSWORD, WINDOWS, has, role_name
from agent.desktop.trees.shape import Draft, Tree
from agent.desktop.trees.telling import Seen, element_of, states_of
from agent.desktop.trees.tree import (
    WINDOW,
    Node,
    Ref,
    details,
    extents,
    focused_below,
    getter,
    method,
    move,
    refs,
    region_of,
    variant,
    walked,
)
from agent.desktop.trees.tree import states_of as bits_of
from agent.screen.outline import Element

#: A page and the field in it may both say that they have the focus; nobody needs more of them.
_MOST = 20
#: Characters. Longer texts are documents; in them Enter begins a line and sends nothing.
_LONGEST_TEXT = 4000
#: So many nodes are walked: 75 of Qt took 29 ms, and there is no more time.
_WALKED = 200


def look_for_focus(
    application: Application,
    layer: Layer,
    layers: Sequence[Layer],
    seen: Iterable[Seen],
    known: Mapping[Ref, Element],
) -> Question[Element | None]:
    """The element of an application's window that has the focus; None where it does not say.

    Args:
        application: whose window it is.
        layer: that window.
        layers: all of them.
        seen: what was read of windows lately.
        known: the elements of that, by their nodes.
    """
    found = yield from _node_with_focus(application, layer, layers, seen)
    if found is None:
        return None
    node, frame = found
    if application.is_gtk4:
        [box] = yield [extents(node.ref, WINDOW)]
        node.box = region_of(box, *origin_of(application, layer, frame))
    else:
        move([node], *origin_of(application, layer, frame))
    name = Tree(node.ref, [], class_names=application.is_gtk4).name(node)
    draft = Draft(node, node.role, name, node.box or layer.box)
    before = known.get(node.ref)
    if before is None:
        return element_of(layer, draft, 0)
    # What was a field for any text may have become one for a password, and the other way round.
    return replace(before, role=role_name(node.role), states=states_of(draft), value=None)


def look_for_text(
    application: Application, layer: Layer, layers: Sequence[Layer], seen: Iterable[Seen]
) -> Question[FieldText | None]:
    """What stands in the field of a window that has the focus, and what of it is selected; None where nobody tells."""
    found = yield from _node_with_focus(application, layer, layers, seen)
    if found is None or found[0].role == PASSWORD:
        return None
    ref = found[0].ref
    text, count, caret, selection = yield [
        method(ref, "Text", "GetText", "s", "ii", 0, _LONGEST_TEXT),
        getter(ref, "Text", "CharacterCount"),
        getter(ref, "Text", "CaretOffset"),
        method(ref, "Text", "GetSelection", "ii", "i", 0),
    ]
    length, at = variant(count, "i"), variant(caret, "i")
    if not text or length is None or length > _LONGEST_TEXT or at is None or not 0 <= at <= length:
        return None
    start, end = (int(selection[0]), int(selection[1])) if selection else (at, at)
    # GTK tells 0, 0 where nothing is selected, and Chromium -1, -1.
    return FieldText(str(text[0]), start, end) if 0 <= start < end <= length else FieldText(str(text[0]), at, at)


def _node_with_focus(
    application: Application, layer: Layer, layers: Sequence[Layer], seen: Iterable[Seen]
) -> Question[tuple[Node, Node] | None]:
    """The node of a window that has the focus, and that of the window."""
    frames = yield from windows_of(application)
    found = matching(frames, layers, application.pid)
    frame = next((one for one in frames if one.ref in found and found[one.ref].window.id == layer.window.id), None)
    if frame is None:
        return None
    lately = [node for one in seen if one.tree.frame == frame.ref for node in one.tree.nodes.values()]
    nodes = yield from _having_focus(application, frame.ref, lately)
    nodes = [node for node in nodes if has(node.states, FOCUSED) and node.role not in WINDOWS]
    if not nodes:
        return None
    return max(reversed(nodes), key=lambda one: (one.role == PASSWORD, one.role in FIELDS)), frame


def _having_focus(application: Application, frame: Ref, lately: Iterable[Node]) -> Question[list[Node]]:
    """The nodes of a window that say that they have the focus, as they stand now."""
    if application.is_gtk4:
        cache = (yield from gtk4.listed(application.ref)) or {}
        below = gtk4.inside(cache, cache[frame]) if frame in cache else ()
        return (yield from details([ref for ref in below if has(cache[ref].states, FOCUSED)][:_MOST]))
    if application.matches:
        [told] = yield [focused_below(frame, _MOST)]
        if told is not None:
            return (yield from details(refs(told, _MOST)))
    # Qt: most likely it is one of those that were there the last time.
    asked = [node.ref for node in lately if has(node.states, FOCUSABLE)]
    replies = yield [method(ref, "Accessible", "GetState", "au") for ref in asked]
    having = [ref for ref, reply in zip(asked, replies, strict=True) if has(bits_of(reply), FOCUSED)]
    if having:
        return (yield from details(having[:_MOST]))
    return (yield from walked(frame, _WALKED))
