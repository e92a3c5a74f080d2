"""Which element has the keyboard focus: of made-up applications on a bus of their own, and of real ones."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from stubs.accessible import SHOWN, AccessibilityBus, Application, FakeWindows, Thing, accessibility_bus, layer, window
from stubs.display import wait_until

from agent.core.actions import TypeText
from agent.core.geometry import Region
from agent.desktop.guard.reach import Reach
from agent.desktop.guard.surroundings import DesktopSurroundings
from agent.desktop.protocol.elements import NoAnswerError
from agent.desktop.trees.elements import AtspiElements
from agent.desktop.trees.roles import EDITABLE
from agent.desktop.x11.desktop import X11Desktop
from agent.desktop.x11.windows import open_windows
from agent.safety.policy import Policy
from agent.safety.stop import StopSwitch
from agent.sandbox.desktop import Sandbox

pytestmark = pytest.mark.slow

FOCUSABLE = SHOWN | 1 << 11
FOCUSED = FOCUSABLE | 1 << 12
PROBE = Path(__file__).resolve().parents[1] / "stubs/qt_probe.py"


class TwoWindows(FakeWindows):
    """Two windows of this process, of which the second is under the first, but active."""

    def __init__(self) -> None:
        super().__init__(layer(0, (0, 0, 400, 300), "Other"), layer(1, (0, 0, 500, 400)))

    def active(self):
        return self.shown[1].window


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[AccessibilityBus]:
    monkeypatch.setattr("agent.desktop.trees.elements._AT", 20.0)  # a busy machine must not change what is found
    with accessibility_bus() as made:
        yield made


def made(bus: AccessibilityBus) -> AtspiElements:
    return AtspiElements(lambda: iter([bus.address]), TwoWindows(), [Region(0, 0, 1000, 800)])  # type: ignore[arg-type]


def shown(bus: AccessibilityBus, toolkit: str) -> tuple[AtspiElements, Application, Thing, Thing]:
    """A window with a name and a password to fill in, and another with the focus in it, as the last time it had it."""
    name = Thing("entry", "Name", (10, 10, 100, 20), states=FOCUSED, text="Ada")
    password = Thing("password text", "Password", (10, 40, 100, 20), states=FOCUSABLE, text="hunter2")
    form = window(Thing("panel", "", (0, 0, 400, 300), [name, password]), box=(0, 0, 500, 400))
    other = window(Thing("entry", "Search", (10, 10, 100, 20), states=FOCUSED), name="Other")
    application = bus.add(other, form, toolkit=toolkit)
    return made(bus), application, name, password


@pytest.mark.parametrize("toolkit", ["gtk", "GTK", "Qt"])
@pytest.mark.parametrize("looked", [True, False])
def test_the_focus_is_that_of_the_active_window_as_it_is_now(bus: AccessibilityBus, toolkit: str, looked: bool) -> None:
    elements, application, name, password = shown(bus, toolkit)
    if looked:
        elements.outline()
    application.asked.clear()
    before = elements.focused()
    assert before is not None
    assert (before.role, before.name, before.value, "focused" in before.states) == ("entry", "Name", None, True)
    name.states, password.states = FOCUSABLE, FOCUSED
    found = elements.focused()
    assert found is not None
    assert (found.role, found.name, found.window, found.app) == ("password text", "Password", "Window", "App")
    assert found.box == Region(10, 40, 100, 20)
    assert "GetText" not in application.asked
    password.states = FOCUSABLE
    assert elements.focused() is None


def test_a_field_that_shows_what_is_typed_is_one_no_more_where_it_hides_it(bus: AccessibilityBus) -> None:
    elements, _, name, _ = shown(bus, "gtk")
    elements.outline()
    name.role = "password text"
    found = elements.focused()
    assert found is not None
    assert (found.role, found.value) == ("password text", None)


def test_a_page_has_the_focus_only_where_no_field_in_it_does(bus: AccessibilityBus) -> None:
    field = Thing("password text", "PIN", (10, 10, 100, 20), states=FOCUSED)
    page = Thing("document web", "Page", (0, 0, 500, 400), [field], states=FOCUSED)
    bus.add(window(page, box=(0, 0, 500, 400)))
    elements = made(bus)
    found = elements.focused()
    assert found is not None and found.name == "PIN"
    field.states = FOCUSABLE
    found = elements.focused()
    assert found is not None and found.name == "Page"


def test_what_the_cache_says_of_the_focus_is_asked_again(bus: AccessibilityBus) -> None:
    elements, _, name, password = shown(bus, "GTK")
    name.states, name.cached = FOCUSABLE, FOCUSED
    password.states = FOCUSED
    found = elements.focused()
    assert found is not None and found.name == "Password"


@pytest.mark.parametrize("toolkit", ["gtk", "GTK", "Qt"])
def test_an_application_that_hangs_or_talks_nonsense_has_no_known_focus(
    bus: AccessibilityBus, toolkit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    elements, application, _, _ = shown(bus, toolkit)
    for member in ("GetMatches", "GetItems", "GetState"):
        application.broken[member] = ("s", ("nothing",))
    assert elements.focused() is None
    application.silent = True
    monkeypatch.setattr("agent.desktop.trees.elements._AT", 0.2)
    with pytest.raises(NoAnswerError):
        elements.focused()


def test_an_application_that_came_after_the_first_look_is_known(bus: AccessibilityBus) -> None:
    elements = made(bus)
    assert elements.focused() is None
    shown(bus, "gtk")
    found = elements.focused()
    assert found is not None and found.name == "Name"


@pytest.mark.e2e
@pytest.mark.timeout(120)
@pytest.mark.parametrize("command", [("zenity", "--password"), ("/usr/bin/python3", str(PROBE))])
def test_a_field_for_a_password_that_nobody_clicked_asks(sandbox: Sandbox, command: tuple[str, ...]) -> None:
    desktop = X11Desktop(StopSwitch(), None, sandbox.environ)
    around = DesktopSurroundings(
        desktop.screen,
        desktop.applications,
        Reach(open_windows),
        open_elements=desktop.open_elements,
    )
    policy, action = Policy.load("risky"), TypeText("hello")
    assert policy.question(action, around.of(action)) is None
    silent = subprocess.DEVNULL
    subprocess.Popen(command, env=sandbox.environ, stdin=silent, stdout=silent, stderr=silent)

    def asked() -> bool:
        """Whether it is asked about what would be typed; if not, the next field gets the focus."""
        situation = around.of(action)
        question = policy.question(action, situation)
        if question is None and situation.elements:
            subprocess.run(["xdotool", "key", "Tab"], env=sandbox.environ, check=True, timeout=20)
        return question is not None and "a field for a password" in question.reason

    try:
        wait_until(asked, "the policy asks", 60)
    finally:
        around.close()
        desktop.close()


def test_the_fields_of_a_window_are_read_without_its_password(bus: AccessibilityBus) -> None:
    elements, _, name, password = shown(bus, "gtk")
    for field in (name, password):
        field.states = field.states | 1 << EDITABLE
    read = elements.fields()
    assert read == ["Ada"]
