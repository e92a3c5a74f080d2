"""What a click at one point would hit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent.desktop.atspi.applications import Application, matching, windows_of
from agent.desktop.atspi.bus import Question
from agent.desktop.atspi.contents import clicked
from agent.desktop.atspi.hits import descend, reply_ref
from agent.desktop.atspi.roles import CONTROLS, TEXTS, WINDOWS
from agent.desktop.atspi.shape import Draft, Tree, smallest_at
from agent.desktop.atspi.telling import Seen, element_of, states_of
from agent.desktop.atspi.tree import WINDOW, Node, Ref, details, hit
from agent.desktop.windows import Layer
from agent.geometry import DesktopPoint
from agent.screen.outline import Element

#: A control is looked for so many levels above what was hit.
_CLIMB = 8


def look_at(
    application: Application,
    layer: Layer,
    point: DesktopPoint,
    seen: Sequence[Seen],
    known: Mapping[Ref, Element],
) -> Question[Element | None]:
    """What is at a point of a window of an application.

    Args:
        application: whose window is on top there.
        layer: that window.
        point: on the desktop.
        seen: what was read of windows lately.
        known: the elements of that, by their nodes.
    """
    frames = yield from windows_of(application)
    pairs = matching(frames, [layer], application.pid)
    own = [frame for frame in frames if frame.ref in pairs]
    if layer.helper:  # a menu may be a part of another window's tree
        own += [frame for frame in frames if frame not in own]
    for frame in own:
        chain = yield from _chain(application, frame, layer, point, seen)
        if chain:
            return (yield from _choose(application, layer, chain, known))
    own_drafts = [
        draft
        for one in seen
        if one.application is application
        for draft in one.drafts
        if (layer.helper and draft.popup is not None) or (one.layer.window.id == layer.window.id and not draft.popup)
    ]
    draft = smallest_at(own_drafts, point)
    return known.get(draft.node.ref) if draft is not None else None


def _chain(
    application: Application, frame: Node, layer: Layer, point: DesktopPoint, seen: Sequence[Seen]
) -> Question[list[Node]]:
    """The nodes at a point, the deepest first, up to the window."""
    x, y = point.rounded()
    if application.is_gtk4 and layer.helper:
        return []  # a popover does not know where it is
    if application.is_gtk4:
        left, top = next((one.origin for one in seen if one.tree.frame == frame.ref), origin_of(layer, frame))
        [reply] = yield [hit(frame.ref, x - left, y - top, WINDOW)]
        below = reply_ref(reply)
        path = [] if below is None else [below]
    else:
        [path] = yield from descend([frame.ref], [(x, y)])
    if not path:
        return []
    nodes = list(reversed((yield from details(path))))
    for _ in range(_CLIMB):
        parent = nodes[-1].parent if nodes else None
        if parent is None or parent == frame.ref or any(node.ref == parent for node in nodes):
            break
        if any(node.role in CONTROLS for node in nodes):
            break
        nodes += yield from details([parent])
        if nodes[-1].ref != parent or nodes[-1].role in WINDOWS:
            break
    if application.is_gtk4:
        return nodes
    return [node for node in nodes if node.box is None or node.box.contains(point)]


def _choose(
    application: Application, layer: Layer, chain: Sequence[Node], known: Mapping[Ref, Element]
) -> Question[Element | None]:
    """The control among nodes that lie in each other, or else the deepest that says anything."""
    control = next((node for node in chain if node.role in CONTROLS), None)
    takes = False
    if control is None and application.is_browser:
        taking = yield from clicked([node.ref for node in chain[:4]])
        control = next((node for node in chain if node.ref in taking), None)
        takes = control is not None
    node = control or next((one for one in chain if one.role in TEXTS and one.name), chain[0])
    name = Tree(node.ref, [], class_names=application.is_gtk4).name
    draft = Draft(node, node.role, name(node), node.box or layer.box, clickable=takes)
    if (element := known.get(node.ref)) is not None:
        return replace(element, states=states_of(draft), name=draft.name or element.name, trusted=True)
    draft.name = draft.name or next((name(one) for one in chain if name(one)), "")
    return element_of(layer, draft, 0)


def origin_of(layer: Layer, frame: Node) -> tuple[int, int]:
    """Where the own coordinates of a GTK 4 window begin on the screen.

    Measured with GTK 4.8 under a window manager that does not compose: it draws a border of 5 pixels around itself,
    which the node of the window leaves out; where a shadow is drawn, the window says so and the layer leaves it out.
    """
    size = frame.box or layer.box
    border_x, border_y = layer.box.width - size.width, layer.box.height - size.height
    return layer.box.left + max(0, border_x) // 2, layer.box.top + max(0, border_y) // 2
