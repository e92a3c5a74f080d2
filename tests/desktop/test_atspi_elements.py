"""What is told of made-up applications on a bus of their own."""

from collections.abc import Iterator

import pytest
from stubs.accessible import SHOWN, AccessibilityBus, FakeWindows, Thing, accessibility_bus, layer, window

from agent.core.geometry import DesktopPoint, Region
from agent.desktop.protocol.windows import Layer
from agent.desktop.trees.elements import AtspiElements
from agent.screen.outline import Element, Outline

SCREEN = Region(0, 0, 1000, 800)


@pytest.fixture
def bus() -> Iterator[AccessibilityBus]:
    with accessibility_bus() as made:
        yield made


def elements(bus: AccessibilityBus, *layers: Layer) -> AtspiElements:
    windows = FakeWindows(*(layers or (layer(1, (0, 0, 400, 300)),)))
    return AtspiElements(lambda: iter([bus.address]), windows, [SCREEN])  # type: ignore[arg-type]


def named(outline: Outline) -> dict[str, Element]:
    return {element.name: element for element in outline.elements}


BUTTON = Thing("push button", "Save", (10, 20, 80, 30))


@pytest.mark.parametrize("toolkit", ["gtk", "Qt"])
def test_a_button_is_told_with_its_place_and_window(bus: AccessibilityBus, toolkit: str) -> None:
    bus.add(window(Thing(children=[BUTTON], box=(0, 0, 400, 300))), toolkit=toolkit)
    outline = elements(bus).outline()
    [button] = outline.elements
    assert (button.role, button.name, button.box) == ("push button", "Save", Region(10, 20, 80, 30))
    assert (button.window, button.app, button.trusted, button.source) == ("Window", "App", True, "tree")
    assert outline.lacks == ""
    assert outline.size == SCREEN.size


def test_names_come_from_labels_and_from_the_only_text_below(bus: AccessibilityBus) -> None:
    label = Thing("label", "Your name", (10, 100, 60, 20))
    field = Thing("entry", "", (80, 100, 100, 20), text="Ada", labelled_by=label, states=SHOWN | 1 << 7)
    row = Thing("list item", "", (10, 200, 300, 30), [Thing("label", "Power", (12, 202, 50, 20))])
    bus.add(window(label, field, row))
    told = {element.role: element for element in elements(bus).outline().elements}
    assert (told["entry"].name, told["entry"].value) == ("Your name", "Ada")
    assert "editable" in told["entry"].states
    assert told["list item"].name == "Power"


def test_a_password_is_never_asked_for(bus: AccessibilityBus) -> None:
    application = bus.add(window(Thing("password text", "Password", (10, 10, 100, 20), text="hunter2")))
    [field] = elements(bus).outline().elements
    assert (field.role, field.value) == ("password text", None)
    assert "GetText" not in application.asked


def test_sliders_tell_their_number_and_limits(bus: AccessibilityBus) -> None:
    bus.add(window(Thing("slider", "Volume", (10, 10, 100, 20), value=(30.0, 0.0, 150.0))))
    [slider] = elements(bus).outline().elements
    assert (slider.value, slider.limits) == ("30", (0.0, 150.0))


def test_what_another_window_covers_is_left_out(bus: AccessibilityBus) -> None:
    bus.add(window(BUTTON, Thing("push button", "Free", (300, 250, 60, 30))))
    above = layer(2, (0, 0, 200, 200), "Other", pid=1)
    outline = elements(bus, above, layer(1, (0, 0, 400, 300))).outline()
    assert [element.name for element in outline.elements] == ["Free"]
    assert "“Other” is not known" in outline.lacks


def test_a_box_that_is_not_where_it_says_is_not_trusted(bus: AccessibilityBus) -> None:
    bar = Thing("tool bar", "", (0, 0, 400, 40), [BUTTON], hit=Thing("push button", "Open", (10, 20, 80, 30)))
    bus.add(window(bar))
    assert not named(elements(bus).outline())["Save"].trusted


def test_what_is_scrolled_out_is_told_as_such(bus: AccessibilityBus) -> None:
    rows = [Thing("list item", f"Row {index}", (10, 50 * index, 300, 40)) for index in range(9)]
    pane = Thing("scroll pane", "", (0, 0, 400, 200), [Thing("list", "Rows", (0, 0, 400, 450), rows)])
    bus.add(window(pane))
    told = named(elements(bus).outline())
    assert told["Row 1"].trusted and "offscreen" not in told["Row 1"].states
    assert not told["Row 7"].trusted and "offscreen" in told["Row 7"].states
    assert told["Row 1"].parent == told["Rows"].id


def test_a_hung_application_hides_no_other_and_is_named(bus: AccessibilityBus) -> None:
    bus.add(window(BUTTON))
    told = elements(bus)
    assert len(told.outline().elements) == 1
    bus.add(name="hung").silent = True
    hung = told.outline()
    assert [element.name for element in hung.elements] == ["Save"]
    bus.applications[0].silent = True
    silent = told.outline()
    assert silent.elements == ()
    assert "“Window” did not answer in time" in silent.lacks
    before = len(bus.applications[0].asked)
    assert told.outline().elements == ()  # it is left alone for a while
    assert len(bus.applications[0].asked) == before


def test_no_bus_is_said_and_not_waited_for() -> None:
    told = AtspiElements(lambda: iter(["unix:path=/nowhere/bus"]), FakeWindows(), [SCREEN])  # type: ignore[arg-type]
    assert told.outline().lacks
    assert told.at(DesktopPoint(1, 1)) is None


def test_names_of_strangers_are_cut_and_cleaned(bus: AccessibilityBus) -> None:
    bus.add(window(Thing("push button", "\x1b[31mDe\u202elete\n" + "x" * 100_000, (10, 20, 80, 30))))
    [button] = elements(bus).outline().elements
    assert button.name.startswith("[31mDelete xxx")
    assert len(button.name) == 60


@pytest.mark.parametrize("toolkit", ["gtk", "Qt"])
def test_a_tree_that_holds_itself_ends(bus: AccessibilityBus, toolkit: str) -> None:
    loop = Thing("panel", "Loop", (0, 0, 100, 100))
    loop.children = [Thing("panel", "", (0, 0, 100, 100), [BUTTON])]
    made = window(loop)
    bus.add(made, toolkit=toolkit)
    if toolkit == "Qt":
        loop.children[0].children.append(made)
    loop.hit = loop.children[0]
    loop.children[0].hit = loop
    assert "Save" in named(elements(bus).outline())


def test_a_million_children_are_not_all_asked(bus: AccessibilityBus) -> None:
    table = Thing("table", "Cells", (0, 0, 300, 200), count=1_000_000, states=SHOWN | 1 << 31)
    application = bus.add(window(table, BUTTON), toolkit="Qt")
    assert "Save" in named(elements(bus).outline())
    assert application.asked.count("GetChildren") == 3  # of the application, the window and the button


@pytest.mark.parametrize(
    ("member", "answer"),
    [
        ("GetMatches", ("s", ("nothing",))),
        ("GetState", ("as", (["shown"],))),
        ("GetExtents", ("u", (7,))),
        ("GetRole", ("u", (4_000_000_000,))),
        ("GetAll", ("a{sv}", ({"Name": ("u", 5), "Parent": ("s", "x"), "ChildCount": ("s", "many")},))),
        ("GetAccessibleAtPoint", ("(so)", (("no name", "/x"),))),
        ("GetChildren", ("a(so)", ([("x", "/x")] * 5000,))),
        ("GetExtents", ("(iiii)", ((-(2**31), -(2**31), 2**31 - 1, 2**31 - 1),))),
    ],
)
def test_replies_of_the_wrong_kind_do_no_harm(
    bus: AccessibilityBus, member: str, answer: tuple[str, tuple[object, ...]]
) -> None:
    bus.add(window(BUTTON)).broken[member] = answer
    bus.add(window(Thing("push button", "Good", (410, 20, 80, 30)), name="Second", box=(400, 0, 400, 300)))
    told = elements(bus, layer(1, (0, 0, 400, 300)), layer(2, (400, 0, 400, 300), "Second"))
    assert "Good" in named(told.outline())


def test_what_a_click_would_hit_is_the_control_on_top(bus: AccessibilityBus) -> None:
    label = Thing("label", "Save", (15, 25, 40, 20))
    bus.add(window(Thing("push button", "Save", (10, 20, 80, 30), [label], states=SHOWN | 1 << 12)))
    told = elements(bus)
    found = told.at(DesktopPoint(20, 30))
    assert found is not None
    assert (found.role, found.name, found.states) == ("push button", "Save", frozenset({"focused"}))
    assert told.at(DesktopPoint(900, 700)) is None
    covered = elements(bus, layer(2, (0, 0, 100, 100), "Other", pid=1), layer(1, (0, 0, 400, 300)))
    covered.outline()
    assert covered.at(DesktopPoint(20, 30)) is None


#: Its window has 800 x 600 pixels, as GTK 3 draws it on X11 with a window scale of 2; it counts half as many.
SCALED = layer(1, (100, 80, 800, 600))


@pytest.mark.parametrize("looks_first", [False, True])
def test_an_application_that_counts_two_pixels_as_one_is_told_where_it_is(
    bus: AccessibilityBus, looks_first: bool
) -> None:
    upper, lower = Thing("push button", "Save", (60, 60, 80, 30)), Thing("push button", "Delete", (120, 120, 160, 60))
    bus.add(window(upper, lower, box=(50, 40, 400, 300)))
    told = elements(bus, SCALED)
    if looks_first:
        shown = named(told.outline())
        assert shown["Save"].box == Region(120, 120, 160, 60)  # where "Delete" would be, unscaled
        assert shown["Save"].trusted and shown["Delete"].trusted
    found = told.at(DesktopPoint(200, 150))
    assert found is not None and found.name == "Save"


def test_a_scale_that_changes_is_noticed(bus: AccessibilityBus) -> None:
    bus.add(window(BUTTON))
    windows = FakeWindows(layer(1, (0, 0, 400, 300)))
    told = AtspiElements(lambda: iter([bus.address]), windows, [SCREEN])  # type: ignore[arg-type]
    for scale in (1, 2, 1):
        windows.shown = [layer(1, (0, 0, scale * 400, scale * 300))]
        left, top, width, height = (scale * side for side in BUTTON.box)
        assert named(told.outline())["Save"].box == Region(left, top, width, height)


def test_a_part_of_a_page_that_takes_clicks_is_told(bus: AccessibilityBus) -> None:
    part = Thing("section", "", (10, 10, 100, 20), [Thing("static", "Pay", (12, 12, 30, 10))], action="click")
    bus.add(window(part, Thing("section", "", (10, 50, 100, 20), action="clickAncestor")), toolkit="Gecko")
    bus.applications[0].toolkit = "Gecko"
    told = elements(bus)
    [element] = told.outline().elements
    assert (element.role, element.name, "clickable" in element.states) == ("section", "Pay", True)
    found = told.at(DesktopPoint(80, 15))
    assert found is not None and "clickable" in found.states


def test_windows_of_one_title_and_size_are_told_apart_by_their_place(bus: AccessibilityBus) -> None:
    back, front = Thing("push button", "Back", (20, 60, 80, 20)), Thing("push button", "Front", (60, 100, 80, 20))
    bus.add(window(back, box=(0, 40, 400, 300)), window(front, box=(40, 80, 400, 300)))
    upper = layer(2, (40, 80, 400, 300))
    told = elements(bus, upper, layer(1, (0, 40, 400, 300)))
    found = told.at(DesktopPoint(100, 110))
    assert found is not None and found.name == "Front"


def test_a_closed_combo_box_is_told_as_itself_where_its_hidden_choices_are_found(bus: AccessibilityBus) -> None:
    box, hidden = (60, 20, 80, 20), SHOWN & ~(1 << 25 | 1 << 30)
    medium = Thing("menu item", "Medium", (60, 20, 80, 11), states=SHOWN | 1 << 23)
    large = Thing("menu item", "Large", (60, 20, 80, 11), states=hidden)
    menu = Thing("menu", "", (60, 20, 80, 11), [medium, large], states=hidden)
    bus.add(window(Thing("combo box", "Size", box, [menu], hit=large)), toolkit="Chromium")
    told = elements(bus)
    [combo] = told.outline().elements
    assert (combo.role, combo.name, combo.value, combo.trusted) == ("combo box", "Size", "Medium", True)
    found = told.at(DesktopPoint(100, 28))
    assert found is not None and (found.role, found.name) == ("combo box", "Size")
