"""Calls to an accessibility tree, and the nodes in the replies. Limits the number of nodes and the length of texts."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from agent.core.geometry import Region
from agent.desktop.trees.bus import Array, Body, Call, Question, together
from agent.desktop.trees.roles import MENU_BAR, MENU_ITEM, SHOWING, TABLES, VISIBLE, has

#: A node: the application's name on the bus, and the object's path there.
Ref: TypeAlias = tuple[str, str]

T = TypeVar("T")
_A11Y = "org.a11y.atspi."
_EXTENTS, _HIT = "GetExtents", "GetAccessibleAtPoint"
_PROPERTIES = "org.freedesktop.DBus.Properties"
ROOT = "/org/a11y/atspi/accessible/root"
NULL = "/org/a11y/atspi/null"
SCREEN, WINDOW = 0, 1  # what coordinates are relative to
#: Nodes read per window, and children per node: the largest window measured shows 270 nodes.
MOST_NODES = 3000
_MOST_CHILDREN = 400
DEEPEST = 60
#: No screen is larger. Toolkits return coordinates far beyond this for "nowhere".
_FARTHEST = 65536
#: Characters of a name that are kept; it is cut much shorter when it is shown.
_LONGEST_NAME = 400


@dataclass(slots=True)
class Node:
    """One node of a tree."""

    ref: Ref
    role: int
    name: str
    states: int
    box: Region | None = None  # on the screen, in desktop pixels; None if it has none
    parent: Ref | None = None
    children: list[Ref] = field(default_factory=list)  # empty unless they were requested
    count: int = 0  # the number of children that it claims
    description: str = ""  # an explanation, such as the text of its tooltip

    @property
    def showing(self) -> bool:
        """Whether the node claims to be visible; another window may still cover it."""
        return has(self.states, SHOWING) and has(self.states, VISIBLE)


def method(ref: Ref, interface: str, member: str, returns: str, signature: str = "", *body: Any) -> Call:
    """Build a call of a method of one of AT-SPI's interfaces."""
    return Call(*ref, _A11Y + interface, member, returns, signature, body)


def getter(ref: Ref, interface: str, name: str) -> Call:
    """Build a call for one property."""
    return Call(*ref, _PROPERTIES, "Get", "v", "ss", (_A11Y + interface, name))


def extents(ref: Ref, coordinates: int) -> Call:
    """Build a call for a node's box."""
    return method(ref, "Component", _EXTENTS, "(iiii)", "u", coordinates)


def hit(ref: Ref, x: int, y: int, coordinates: int) -> Call:
    """Build a call for the descendant of a node at a point."""
    return method(ref, "Component", _HIT, "(so)", "iiu", x, y, coordinates)


def scaled(question: Question[T], scale: int) -> Question[T]:
    """Ask an application that counts `scale` pixels as one: convert the points of hit tests, and the boxes."""
    if scale == 1:
        return (yield from question)
    replies: list[Body] | None = None
    while True:
        try:
            calls = next(question) if replies is None else question.send(replies)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # a generator's result is untyped here
        asked = [
            call._replace(body=(call.body[0] // scale, call.body[1] // scale, call.body[2]))
            if call.member == _HIT
            else call
            for call in calls
        ]
        found = yield asked
        replies = [
            (tuple(side * scale for side in reply[0]),) if reply and call.member == _EXTENTS else reply
            for call, reply in zip(calls, found, strict=True)
        ]


def text_between(ref: Ref, first: int, last: int) -> Call:
    """Build a call for a part of a node's text."""
    return method(ref, "Text", "GetText", "s", "ii", first, last)


def children(ref: Ref) -> Call:
    """Build a call for a node's children."""
    return method(ref, "Accessible", "GetChildren", "a(so)")


def below(ref: Ref, most: int, *states: int, role: int | None = None) -> Call:
    """Build a call for the nodes below a node that have all of these states, for toolkits with ATK's bridge."""
    # The match rule: no attributes; one role, or any (four zero words); no interfaces; not inverted.
    bits = struct.pack("<QQ", *divmod(0 if role is None else 1 << role, 1 << 64)[::-1])
    roles = Array(struct.unpack("<4i", bits))
    wanted = Array(struct.unpack("<2i", struct.pack("<Q", sum(1 << state for state in states))))
    rule = (wanted, 1, Array(()), 1, roles, 2, Array(()), 1, False)
    signature = "(aiia{ss}iaiiasib)uib"
    return method(ref, "Collection", "GetMatches", "a(so)", signature, rule, 1, most, True)


def variant(body: Body, kind: str) -> Any:
    """Return the value of a property; None if it has another type."""
    if not body:
        return None
    signature, value = body[0]
    return value if signature == kind else None


def refs(body: Body, most: int = _MOST_CHILDREN) -> list[Ref]:
    """Return the nodes in a reply, without null references and duplicates."""
    if not body:
        return []
    return [ref for ref in dict.fromkeys(map(tuple, body[0][:most])) if ref[1] != NULL]


def states_of(body: Body) -> int:
    """Return the states in a reply as a bit set."""
    words = body[0][:2] if body else ()
    return sum(int(word) << 32 * index for index, word in enumerate(words))


def region_of(body: Body, left: int = 0, top: int = 0) -> Region | None:
    """Return the box in a reply, moved by an origin; None if it cannot be on any screen."""
    if not body:
        return None
    x, y, width, height = body[0]
    if not (0 < width < _FARTHEST and 0 < height < _FARTHEST and abs(x) < _FARTHEST and abs(y) < _FARTHEST):
        return None
    return Region(x + left, y + top, width, height)


def move(nodes: Iterable[Node], right: int, down: int) -> None:
    """Convert the boxes of nodes from window to screen coordinates, in place."""
    for node in nodes if right or down else ():
        if node.box is not None:
            node.box = node.box.moved(right, down)


def text_of(pair: Any) -> str:
    """Return the text in a variant, cut; "" if it is no text."""
    return str(pair[1][:_LONGEST_NAME]) if pair and pair[0] == "s" else ""


def details(nodes: Iterable[Ref], properties: Sequence[str] = ("Name", "Parent")) -> Question[list[Node]]:
    """Read these nodes in their order, except nodes that do not report role and states.

    If `properties` is empty, one call reads all properties. Use that only with ATK's bridge: Qt 5.15 crashes.
    """
    made = yield from together(*(_node(ref, properties) for ref in nodes))
    return [node for node in made if node is not None]


def _node(ref: Ref, properties: Sequence[str]) -> Question[Node | None]:
    all_properties = Call(*ref, _PROPERTIES, "GetAll", "a{sv}", "s", (f"{_A11Y}Accessible",))
    *replies, role, states, box = yield [
        *([getter(ref, "Accessible", name) for name in properties] or [all_properties]),
        method(ref, "Accessible", "GetRole", "u"),
        method(ref, "Accessible", "GetState", "au"),
        extents(ref, SCREEN),
    ]
    if role is None or states is None:
        return None
    if properties:
        values = {name: reply[0] for name, reply in zip(properties, replies, strict=True) if reply}
    else:
        values = replies[0][0] if replies[0] else {}
    parent, count = values.get("Parent", ("", None)), values.get("ChildCount", ("", 0))
    return Node(
        ref, role[0], text_of(values.get("Name")), states_of(states), region_of(box),
        parent=tuple(parent[1]) if parent[0] == "(so)" else None,
        count=count[1] if count[0] in ("i", "u") else 0,
        description=text_of(values.get("Description")),
    )  # fmt: skip


def matched(frame: Ref) -> Question[list[Node] | None]:
    """Return all visible nodes of a window in tree order; None if the toolkit does not use ATK's bridge."""
    [found] = yield [below(frame, MOST_NODES, SHOWING, VISIBLE)]
    if found is None:
        return None
    nodes = yield from details((ref for ref in refs(found, MOST_NODES) if ref != frame), ())
    # Chromium reports the selected choice of a closed combo box as showing, but not the menu that contains it.
    shown = {node.ref for node in nodes}
    return [node for node in nodes if node.role != MENU_ITEM or node.parent in shown]


def walked(frame: Ref, most: int = MOST_NODES) -> Question[list[Node]]:
    """Return all visible nodes of a window by walking down from the top. Below a hidden node, all are hidden (Qt)."""
    found: dict[Ref, Node] = {}
    level, seen = [frame], {frame}
    for _ in range(DEEPEST):
        known = yield from details(level, ("Name", "ChildCount"))
        found |= {node.ref: node for node in known}
        # Spreadsheets claim millions of children.
        closed = {node.ref for node in known if node.role in TABLES and node.count > _MOST_CHILDREN}
        open_ones = [node for node in known if (_is_shown(node) and node.ref not in closed) or node.ref == frame]
        replies = yield [children(node.ref) for node in open_ones]
        level = []
        for node, reply in zip(open_ones, replies, strict=True):
            node.children = [ref for ref in refs(reply) if ref not in seen]
            seen.update(node.children)
            level += node.children
        level = level[: most - len(found)]
        if not level:
            break
    for node in found.values():
        for child in node.children:
            if child in found:
                found[child].parent = node.ref
    return [node for ref, node in found.items() if ref != frame and _is_shown(node)]


def _is_shown(node: Node) -> bool:
    return node.showing or node.role == MENU_BAR
