"""What GTK 4 tells of its windows, as GTK 4.8 told it in GNOME Settings 43."""

from typing import Any

import pytest

from agent.core.geometry import Region
from agent.desktop.protocol.windows import Layer, Window
from agent.desktop.trees import gtk4
from agent.desktop.trees.applications import Application, windows_of
from agent.desktop.trees.bus import Call
from agent.desktop.trees.contents import trust
from agent.desktop.trees.roles import numbers
from agent.desktop.trees.shape import Draft, Seen, Tree, drafts
from agent.desktop.trees.tree import NULL, Node, Ref

pytestmark = pytest.mark.slow

WINDOW = Region(0, 0, 980, 640)
LAYER = Layer(Window(1, "Settings", "settings", 1), WINDOW, WINDOW)
#: Enabled, sensitive and visible: GTK 4.8 never says that something is showing.
STATES = 1 << 8 | 1 << 24 | 1 << 30


def role(name: str) -> int:
    [number] = numbers(name)
    return number


def node(path: str, kind: str, name: str = "", box: tuple[int, int, int, int] | None = None, parent: str = "") -> Node:
    region = Region(*box) if box else None
    return Node(("app", path), role(kind), name, STATES, region, ("app", parent), [], 0)


def row(*inside: Node) -> Tree:
    return Tree(("app", "frame"), [node("combo", "combo box", "Screen Blank", (371, 118, 538, 51), "frame"), *inside],
                class_names=True)  # fmt: skip


def answer(tree: Tree, draft: Draft, at: dict[tuple[int, int], Ref] | None) -> bool:
    """Whether an element is trusted when the application answers so for points of its window, or is silent."""
    question = trust(Seen(Application(("app", "root"), "settings", 1, "GTK"), LAYER, tree, [], (0, 0), {}), [draft])
    calls = next(question)
    try:
        while True:
            calls = question.send(
                [None if at is None else (at.get(tuple(call.body[:2]), ("", NULL)),) for call in calls]
            )
    except StopIteration:
        return draft.trusted


def test_a_closed_combo_box_holds_the_choice_that_it_shows() -> None:
    tree = row(
        node("subtitle", "label", "Turns the screen off after a period of inactivity.", None, "combo"),
        node("list", "list", "GtkListView", (798, 132, 77, 22), "combo"),
        node("shown", "list item", "", (800, 134, 73, 18), "list"),
        node("text", "label", "5 minutes", None, "shown"),
    )
    [combo] = drafts(tree, WINDOW, WINDOW)
    assert (combo.name, combo.value) == ("Screen Blank", "5 minutes")


def test_names_are_told_once() -> None:
    names = {"_Clear History… Clear History…": "Clear History…", "Open Open": "Open", "Open File": "Open File"}
    for told, name in names.items():
        [button] = drafts(row(node("b", "push button", told, (10, 10, 80, 20), "frame")), WINDOW, WINDOW)[1:]
        assert button.name == name


def test_a_switch_is_where_it_says_though_its_knob_is_no_node() -> None:
    tree = row(node("switch", "check box", "Do Not Disturb", (851, 92, 44, 22), "frame"))
    switch = drafts(tree, WINDOW, WINDOW)[1]
    beside_the_knob = {(x, y): ("app", "switch") for x in range(851, 895) for y in (*range(92, 99), *range(108, 114))}
    assert answer(tree, switch, beside_the_knob)  # type: ignore[arg-type]
    assert not answer(tree, switch, {}) and switch.tested


def test_silence_is_no_answer_to_whether_something_is_where_it_says() -> None:
    tree = row(node("switch", "check box", "Do Not Disturb", (851, 92, 44, 22), "frame"))
    switch = drafts(tree, WINDOW, WINDOW)[1]
    assert not answer(tree, switch, None)
    assert not switch.tested


def test_what_a_closed_popover_holds_is_not_told() -> None:
    known = {
        one.ref: one
        for one in (
            node("frame", "frame"),
            node("popover", "filler", "", None, "frame"),
            node("content", "filler", "GtkPopoverContent", None, "popover"),
            node("item", "list item", "5 minutes", None, "content"),
        )
    }
    for one in known.values():
        if one.parent in known:
            known[one.parent].children.append(one.ref)
    question = gtk4.placed(known, ("app", "frame"), 0, 0)
    try:
        calls = next(question)
        question.send([None for _ in calls])
    except StopIteration as end:
        told, _ = end.value
    assert [one.ref[1] for one in told] == ["popover"]


class Cached:
    """An application that creates a node when its parent is asked for its children, as GTK 4.8 does."""

    def __init__(self) -> None:
        self.created: dict[str, tuple[str, str, int]] = {}  # role, parent, and the number of children that it claims
        self.children: dict[str, dict[str, tuple[str, str, int]]] = {}
        self.asked: list[str] = []

    def look(self) -> set[str]:
        """Return the nodes that a look finds. `asked` holds what it asked for."""
        self.asked.clear()
        question = gtk4.cached(("app", "root"))
        calls = next(question)
        try:
            while True:
                calls = question.send([self.reply(call) for call in calls])
        except StopIteration as end:
            return {ref[1] for ref in end.value}

    def reply(self, call: Call) -> Any:
        self.asked.append(call.member if call.member == "GetItems" else call.path)
        if call.member == "GetItems":
            return (
                [
                    (("app", path), NULL, ("app", parent), 0, count, [], "", role(kind), "", [STATES, 0])
                    for path, (kind, parent, count) in self.created.items()
                ],
            )
        found = self.children.get(call.path, {})
        self.created |= found
        return ([("app", path) for path in found],)


def test_what_a_page_in_the_making_lacks_is_asked_for_at_every_look() -> None:
    application = Cached()
    application.created = {"page": ("filler", "root", 1)}
    for _ in range(2):
        assert application.look() == {"page"}
        assert application.asked == ["GetItems", "page"]
    application.children = {"page": {"box": ("filler", "page", 1)}, "box": {"button": ("push button", "box", 0)}}
    assert application.look() == {"page", "box", "button"}
    assert application.asked == ["GetItems", "page", "box", "button", "GetItems"]
    assert application.look() == {"page", "box", "button"}
    assert application.asked == ["GetItems"]


def test_a_list_is_asked_for_new_rows_at_every_look_because_it_claims_as_many_as_before() -> None:
    application = Cached()
    application.created = {"list": ("list", "root", 1), "old": ("list item", "list", 0)}
    assert application.look() == {"list", "old"}
    application.children = {"list": {"old": ("list item", "list", 0), "new": ("list item", "list", 0)}}
    assert application.look() == {"list", "old", "new"}


def windows_with(kind: str, name: str, toolkit: str, states: int = STATES) -> list[str]:
    """The names of the windows of an application whose root has one child, as it tells itself."""
    told: dict[str, Any] = {
        "GetChildren": ([("app", "dialog")],),
        "Get": (("s", name),),
        "GetRole": (role(kind),),
        "GetState": ((states, 0),),
        "GetExtents": ((0, 0, 400, 300),),
    }

    def reply(call: Call) -> Any:
        return told[call.member]

    question = windows_of(Application(("app", "root"), "editor", 1, toolkit))
    calls = next(question)
    try:
        while True:
            calls = question.send([reply(call) for call in calls])
    except StopIteration as end:
        return [node.name for node in end.value]


def test_a_dialog_that_gtk_4_8_calls_a_filler_is_a_window() -> None:
    assert windows_with("filler", "Save As", "GTK") == ["Save As"]


@pytest.mark.parametrize(
    ("kind", "name", "toolkit", "states"),
    [("filler", "Save As", "gtk", STATES), ("filler", "", "GTK", STATES), ("filler", "Save As", "GTK", 1 << 8)],
)
def test_other_fillers_are_none(kind: str, name: str, toolkit: str, states: int) -> None:
    assert windows_with(kind, name, toolkit, states) == []
