"""Held keys in a real file manager, and pages in a real browser: both in a sandbox, judged by what they show."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from stubs.display import wait_until
from stubs.http_stub import Handler, HttpStub

from agent.core.actions import Action, Click, KeyDown, KeyUp, OpenApp, PressKeys, VisitPage
from agent.core.geometry import DesktopPoint
from agent.desktop.input.hand import InputHand
from agent.desktop.protocol.elements import Elements
from agent.desktop.x11.desktop import X11Desktop, X11Input
from agent.desktop.x11.windows import X11Windows
from agent.safety.held_input import Held
from agent.safety.stop import StopSwitch
from agent.sandbox.desktop import Sandbox
from agent.screen.outline import Element

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(180)]


class Desk:
    """A hand in a sandbox, used as a run uses it, and the elements that are seen there."""

    def __init__(self, sandbox: Sandbox) -> None:
        stop = StopSwitch()
        self.desktop = X11Desktop(stop, None, sandbox.environ)
        elements = self.desktop.open_elements()
        assert elements is not None
        self.elements: Elements = elements
        self.hand = InputHand(stop, X11Input(stop), self.desktop.text_entry, self.desktop.applications)
        self.home, self.held = Path(sandbox.environ["HOME"]), Held()

    def do(self, *actions: Action[DesktopPoint]) -> None:
        for action in actions:
            effective = self.held.effective(action)
            self.hand.perform(effective)
            self.held.did(effective)

    def seen(self, name: str) -> Element | None:
        found = self.elements.outline().elements
        return next((one for one in found if name in one.name and one.trusted), None)

    def point(self, name: str) -> DesktopPoint:
        wait_until(lambda: self.seen(name) is not None, f"{name} is shown")
        found = self.seen(name)
        assert found is not None
        return DesktopPoint(found.box.left + found.box.width / 2, found.box.top + found.box.height / 2)


@pytest.fixture
def desk(sandbox: Sandbox) -> Iterator[Desk]:
    found = Desk(sandbox)
    yield found
    found.hand.close()


def test_files_are_selected_with_ctrl_and_shift_in_a_file_manager(desk: Desk) -> None:
    folder = desk.home / "held"
    folder.mkdir(exist_ok=True)
    for name in ("a1.txt", "b2.txt", "c3.txt", "d4.txt"):
        (folder / name).write_text("x")
    desk.do(OpenApp("~/held/"))
    wait_until(lambda: desk.seen("4 files"), "the folder is shown")
    desk.do(PressKeys(("ctrl", "2")))  # as a list, whose rows it tells
    first, third = desk.point("a1.txt"), desk.point("c3.txt")
    desk.do(Click(first), KeyDown(("ctrl",)), Click(third), KeyUp(("ctrl",)))
    wait_until(lambda: desk.seen("2 files"), "two files are selected")
    desk.do(Click(first), KeyDown(("shift",)), Click(third), KeyUp(("shift",)))
    wait_until(lambda: desk.seen("3 files"), "three files are selected")


def page(handler: Handler) -> None:
    """A page that is called by its path."""
    name = handler.path[1:]
    handler.respond(f"<title>page {name}</title><h1>{name}</h1>".encode(), "text/html")


def _install_browser(home: Path) -> None:
    """Chromium as root, which its own sandbox refuses, is the browser that is chosen here."""
    applications, config = home / ".local/share/applications", home / ".config"
    for folder in (applications, config):
        folder.mkdir(parents=True, exist_ok=True)
    flags = f"--no-sandbox --no-first-run --disable-gpu --password-store=basic --user-data-dir={home}/chromium"
    (applications / "tried.desktop").write_text(
        f"[Desktop Entry]\nType=Application\nName=Tried\nExec=chromium {flags} %U\nMimeType=x-scheme-handler/https;\n"
    )
    (config / "mimeapps.list").write_text("[Default Applications]\nx-scheme-handler/https=tried.desktop\n")


def test_a_page_is_visited_in_the_browser_and_the_next_one_in_a_new_tab(desk: Desk) -> None:
    server = HttpStub(page)
    windows = X11Windows()
    _install_browser(desk.home)
    try:
        desk.do(VisitPage(f"{server.url}/one"))
        wait_until(lambda: any("page one" in one.title for one in windows.windows()), "the first page is shown")
        count = len(windows.windows())
        desk.do(VisitPage(f"{server.url}/two"))
        wait_until(lambda: any("page two" in one.title for one in windows.windows()), "the second page is shown")
        assert len(windows.windows()) == count
    finally:
        windows.close()
        server.close()
