"""Finds the element that a click at one point of a window would hit, and the element with the keyboard focus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent.core.geometry import DesktopPoint
from agent.desktop.protocol.elements import FieldText
from agent.desktop.protocol.windows import Layer
from agent.desktop.trees import gtk4, roles, tree
from agent.desktop.trees.applications import Application, matching, origin_of, windows_of
from agent.desktop.trees.bus import Question
from agent.desktop.trees.contents import clicked, descend, reply_ref
from agent.desktop.trees.roles import has
from agent.desktop.trees.shape import Draft, Seen, Tree, element_of, smallest_at, states_of
from agent.desktop.trees.tree import Node, Ref
from agent.screen.outline import Element

#: Levels above the hit node that are searched for a control.
_CLIMB = 8
#: Most nodes to read of one kind, such as those that claim the focus: a page and a field in it may both claim it.
_MOST = 20
#: Most characters to read of a text. Of a longer focused text, the part around the caret is read.
_LONGEST_TEXT = 4000
#: Most nodes to walk within the time limit: 75 nodes of Qt took 29 ms.
_WALKED = 200


@dataclass(frozen=True, slots=True)
class Lookup:
    """Queries about one window of an application."""

    application: Application
    layer: Layer
    layers: Sequence[Layer]  # all layers of the desktop
    seen: Sequence[Seen]  # the windows of the last full read
    known: Mapping[Ref, Element]  # the elements of the last full read, by their nodes

    def at(self, point: DesktopPoint) -> Question[Element | None]:
        application, layer = self.application, self.layer
        own_seen = [one for one in self.seen if one.application is application]
        popups = set[Ref]()
        if layer.helper:  # a menu, which may be in the tree of the window below it
            found = (draft for one in own_seen for draft in one.drafts if draft.box.contains(point))
            popups = {draft.popup for draft in found if draft.popup}
        frames = (yield from windows_of(application)) if layer.helper else [(yield from self._frame())]
        origins = {frame.ref: origin_of(application, layer, frame) for frame in frames if frame is not None}
        for start in (*popups, *origins):
            origin = origins.get(start, layer.surface or (0, 0))
            path = yield from self._path(start, point, origin)
            if layer.helper and start not in popups:
                nodes = yield from tree.details(path)
                if not any(node.role in roles.POPUPS for node in nodes):
                    continue
            if path:
                return (yield from self._element_on(path, start, origin))
        own_drafts = [
            draft
            for one in own_seen
            for draft in one.drafts
            if (layer.helper and draft.popup is not None)
            or (one.layer.window.id == layer.window.id and not draft.popup)
        ]
        draft = smallest_at(own_drafts, point)
        return self.known.get(draft.node.ref) if draft is not None else None

    def focused(self) -> Question[Element | None]:
        """Return the element that has the focus; None if the application does not say."""
        found = yield from self._with_focus()
        if found is None:
            return None
        node, frame = found
        origin = origin_of(self.application, self.layer, frame)
        if self.application.is_gtk4:
            [box] = yield [tree.extents(node.ref, tree.WINDOW)]
            node.box = tree.region_of(box, *origin)
        else:
            tree.move([node], *origin)
        name = Tree(node.ref, [], class_names=self.application.is_gtk4).name(node)
        draft = Draft(node, node.role, name, node.box or self.layer.box)
        before = self.known.get(node.ref)
        if before is not None:  # a text field may have become a password field meanwhile, or the reverse
            before = replace(before, role=roles.role_name(node.role), states=states_of(draft), value=None)
        return (yield from _addressed(before or element_of(self.layer, draft, 0), node.ref))

    def text(self) -> Question[FieldText | None]:
        """Return the text and selection of the focused field; None if unknown."""
        found = yield from self._with_focus()
        if found is None or found[0].role == roles.PASSWORD:
            return None
        ref = found[0].ref
        caret, selection = yield [
            tree.getter(ref, "Text", "CaretOffset"),
            tree.method(ref, "Text", "GetSelection", "ii", "i", 0),
        ]
        at = tree.variant(caret, "i")
        first = max(0, (at or 0) - _LONGEST_TEXT // 2)
        [text] = yield [tree.text_between(ref, first, first + _LONGEST_TEXT)]
        if not text or at is None or not 0 <= at - first <= len(str(text[0])):
            return None
        read, at = str(text[0]), at - first
        start, end = (int(selection[0]) - first, int(selection[1]) - first) if selection else (at, at)
        # Without a selection, GTK returns 0, 0, and Chromium -1, -1. In a terminal, typing replaces no selection.
        selects = found[0].role != roles.TERMINAL and 0 <= start < end <= len(read)
        return FieldText(read, start, end) if selects else FieldText(read, at, at)

    def fields(self) -> Question[list[str] | None]:
        """Return the texts of the fields of the window, or of the pages that it shows; None if they are unknown."""
        frame = yield from self._frame()
        if frame is None or self.application.is_gtk4 or not self.application.matches:
            focused = yield from self.text()
            return None if focused is None else [focused.text]
        [pages] = yield [tree.below(frame.ref, _MOST, roles.SHOWING, role=roles.DOCUMENT_WEB)]
        fields = yield [tree.below(ref, _MOST, roles.EDITABLE) for ref in tree.refs(pages, _MOST) or [frame.ref]]
        found = yield from tree.details([ref for reply in fields for ref in tree.refs(reply, _MOST)])
        open_ones = [node.ref for node in found if node.role not in (roles.PASSWORD, roles.TERMINAL)]
        texts = yield [tree.text_between(ref, 0, _LONGEST_TEXT) for ref in open_ones]
        return [str(text[0]) for text in texts if text]

    def dialogs(self) -> Question[list[str] | None]:
        """Return the texts of the dialogs that are drawn inside the window, such as a page's; None if unknown."""
        frame = yield from self._frame()
        if frame is None:
            return None
        if self.application.is_gtk4:
            cache = (yield from gtk4.listed(self.application.ref)) or {}
            inside = gtk4.inside(cache, cache[frame.ref]) if frame.ref in cache else ()
            drawn = [cache[ref] for ref in inside if cache[ref].role in roles.DIALOGS and ref != frame.ref]
            parts = [cache[ref] for one in drawn for ref in gtk4.inside(cache, one)]
            return [part.name for part in parts if part.name and has(part.states, roles.VISIBLE)]
        if not self.application.matches:
            return None
        replies = yield [tree.below(frame.ref, _MOST, roles.SHOWING, role=role) for role in sorted(roles.DIALOGS)]
        dialogs = [ref for reply in replies for ref in tree.refs(reply, _MOST) if ref != frame.ref]
        replies = yield [tree.below(ref, _WALKED, roles.SHOWING) for ref in dialogs]
        nodes = yield from tree.details(
            [*dialogs, *(ref for reply in replies for ref in tree.refs(reply, _WALKED))][:_WALKED]
        )
        texts = yield [tree.text_between(one.ref, 0, _LONGEST_TEXT) for one in nodes if not one.name]
        return [*(one.name for one in nodes if one.name), *(str(text[0]) for text in texts if text)]

    def default_button(self) -> Question[Element | None]:
        """Return the button that Enter presses in the window; None if it has none, or the toolkit does not tell."""
        frame = yield from self._frame()
        if frame is None or not self.application.matches:
            return None
        [found] = yield [tree.below(frame.ref, 1, roles.SHOWING, roles.DEFAULT, role=roles.PUSH_BUTTON)]
        nodes = yield from tree.details(tree.refs(found, 1))
        if not nodes:
            return None
        tree.move(nodes, *origin_of(self.application, self.layer, frame))
        node = nodes[0]
        return element_of(self.layer, Draft(node, node.role, node.name, node.box or self.layer.box), 0)

    def page(self) -> Question[str | None]:
        """Return the address of the page that the window shows, the outermost one; None if it shows none."""
        frame = yield from self._frame()
        if frame is None or not self.application.matches:
            return None
        [pages] = yield [tree.below(frame.ref, _MOST, roles.SHOWING, role=roles.DOCUMENT_WEB)]
        replies = yield [tree.method(ref, "Document", "GetAttributes", "a{ss}") for ref in tree.refs(pages, _MOST)[:1]]
        attributes = dict(replies[0][0]) if replies and replies[0] else {}
        return attributes.get("URI") or attributes.get("DocURL")  # Chromium, Firefox

    def _path(self, start: Ref, point: DesktopPoint, origin: tuple[int, int]) -> Question[list[Ref]]:
        """Return the path of nodes at a point as far as it is known, the deepest last."""
        x, y = point.rounded()
        if not self.application.is_gtk4:
            path, _ = yield from descend(start, (x - origin[0], y - origin[1]))
            return path
        if self.layer.helper:
            return []  # GTK 4 does not know where a popover is
        [reply] = yield [tree.hit(start, x - origin[0], y - origin[1], tree.WINDOW)]
        found = reply_ref(reply)
        return [] if found is None else [found]

    def _element_on(self, path: Sequence[Ref], start: Ref, origin: tuple[int, int]) -> Question[Element | None]:
        """Return the control on a path, or else the deepest node that has a text."""
        chain = yield from _chain(path, start)
        if not self.application.is_gtk4:
            tree.move(chain, *origin)
        if not chain:
            return None
        controls = [node for node in chain if node.role in roles.CONTROLS]
        control = next((node for node in controls if node.showing), controls[0] if controls else None)
        takes = False
        if control is None and self.application.is_browser:
            taking = yield from clicked([node.ref for node in chain[:4]])
            control = next((node for node in chain if node.ref in taking), None)
            takes = control is not None
        node = control or next((one for one in chain if one.role in roles.TEXTS and one.name), chain[0])
        name = Tree(node.ref, [], class_names=self.application.is_gtk4).name
        draft = Draft(node, node.role, name(node), node.box or self.layer.box, clickable=takes)
        if (element := self.known.get(node.ref)) is not None:
            element = replace(element, states=states_of(draft), name=draft.name or element.name, trusted=True)
        else:
            draft.name = draft.name or next((name(one) for one in chain if name(one)), "")
            element = element_of(self.layer, draft, 0)
        return (yield from _addressed(element, node.ref))

    def _with_focus(self) -> Question[tuple[Node, Node] | None]:
        frame = yield from self._frame()
        if frame is None:
            return None
        nodes = yield from self._saying_focused(frame.ref)
        nodes = [node for node in nodes if has(node.states, roles.FOCUSED) and node.role not in roles.WINDOWS]
        if not nodes:
            return None
        return max(reversed(nodes), key=lambda one: (one.role == roles.PASSWORD, one.role in roles.FIELDS)), frame

    def _frame(self) -> Question[Node | None]:
        frames = yield from windows_of(self.application)
        found, own = matching(frames, self.layers, self.application.pid), self.layer.window.id
        return next((one for one in frames if one.ref in found and found[one.ref].window.id == own), None)

    def _saying_focused(self, frame: Ref) -> Question[list[Node]]:
        """Return the nodes of a window that claim the focus now."""
        if self.application.is_gtk4:
            cache = (yield from gtk4.listed(self.application.ref)) or {}
            node_refs = gtk4.inside(cache, cache[frame]) if frame in cache else ()
            return (
                yield from tree.details([ref for ref in node_refs if has(cache[ref].states, roles.FOCUSED)][:_MOST])
            )
        if self.application.matches:
            [body] = yield [tree.below(frame, _MOST, roles.FOCUSED)]
            if body is not None:
                return (yield from tree.details(tree.refs(body, _MOST)))
        # Qt: most likely the focus is on a node that is known from the last read.
        lately = [node for one in self.seen if one.tree.frame == frame for node in one.tree.nodes.values()]
        candidates = [node.ref for node in lately if has(node.states, roles.FOCUSABLE)]
        replies = yield [tree.method(ref, "Accessible", "GetState", "au") for ref in candidates]
        having = [
            ref for ref, reply in zip(candidates, replies, strict=True) if has(tree.states_of(reply), roles.FOCUSED)
        ]
        if having:
            return (yield from tree.details(having[:_MOST]))
        return (yield from tree.walked(frame, _WALKED))


def _addressed(element: Element, ref: Ref) -> Question[Element]:
    """Return a link with its address for a value; any other element as it is."""
    if element.role != "link":
        return element
    [reply] = yield [tree.method(ref, "Hyperlink", "GetURI", "s", "i", 0)]
    return replace(element, value=str(reply[0])[:_LONGEST_TEXT] if reply else None)


def _chain(path: Sequence[Ref], start: Ref) -> Question[list[Node]]:
    """Return the nodes of a path, the deepest first, and their ancestors up to a control that shows."""
    nodes = list(reversed((yield from tree.details(path))))
    for _ in range(_CLIMB):
        parent = nodes[-1].parent if nodes else None
        if parent is None or parent == start:
            break
        # Chromium finds the hidden choices of a combo box at its middle.
        if any(node.ref == parent or (node.role in roles.CONTROLS and node.showing) for node in nodes):
            break
        nodes += yield from tree.details([parent])
        if nodes[-1].ref != parent or nodes[-1].role in roles.WINDOWS:
            break
    return nodes
