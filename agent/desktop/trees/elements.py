"""The elements of a desktop, read from its accessibility trees.

Which window is on top comes from the windows, never from a tree: a window's nodes claim to be showing even if another
window covers them.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import psutil

from agent.core.geometry import DesktopPoint, Region, around
from agent.desktop.protocol.elements import FieldText, NoAnswerError
from agent.desktop.protocol.windows import Layer, WindowId, Windows
from agent.desktop.trees import applications, gtk4, shape
from agent.desktop.trees.applications import Application
from agent.desktop.trees.bus import Bus, Limits, Question, together
from agent.desktop.trees.contents import clicked, fill, trust
from agent.desktop.trees.lookup import Lookup
from agent.desktop.trees.shape import Draft, Seen, Tree, clickable_sections, drafts
from agent.desktop.trees.tree import Node, Ref, matched, move, walked
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


class AtspiElements:
    """The elements of a desktop.

    `find_bus` returns the possible addresses of the accessibility bus, the best first; it may raise
    EnvironmentLacksError. `close` closes `windows` too. `pid_here` translates a PID from the bus into our PID
    namespace.
    """

    def __init__(
        self,
        find_bus: Callable[[], Iterator[str]],
        windows: Windows,
        monitors: Sequence[Region],
        pid_here: Callable[[int], int] = lambda pid: pid,
    ) -> None:
        self._find_bus = find_bus
        self._windows = windows
        self._monitors = tuple(monitors)
        self._number_here = pid_here
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
        windows = tuple(shape.shown_window(layer, active.id if active else None) for layer in ordinary)
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

    def focused(self) -> Element | None:
        return self._looked_at_active(Lookup.focused)

    def field_text(self) -> FieldText | None:
        return self._looked_at_active(Lookup.text)

    def fields(self) -> list[str] | None:
        return self._looked_at_active(Lookup.fields)

    def dialogs(self) -> list[str] | None:
        return self._looked_at_active(Lookup.dialogs)

    def default_button(self) -> Element | None:
        return self._looked_at_active(Lookup.default_button)

    def page(self) -> str | None:
        return self._looked_at_active(Lookup.page)

    def _looked_at_active(self, look: Look[T]) -> T | None:
        began, active = time.monotonic(), self._windows.active()
        return self._looked(active.id if active else None, self._windows.layers(), look, began + _AT)

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
                self._bus = Bus(address, _LIMITS, self._is_busy)
                return self._bus
            except EnvironmentLacksError as error:
                problem = error
        raise problem

    def _is_busy(self, name: str) -> bool:
        pids = [one.pid for ref, one in self._applications.items() if ref[0] == name and one.pid is not None]
        with suppress(psutil.Error):
            return any(psutil.Process(self._number_here(pid)).status() == psutil.STATUS_RUNNING for pid in pids)
        return False

    def _drop(self, reason: str) -> None:
        """Note that the connection was lost or failed, and when to try again."""
        if self._bus is not None:
            self._bus.close()
        self._bus, self._seen = None, []
        self._failed = reason, time.monotonic() + _RETRY
        self._applications.clear()

    def _read(self, bus: Bus, layers: list[Layer]) -> list[Seen]:
        """Read all applications. Known ones are read while the list of applications is still being fetched."""
        parts = shape.visible_parts(layers, self._monitors)
        before = list(self._applications)
        readings = [self._reading(ref, layers, parts) for ref in before]
        refs, *met = bus.ask_all([applications.registered(), *readings])
        if refs is None:
            raise EnvironmentLacksError("Nobody keeps the list of accessible applications.", "Log out and in again.")
        self._applications = {ref: one for ref, one in self._applications.items() if ref in refs}
        fresh = [self._reading(ref, layers, parts) for ref in refs if ref not in before]
        met += bus.ask_all(fresh) if fresh else []
        return [seen for found in met for seen in found or ()]

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
        if application.is_gtk4:
            questions: list[Question[Any]] = [
                gtk4.cached(application.ref, application.unfolded, frozenset(application.hollow))
            ]
        else:
            questions = [self._nodes(application, ref) for ref in application.shown]
        frames, *read = yield from together(applications.windows_of(application), *questions)
        found = applications.matching(frames, layers, application.pid)
        shown = [frame for frame in frames if frame.ref in found and parts.get(found[frame.ref].window.id)]
        if application.is_gtk4:
            application.hollow.clear()
            cache = read[0] or {}
            windows = yield from together(
                *(self._placing(application, frame, found[frame.ref], layers, cache) for frame in shown)
            )
        else:
            known = dict(zip(application.shown, read, strict=True))
            fresh = [frame.ref for frame in shown if frame.ref not in known]
            more = yield from together(*(self._nodes(application, ref) for ref in fresh))
            known |= dict(zip(fresh, more, strict=True))
            windows = []
            for frame in shown:
                layer, nodes = found[frame.ref], known[frame.ref]
                origin = applications.origin_of(application, layer, frame)
                move(nodes, *origin)
                windows.append(Seen(application, layer, Tree(frame.ref, nodes), [], origin, {}))
        application.shown = tuple(frame.ref for frame in shown)
        yield from together(*(self._drafting(seen, layers, parts[seen.layer.window.id]) for seen in windows))
        return windows

    def _placing(
        self, application: Application, frame: Node, layer: Layer, layers: Sequence[Layer], cache: dict[Ref, Node]
    ) -> Question[Seen]:
        origin = applications.origin_of(application, layer, frame)
        menus = [one.outer for one in layers if one.helper and one.client == layer.client]
        nodes, moved = yield from gtk4.placed(cache, frame.ref, *origin, menus)
        application.hollow |= gtk4.hollow_lists(nodes)
        return Seen(application, layer, Tree(frame.ref, nodes, class_names=True), [], origin, moved)

    def _nodes(self, application: Application, frame: Ref) -> Question[list[Node]]:
        if application.matches:
            nodes = yield from matched(frame)
            if nodes is not None:
                return nodes
            application.matches = False
        return (yield from walked(frame))

    def _drafting(self, seen: Seen, layers: list[Layer], parts: list[Region]) -> Question[None]:
        screen = around(self._monitors)
        taking: list[Ref] = []
        if seen.application.is_browser:
            taking = yield from clicked(clickable_sections(seen.tree))
        window = seen.layer.box
        found = drafts(seen.tree, window, screen, taking)
        seen.drafts = self._on_top(seen, found, layers, parts)
        filled = fill(seen.tree, [draft for draft in seen.drafts if not draft.offscreen])
        yield from together(filled, self._trusting(seen))

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
        free = parts == [seen.layer.box] and not helpers
        asked = [] if free else [draft for draft in found if not draft.offscreen]
        tops = dict(
            zip(map(id, asked), shape.tops_at(self._windows, layers, [draft.center for draft in asked]), strict=True)
        )

        def stays(draft: Draft) -> bool:
            if draft.offscreen or free:
                return True
            top = tops[id(draft)]
            if top in helpers and top != own:
                return draft.popup is not None
            return top == own

        for draft in asked:
            if not stays(draft) and draft.popup is None:
                part = shape.largest_part(
                    draft.box, parts
                )  # a part may be uncovered, as when a dialog covers half a text
                if part is not None:
                    draft.box, tops[id(draft)] = part, own
        return [draft for draft in found if stays(draft)]

    def _lacks(self, bus: Bus, layers: Sequence[Layer]) -> str:
        parts = shape.visible_parts(layers, self._monitors)
        left_out = {seen.layer.window.id for seen in self._seen}
        unread = [
            layer
            for layer in layers
            if not (layer.helper or layer.backdrop or layer.window.id in left_out) and parts.get(layer.window.id)
        ]
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
                found = yield from look(Lookup(application, layer, layers, self._seen, self._elements))
                if found is not None or pid != 0:
                    return found
        return None


def _may_be_seen(application: Application, layers: Sequence[Layer], parts: Mapping[WindowId, list[Region]]) -> bool:
    """Whether any window of an application may be visible; True if its windows are unknown."""
    own = [layer for layer in layers if layer.window.pid == application.pid and not layer.backdrop]
    return any(parts.get(layer.window.id) for layer in own) if own else True
