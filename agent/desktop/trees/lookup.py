"""What a click at one point would hit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agent.core.geometry import DesktopPoint
from agent.desktop.protocol.elements import FieldText
from agent.desktop.protocol.windows import Layer
from agent.desktop.trees import gtk4, roles
from agent.desktop.trees.applications import Application, matching, windows_of
from agent.desktop.trees.bus import Question
from agent.desktop.trees.contents import clicked
from agent.desktop.trees.hits import descend, reply_ref
from agent.desktop.trees.outline import Seen, element_of, states_of
from agent.desktop.trees.roles import has, role_name
from agent.desktop.trees.shape import Draft, Tree, smallest_at
from agent.desktop.trees.tree import (
    WINDOW,
    Node,
    Ref,
    details,
    extents,
    focused_below,
    getter,
    hit,
    method,
    move,
    refs,
    region_of,
    variant,
    walked,
)
from agent.desktop.trees.tree import states_of as bits_of
from agent.screen.outline import Element

#: A control is looked for so many levels above what was hit.
_CLIMB = 8
_CONTROLS = frozenset(role_name(number) for number in roles.CONTROLS)
#: A page and the field in it may both say that they have the focus; nobody needs more of them.
_MOST = 20
#: Characters. Longer texts are documents; in them Enter begins a line and sends nothing.
_LONGEST_TEXT = 4000
#: So many nodes are walked: 75 of Qt took 29 ms, and there is no more time.
_WALKED = 200


def look_at(
    application: Application,
    layer: Layer,
    point: DesktopPoint,
    seen: Sequence[Seen],
    known: Mapping[Ref, Element],
) -> Question[Element | None]:
    """What is at a point of a window of an application.

    `seen` is what was read of windows lately, and `known` its elements by their nodes.
    """
    own_seen = [one for one in seen if one.application is application]
    if layer.helper:  # a menu, which may be a part of the tree of the window that it is over
        popups: set[Ref] = {
            draft.popup for one in own_seen for draft in one.drafts if draft.popup and draft.box.contains(point)
        }
    else:
        popups = set()
    # Only as long as the window is where it was.
    lately = [one for one in own_seen if (one.layer.window.id, one.layer.box) == (layer.window.id, layer.box)]
    if lately:
        origins = {one.tree.frame: one.origin for one in lately}
    else:
        frames = yield from windows_of(application)
        pairs = matching(frames, [layer], application.pid)
        windows = [frame for frame in frames if frame.ref in pairs or layer.helper]
        origins = {frame.ref: origin_of(application, layer, frame) for frame in windows}
    for start in (*popups, *origins):
        origin = origins.get(start, layer.surface or (0, 0))
        path = yield from _path(application, start, layer, point, origin)
        if layer.helper and start not in popups:
            nodes = yield from details(path)
            if not any(node.role in roles.POPUPS for node in nodes):
                continue
        if path:
            found = yield from _of_lately(path, known)
            if found:
                return found
            chain = yield from _chain(path, start)
            if not application.is_gtk4:
                move(chain, *origin)
            return (yield from _choose(application, layer, chain, known))
    own_drafts = [
        draft
        for one in own_seen
        for draft in one.drafts
        if (layer.helper and draft.popup is not None) or (one.layer.window.id == layer.window.id and not draft.popup)
    ]
    draft = smallest_at(own_drafts, point)
    return known.get(draft.node.ref) if draft is not None else None


def _path(
    application: Application, start: Ref, layer: Layer, point: DesktopPoint, origin: tuple[int, int]
) -> Question[list[Ref]]:
    """The nodes at a point as far as they are told, the deepest last."""
    x, y = point.rounded()
    if not application.is_gtk4:
        [path] = yield from descend([start], [(x - origin[0], y - origin[1])])
        return path
    if layer.helper:
        return []  # a popover does not know where it is
    [reply] = yield [hit(start, x - origin[0], y - origin[1], WINDOW)]
    below = reply_ref(reply)
    return [] if below is None else [below]


def _of_lately(path: Sequence[Ref], known: Mapping[Ref, Element]) -> Question[Element | None]:
    """The control on the way to a point that the last outline tells of, as it stands now; None where there is none."""
    for ref in reversed(path):
        element = known.get(ref)
        if element is not None and (element.role in _CONTROLS or "clickable" in element.states):
            for node in (yield from details([ref])):
                if node.role in roles.CONTROLS:
                    draft = Draft(node, node.role, element.name, element.box, clickable="clickable" in element.states)
                    return replace(element, states=states_of(draft), trusted=True)
            return replace(element, trusted=True)
    return None


def _chain(path: Sequence[Ref], start: Ref) -> Question[list[Node]]:
    """The nodes of a path, the deepest first, and those above them up to a control."""
    nodes = list(reversed((yield from details(path))))
    for _ in range(_CLIMB):
        parent = nodes[-1].parent if nodes else None
        if (
            parent is None
            or parent == start
            or any(node.ref == parent or node.role in roles.CONTROLS for node in nodes)
        ):
            break
        nodes += yield from details([parent])
        if nodes[-1].ref != parent or nodes[-1].role in roles.WINDOWS:
            break
    return nodes


def _choose(
    application: Application, layer: Layer, chain: Sequence[Node], known: Mapping[Ref, Element]
) -> Question[Element | None]:
    """The control among nodes that lie in each other, or else the deepest that says anything."""
    if not chain:
        return None
    control = next((node for node in chain if node.role in roles.CONTROLS), None)
    takes = False
    if control is None and application.is_browser:
        taking = yield from clicked([node.ref for node in chain[:4]])
        control = next((node for node in chain if node.ref in taking), None)
        takes = control is not None
    node = control or next((one for one in chain if one.role in roles.TEXTS and one.name), chain[0])
    name = Tree(node.ref, [], class_names=application.is_gtk4).name
    draft = Draft(node, node.role, name(node), node.box or layer.box, clickable=takes)
    if (element := known.get(node.ref)) is not None:
        return replace(element, states=states_of(draft), name=draft.name or element.name, trusted=True)
    draft.name = draft.name or next((name(one) for one in chain if name(one)), "")
    return element_of(layer, draft, 0)


def origin_of(application: Application, layer: Layer, frame: Node) -> tuple[int, int]:
    """Where the coordinates begin that an application tells of a window: on X11 on the screen, but for GTK 4.

    Measured with GTK 4.8 under a window manager that does not compose: it draws a border of 5 pixels around itself,
    which the node of the window leaves out; where a shadow is drawn, the window says so and the layer leaves it out.
    """
    if not application.is_gtk4:
        return layer.surface or (0, 0)
    size = frame.box or layer.box
    border_x, border_y = layer.box.width - size.width, layer.box.height - size.height
    return layer.box.left + max(0, border_x) // 2, layer.box.top + max(0, border_y) // 2


def look_for_focus(
    application: Application,
    layer: Layer,
    layers: Sequence[Layer],
    seen: Iterable[Seen],
    known: Mapping[Ref, Element],
) -> Question[Element | None]:
    """The element of an application's window that has the focus; None where it does not say.

    `seen` is what was read of windows lately, and `known` its elements by their nodes.
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
    if found is None or found[0].role == roles.PASSWORD:
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
    nodes = [node for node in nodes if has(node.states, roles.FOCUSED) and node.role not in roles.WINDOWS]
    if not nodes:
        return None
    return max(reversed(nodes), key=lambda one: (one.role == roles.PASSWORD, one.role in roles.FIELDS)), frame


def _having_focus(application: Application, frame: Ref, lately: Iterable[Node]) -> Question[list[Node]]:
    """The nodes of a window that say that they have the focus, as they stand now."""
    if application.is_gtk4:
        cache = (yield from gtk4.listed(application.ref)) or {}
        below = gtk4.inside(cache, cache[frame]) if frame in cache else ()
        return (yield from details([ref for ref in below if has(cache[ref].states, roles.FOCUSED)][:_MOST]))
    if application.matches:
        [told] = yield [focused_below(frame, _MOST)]
        if told is not None:
            return (yield from details(refs(told, _MOST)))
    # Qt: most likely it is one of those that were there the last time.
    asked = [node.ref for node in lately if has(node.states, roles.FOCUSABLE)]
    replies = yield [method(ref, "Accessible", "GetState", "au") for ref in asked]
    having = [ref for ref, reply in zip(asked, replies, strict=True) if has(bits_of(reply), roles.FOCUSED)]
    if having:
        return (yield from details(having[:_MOST]))
    return (yield from walked(frame, _WALKED))
