"""Elements of applications on Wayland, which do not know where they are: sway tells that."""

import os
import time
from collections.abc import Iterator

import pytest

from agent.core.actions import Click
from agent.core.geometry import DesktopPoint, Size
from agent.desktop.factory import open_desktop
from agent.desktop.protocol.desktop import Desktop
from agent.desktop.protocol.elements import Elements
from agent.safety.stop import StopSwitch
from agent.sandbox.desktop import Sandbox, SandboxSpec, start_sandbox
from agent.screen.outline import Element, Outline

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    for name in ("DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "SWAYSOCK"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    found = start_sandbox(SandboxSpec(Size(1280, 800), session="sway"))
    found.applied()
    yield found
    found.close()


def shown(elements: Elements, window: str) -> Outline:
    """The outline, as soon as a window is told in it and its place is settled, so that hit tests find its buttons."""
    deadline = time.monotonic() + 30
    while True:
        outline = elements.outline()
        found = [one for one in outline.elements if window in one.window and "offscreen" not in one.states]
        if (found and all(one.trusted for one in found)) or time.monotonic() > deadline:
            return outline
        time.sleep(0.1)


def named(outline: Outline, name: str) -> Element:
    [found] = [one for one in outline.elements if one.name == name and "button" in one.role]
    return found


def middle(element: Element) -> DesktopPoint:
    box = element.box
    return DesktopPoint(box.left + box.width / 2, box.top + box.height / 2)


def click(desktop: Desktop, element: Element) -> None:
    desktop.hand.perform(Click(middle(element)))


def test_buttons_are_clicked_by_their_names_in_a_window_beside_another(sandbox: Sandbox) -> None:
    desktop = open_desktop(StopSwitch(), None, sandbox.environ)
    elements = desktop.open_elements()
    assert elements is not None
    sandbox.start("mousepad")
    shown(elements, "Mousepad")
    sandbox.start("galculator")
    outline = shown(elements, "galculator")
    assert outline.lacks == ""
    assert min(one.box.left for one in outline.elements if one.window == "galculator") > 600  # it is on the right
    buttons = [one for one in outline.elements if "button" in one.role]
    assert len(buttons) > 20 and all(one.trusted for one in buttons)
    for name in ("7", "+", "8", "="):
        click(desktop, named(outline, name))
        time.sleep(0.1)
    deadline = time.monotonic() + 10
    while (texts := [one.value for one in elements.outline().elements if one.value]) != ["15"]:
        assert time.monotonic() < deadline, texts
        time.sleep(0.1)
    outline = elements.outline()  # on a busy machine, sway was still placing the window when it was first seen
    under = elements.at(middle(named(outline, "sqrt")))
    assert under is not None and (under.name, under.box) == ("sqrt", named(outline, "sqrt").box)
    focused = elements.focused()
    assert focused is not None and focused.box.left > 600
    elements.close()
    desktop.hand.close()
    desktop.screen.close()


def test_its_programs_are_nobody_in_particular_and_have_no_x11(sandbox: Sandbox) -> None:
    told = sandbox.run("sh", "-c", "id -u; echo ${DISPLAY:-none}; ls /root /home 2>&1 | head -1").stdout.splitlines()
    assert told[0] == str(os.geteuid() or 1000)
    assert told[1] == "none"
