"""The elements of a desktop, read from its accessibility trees.

Which window is on top comes from the windows, never from a tree: a window's nodes claim to be showing even if another
window covers them.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from agent.core.geometry import DesktopPoint, Region, around
from agent.desktop.protocol.elements import NoAnswerError
from agent.desktop.protocol.windows import Layer, WindowId, Windows
from agent.desktop.trees import applications, gtk4, shape
from agent.desktop.trees.applications import Application
from agent.desktop.trees.bus import Bus, Limits, Question, together
from agent.desktop.trees.contents import clicked, fill, trust
from agent.desktop.trees.lookup import Lookup
from agent.desktop.trees.shape import Draft, Seen, Tree, clickable_sections, drafts
from agent.desktop.trees.tree import Node, Ref, matched, move, scaled, walked
from agent.screen.outline import Element, Outline
from foundation.errors import EnvironmentLacksError

_LIMITS = Limits()
#: Seconds for a look at one point or at the focus. It takes 1 to 25 ms; on a busy machine, an application may be late.
_AT = 1.0
#: Seconds after a failure before connecting to the bus again.
_RETRY = 10.0
T = TypeVar("T")
#: Looks for one thing in an application.
Look: TypeAlias = Callable[[Lookup], Question[T | None]]


def _at_active(look: Look[T]) -> Callable[["AtspiElements"], T | None]:
    """Return a method that looks for one thing in the active window."""

    def looked(self: "AtspiElements") -> T | None:
        began, active = time.monotonic(), self._windows.active()
        return self._looked(active.id if active else None, self._windows.layers(), look, began + _AT)

    return looked


class AtspiElements:
    """The elements of a desktop.

    `find_bus` returns the possible addresses of the accessibility bus, the best first; it may raise
    EnvironmentLacksError. `close` closes `windows` too.
    """

    def __init__(
        self,
        find_bus: Callable[[], Iterator[str]],
        windows: Windows,
        monitors: Sequence[Region],
    ) -> None:
        self._find_bus = find_bus
        self._windows = windows
        self._monitors = tuple(monitors)
        self._bus: Bus | None = None
        self._failed = ("", 0.0)
        self._applications: dict[Ref, Application] = {}
        self._seen: list[Seen] = []
        self._elements: dict[Ref, Element] = {}
        #: The results of hit tests by window, with a fingerprint of the nodes and boxes for which they are valid.
        self._tested: dict[Ref, tuple[int, dict[Ref, bool]]] = {}

    def outline(self) -> Outline:
        layers = self._windows.layers()
        shown = [layer for layer in layers if not layer.helper and not layer.backdrop]
        active = self._windows.active()
        ordinary = [layer for layer in shown if self._windows.is_ordinary(layer.window.id)]  # no panels
        dialog = active is not None and self._windows.kind(active.id) == "dialog"
        windows = tuple(shape.shown_window(layer, active.id if active else None, dialog=dialog) for layer in ordinary)
        size = around(self._monitors).size
        try:
            bus = self._connected()
            self._seen = self._read(bus, layers)
        except EnvironmentLacksError as error:
            self._drop(str(error))
            return Outline(size, (), windows, str(error))
        elements, self._elements = shape.elements_of(self._seen, layers)
        return Outline(size, elements, windows, self._lacks(bus, layers))

    def at(self, point: DesktopPoint) -> Element | None:
        began, layers = time.monotonic(), self._windows.layers()
        [top] = shape.tops_at(self._windows, layers, [point.rounded()])
        return self._looked(top, layers, lambda lookup: lookup.at(point), began + _AT)

    focused = _at_active(Lookup.focused)
    field_text = _at_active(Lookup.text)
    fields = _at_active(Lookup.fields)
    dialogs = _at_active(Lookup.dialogs)
    default_button = _at_active(Lookup.default_button)
    page = _at_active(Lookup.page)

    def _looked(self, window: WindowId | None, layers: list[Layer], look: Look[T], until: float) -> T | None:
        layer = next((layer for layer in layers if window is not None and layer.window.id == window), None)
        if layer is None:
            return None
        try:
            bus = self._connected()
            left = until - time.monotonic()
            found: T | None = bus.ask_all([self._looking(layer, layers, look)], max(0.01, left))[0]
        except EnvironmentLacksError as error:
            self._drop(str(error))
            raise
        if found is None and bus.unanswered:
            raise NoAnswerError
        return found

    def close(self) -> None:
        if self._bus is not None:
            self._bus.close()
        self._windows.close()

    def _connected(self) -> Bus:
        if self._bus is not None:
            return self._bus
        reason, until = self._failed
        if time.monotonic() < until:
            raise EnvironmentLacksError(reason)
        problem = EnvironmentLacksError("There is no accessibility bus.", "Is at-spi2-core installed?")
        for address in self._find_bus():
            try:
                self._bus = Bus(address, _LIMITS)
                return self._bus
            except EnvironmentLacksError as error:
                problem = error
        raise problem

    def _drop(self, reason: str) -> None:
        """Note that the connection was lost or failed, and when to try again."""
        if self._bus is not None:
            self._bus.close()
        self._bus, self._seen = None, []
        self._failed = reason, time.monotonic() + _RETRY
        self._applications.clear()

    def _read(self, bus: Bus, layers: list[Layer]) -> list[Seen]:
        """Read all applications."""
        parts = shape.visible_parts(layers, self._monitors)
        refs = bus.ask(applications.registered())
        if refs is None:
            raise EnvironmentLacksError("There is no registry of accessible applications.", "Log out and in again.")
        self._applications = {ref: one for ref, one in self._applications.items() if ref in refs}
        found = bus.ask_all([self._reading(ref, layers, parts) for ref in refs])
        return [seen for windows in found for seen in windows or ()]

    def _known(self, ref: Ref) -> Question[Application | None]:
        if ref not in self._applications:
            introduced = yield from applications.introduce(ref)
            if introduced is None:
                return None
            self._applications[ref] = introduced
        return self._applications[ref]

    def _reading(self, ref: Ref, layers: list[Layer], parts: dict[WindowId, list[Region]]) -> Question[list[Seen]]:
        """Read the windows that an application shows on the desktop."""
        application = yield from self._known(ref)
        if application is None or not _may_be_seen(application, layers, parts):
            return []
        frames, found = yield from applications.matched_windows(application, layers)
        shown = [frame for frame in frames if frame.ref in found and parts.get(found[frame.ref].window.id)]
        cache: dict[Ref, Node] = {}
        if application.is_gtk4:
            cache = (yield from gtk4.cached(application.ref)) or {}
        seeing = (self._seeing(application, frame, found[frame.ref], layers, parts, cache) for frame in shown)
        return (yield from scaled(together(*seeing), application.scale or 1))

    def _seeing(
        self,
        application: Application,
        frame: Node,
        layer: Layer,
        layers: list[Layer],
        parts: dict[WindowId, list[Region]],
        cache: dict[Ref, Node],
    ) -> Question[Seen]:
        """Read a window; `cache` are the nodes of a GTK 4 application."""
        origin, moved = applications.origin_of(application, layer, frame), dict[Ref, tuple[int, int]]()
        if application.is_gtk4:
            menus = [one.outer for one in layers if one.helper and one.client == layer.client]
            nodes, moved = yield from gtk4.placed(cache, frame.ref, *origin, menus)
        else:
            nodes = yield from self._nodes(application, frame.ref)
            move(nodes, *origin)
        tree = Tree(frame.ref, nodes, class_names=application.is_gtk4)
        seen = Seen(application, layer, tree, [], origin, moved)
        taking = (yield from clicked(clickable_sections(tree))) if application.is_browser else []
        found = drafts(tree, layer.box, around(self._monitors), taking)
        seen.drafts = self._on_top(seen, found, layers, parts[layer.window.id])
        filled = fill(tree, [draft for draft in seen.drafts if not draft.offscreen])
        yield from together(filled, self._trusting(seen))
        return seen

    def _nodes(self, application: Application, frame: Ref) -> Question[list[Node]]:
        if application.matches:
            nodes = yield from matched(frame)
            if nodes is not None:
                return nodes
            application.matches = False
        return (yield from walked(frame))

    def _trusting(self, seen: Seen) -> Question[None]:
        """Hit-test the controls that have not been tested at their present place."""
        for draft in seen.drafts:
            draft.trusted = not draft.offscreen
        wanted = [draft for draft in seen.drafts if draft.is_control and draft.trusted]
        boxes = [(node.ref, node.box) for node in seen.tree.nodes.values()]
        fingerprint = hash((seen.layer.box, tuple(boxes)))
        tested_for, trusted = self._tested.get(seen.tree.frame, (0, {}))
        if tested_for != fingerprint:
            trusted = {}
            self._tested[seen.tree.frame] = fingerprint, trusted
        for draft in wanted:
            draft.trusted = trusted.get(draft.node.ref, False)  # until the test succeeds
        fresh = [draft for draft in wanted if draft.node.ref not in trusted]
        yield from trust(seen, fresh)
        # While a page of GTK 4 fades in, hit tests still find the old page, and nothing moves afterwards. So a failure
        # is not remembered.
        fading = seen.application.is_gtk4
        trusted |= {draft.node.ref: draft.trusted for draft in fresh if draft.tested and (draft.trusted or not fading)}

    def _on_top(self, seen: Seen, found: list[Draft], layers: list[Layer], parts: list[Region]) -> list[Draft]:
        """Return the drafts whose middle no other window covers, and all drafts off the screen."""
        own = seen.layer.window.id
        helpers = {
            layer.window.id
            for layer in layers
            if layer.helper
            and not layer.passing
            and (layer.client == seen.layer.client or layer.window.pid == seen.application.pid)
        }
        if parts == [seen.layer.box] and not helpers:
            return found
        shown = [draft for draft in found if not draft.offscreen]
        tops = shape.tops_at(self._windows, layers, [draft.center for draft in shown])
        covered: set[Ref] = set()
        for draft, top in zip(shown, tops, strict=True):
            if top == own or (top in helpers and draft.popup is not None):
                continue
            # A part may be uncovered, as when a dialog covers half a text.
            part = shape.largest_part(draft.box, parts) if draft.popup is None else None
            if part is None:
                covered.add(draft.node.ref)
            else:
                draft.box = part
        return [draft for draft in found if draft.node.ref not in covered]

    def _lacks(self, bus: Bus, layers: Sequence[Layer]) -> str:
        parts = shape.visible_parts(layers, self._monitors)
        read = {seen.layer.window.id for seen in self._seen}
        shown = [layer for layer in layers if not (layer.helper or layer.backdrop) and parts.get(layer.window.id)]
        unread = [layer for layer in shown if layer.window.id not in read]
        known = {ref[0]: one.pid for ref, one in self._applications.items()}
        hung = [known[name] for name in bus.silent if name in known]
        return shape.what_lacks(unread, hung, strangers=any(not known.get(name) for name in bus.silent))

    def _looking(self, layer: Layer, layers: list[Layer], look: Look[T]) -> Question[T | None]:
        # The bus of a sandbox has PID 0 for programs outside of it: title and size identify their windows.
        for pid in (layer.window.pid, 0):
            if pid == 0 or all(one.pid != pid for one in self._applications.values()):  # new since the last look
                for ref in (yield from applications.of_process(list(self._applications), pid)):
                    yield from self._known(ref)
            for application in [one for one in self._applications.values() if one.pid == pid]:
                if application.scale is None:
                    yield from applications.matched_windows(application, layers)
                asked = look(Lookup(application, layer, layers, self._seen, self._elements))
                found = yield from scaled(asked, application.scale or 1)
                if found is not None or pid != 0:
                    return found
        return None


def _may_be_seen(application: Application, layers: Sequence[Layer], parts: Mapping[WindowId, list[Region]]) -> bool:
    """Whether any window of an application may be visible; True if its windows are unknown."""
    own = [layer for layer in layers if layer.window.pid == application.pid and not layer.backdrop]
    return any(parts.get(layer.window.id) for layer in own) if own else True
