"""The elements of real applications of three toolkits, in a sandbox."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from stubs.display import wait_until

from agent.core.geometry import DesktopPoint
from agent.desktop.programs import Started, host_pid
from agent.desktop.protocol.elements import NoAnswerError
from agent.desktop.x11.desktop import X11Desktop
from agent.safety.stop import StopSwitch
from agent.sandbox.desktop import Sandbox
from agent.screen.outline import Element, Outline

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(120)]
PROBE = Path(__file__).resolve().parents[1] / "stubs/qt_probe.py"


class Desk:
    """A sandbox, and the elements in it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.environ = sandbox, sandbox.environ
        self.desktop = X11Desktop(StopSwitch(), None, self.environ)
        elements = self.desktop.open_elements()
        assert elements is not None
        self.elements = elements
        self.outline = Outline(self.desktop.monitors[0].size, ())

    def start(self, *command: str, **environ: str) -> Started:
        """Inside, as the agent starts applications; our own probe, which is not to be seen from there, outside."""
        if str(PROBE) not in command:
            return self.sandbox.start(*command, **environ)
        silent = subprocess.DEVNULL
        return subprocess.Popen(command, env=self.environ | environ, stdin=silent, stdout=silent, stderr=silent)

    def look(self) -> Outline:
        self.outline = self.elements.outline()
        return self.outline

    def find(self, role: str, name: str = "") -> Element | None:
        """The element in the last outline, if it can be clicked."""
        return next(
            (one for one in self.outline.elements if one.role == role and name in ("", one.name) and one.trusted), None
        )

    def wait(self, role: str, name: str = "", holds: Callable[[Element], Any] = lambda _: True) -> Element:
        """The element, once it is there as wanted."""

        def there() -> bool:
            self.look()
            found = self.find(role, name)
            return found is not None and bool(holds(found))

        try:
            wait_until(there, f"{role} {name!r}", 60)
        except AssertionError:
            print(*self.outline.elements, self.outline.windows, self.outline.lacks, sep="\n")
            raise
        found = self.find(role, name)
        assert found is not None
        return found

    def hit(self, element: Element) -> Element:
        """What is at its middle, once that is told: an application that is busy does not answer in time."""
        found: list[Element] = []

        def told() -> bool:
            with suppress(NoAnswerError):
                found.extend(filter(None, [self.elements.at(middle(element))]))
            return bool(found)

        wait_until(told, "a hit is told", 30)
        return found[0]

    def click(self, element: Element) -> None:
        x, y = middle(element).rounded()
        command = ["xdotool", "mousemove", str(x), str(y), "click", "1"]
        subprocess.run(command, env=self.environ, check=True, timeout=20)


def middle(element: Element) -> DesktopPoint:
    box = element.box
    return DesktopPoint(box.left + box.width / 2, box.top + box.height / 2)


@pytest.fixture
def desk(sandbox: Sandbox) -> Iterator[Desk]:
    made = Desk(sandbox)
    yield made
    made.elements.close()
    made.desktop.close()


def test_buttons_are_where_they_say(desk: Desk) -> None:
    desk.start("galculator")
    desk.wait("toggle button", "9")
    for digit in "7304":
        button = desk.wait("toggle button", digit)
        hit = desk.hit(button)
        assert (hit.role, hit.name) == ("toggle button", digit)
        desk.click(button)
    wait_until(
        lambda: any(one.value and "7304" in one.value for one in desk.look().elements), "the display shows 7304", 30
    )


def test_menus_are_on_top_and_what_is_under_them_is_not(desk: Desk) -> None:
    desk.start("mousepad")
    desk.click(desk.wait("menu", "File"))
    item = desk.wait("menu item", "Save As...")
    assert desk.hit(item).name == "Save As..."


def test_a_covered_window_tells_nothing_of_what_is_covered(desk: Desk) -> None:
    desk.start("galculator")
    button = desk.wait("toggle button", "5")
    x, y = middle(button).rounded()
    # A window of another program over it, which tells nothing of itself.
    desk.start("xterm", "-geometry", f"80x30+{max(0, x - 200)}+{max(0, y - 200)}")

    def is_covered() -> bool:  # an outline may be taken before the window is there, or while a busy program is late
        outline = desk.look()
        return "5" not in {one.name for one in outline.elements} and "is not known" in outline.lacks

    wait_until(is_covered, "the button is covered", 30)
    assert desk.elements.at(middle(button)) is None


def test_a_stopped_application_keeps_nobody_else_from_telling(desk: Desk) -> None:
    stopped = desk.start("galculator")
    desk.wait("toggle button", "5")
    number = host_pid(stopped.pid, desk.environ)
    os.kill(number, signal.SIGSTOP)
    try:
        # The panel too may be late, on a busy machine.
        wait_until(lambda: {one.app for one in desk.look().elements} == {"Xfce4-panel"}, "the others tell", 30)
        assert "“galculator” did not answer in time" in desk.outline.lacks
    finally:
        os.kill(number, signal.SIGCONT)
    desk.wait("toggle button", "5")


def test_qt_tells_its_controls_and_their_states(desk: Desk) -> None:
    desk.start("/usr/bin/python3", str(PROBE))
    box = desk.wait("check box", "Check")
    assert "checked" not in box.states
    told = {one.role: one for one in desk.outline.elements if one.window == "Qt probe"}
    assert told["text"].value == "written"
    assert told["password text"].value is None
    assert (told["slider"].value, told["slider"].limits) == ("20", (0.0, 50.0))
    assert "Blue" in (told["combo box"].name, told["combo box"].value)
    desk.click(box)
    desk.wait("check box", "Check", lambda one: "checked" in one.states)


def test_gtk4_tells_what_its_page_shows(desk: Desk) -> None:
    desk.start("gnome-control-center", "network", XDG_CURRENT_DESKTOP="GNOME")
    desk.click(desk.wait("list item", "Appearance"))
    dark = desk.wait("push button", "Dark")
    assert desk.hit(dark).name == "Dark"
    desk.click(dark)
    desk.wait("push button", "Dark", lambda one: one.states & {"pressed", "checked"})
    offscreen = [one for one in desk.outline.elements if "offscreen" in one.states]
    assert "About" in {one.name for one in offscreen}
    assert not any(one.trusted for one in offscreen)


#: A window of GTK 4 that draws a question inside itself, as libadwaita's newer dialogs do.
ASKS_INSIDE = """
import gi
gi.require_version("Gtk", "4.0")
from gi.repository import Gtk

def show(app):
    question = Gtk.Box(accessible_role=Gtk.AccessibleRole.ALERT_DIALOG, orientation=Gtk.Orientation.VERTICAL)
    question.append(Gtk.Label(label="Delete 30 contacts?"))
    question.append(Gtk.Button(label="OK"))
    overlay = Gtk.Overlay(child=Gtk.Label(label="Below"))
    overlay.add_overlay(question)
    window = Gtk.ApplicationWindow(application=app, title="Contacts", child=overlay)
    window.set_default_size(400, 300)
    window.present()

app = Gtk.Application(application_id="org.example.Contacts")
app.connect("activate", show)
app.run()
"""


def test_a_question_inside_a_window_of_gtk4_is_read(desk: Desk) -> None:
    desk.start("/usr/bin/python3", "-c", ASKS_INSIDE)
    desk.wait("push button", "OK")
    assert "Delete 30 contacts?" in (desk.elements.dialogs() or [])
    assert "Below" not in (desk.elements.dialogs() or [])


#: A dialog of GTK 3 whose field presses the default button by Enter.
INVITES = """
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk

dialog = Gtk.Dialog(title="Guests")
dialog.add_button("Cancel", 0)
dialog.add_button("_Invite all", 1)
dialog.set_default_response({default})
dialog.get_content_area().add(Gtk.Entry(activates_default=True))
dialog.connect("response", Gtk.main_quit)
dialog.show_all()
Gtk.main()
"""


@pytest.mark.parametrize("scale", ["1", "2"])
def test_a_button_of_gtk3_is_where_it_is_drawn_on_a_screen_with_small_pixels_too(desk: Desk, scale: str) -> None:
    program = desk.start("/usr/bin/python3", "-c", INVITES.format(default=0), GDK_SCALE=scale)
    button = desk.wait("push button", "Invite all")
    assert desk.hit(button).name == "Invite all"
    desk.click(button)
    wait_until(lambda: program.poll() is not None, "the dialog has closed", 20)


@pytest.mark.parametrize(("default", "name"), [(1, "Invite all"), (0, "Cancel")])
def test_the_button_that_enter_presses_is_told(desk: Desk, default: int, name: str) -> None:
    desk.start("/usr/bin/python3", "-c", INVITES.format(default=default))
    desk.wait("push button", "Invite all")
    button = desk.elements.default_button()
    assert button is not None
    assert (button.role, button.name) == ("push button", name)
    assert desk.hit(button).name == name
