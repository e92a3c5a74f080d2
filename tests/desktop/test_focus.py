import signal
import subprocess

import pytest
from stubs.typing_fields import wait_for

from agent.core.actions import PressKeys
from agent.desktop.guard.desktop import FocusKeeper
from agent.desktop.x11.windows import X11Windows, open_windows
from agent.safety.policy import Approval, Question

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


class AtTheTerminal:
    """A person who goes to another window to say yes, as one must to type it."""

    def __init__(self, windows, environ, *, closes=None):
        self._windows, self._environ, self._closes = windows, environ, closes

    async def approve(self, action, reason):
        subprocess.Popen(["xterm"], env=self._environ, start_new_session=True)
        wait_for(lambda: (now := self._windows.active()) is not None and now.app == "XTerm")
        if self._closes is not None:
            self._closes.signal(signal.SIGKILL)
            self._closes.wait()
            wait_for(lambda: all(window.app != "Mousepad" for window in self._windows.windows()))
        return Approval(allowed=True, by="you")


@pytest.fixture
def editor(sandbox):
    program = sandbox.start("mousepad")  # inside: outside, it may fail to share pictures with the sandbox's display
    windows = X11Windows()
    wait_for(lambda: (now := windows.active()) is not None and now.app == "Mousepad")
    yield program, windows, sandbox
    windows.close()


async def test_the_window_that_was_in_front_is_brought_back_after_a_yes(editor):
    _, windows, sandbox = editor
    approval = await FocusKeeper(AtTheTerminal(windows, sandbox.environ), open_windows).approve(
        PressKeys(("alt", "f4")), Question("risky", "")
    )
    assert approval.allowed
    wait_for(lambda: windows.active().app == "Mousepad")


async def test_an_approved_action_is_not_carried_out_when_its_window_is_gone(editor):
    program, windows, sandbox = editor
    person = AtTheTerminal(windows, sandbox.environ, closes=program)
    approval = await FocusKeeper(person, open_windows).approve(PressKeys(("alt", "f4")), Question("risky", ""))
    assert not approval.allowed


class AtTheirOwnTerminal:
    """A person whose terminal has been there all along."""

    def __init__(self, windows, terminal):
        self._windows, self._terminal = windows, terminal

    async def approve(self, action, question):
        self._windows.activate(self._terminal)
        wait_for(lambda: (now := self._windows.active()) is not None and now.id == self._terminal)
        return Approval(allowed=True, by="you")


async def test_the_terminal_goes_back_below_the_windows_that_it_was_below(sandbox):
    windows = X11Windows()
    identifiers = []
    for program, app in (("xterm", "XTerm"), ("galculator", "Galculator"), ("mousepad", "Mousepad")):
        subprocess.Popen([program], env=sandbox.environ, start_new_session=True)
        shown = wait_for(lambda app=app: (now := windows.active()) is not None and now.app == app and now)
        identifiers.append(shown.id)
    approval = await FocusKeeper(AtTheirOwnTerminal(windows, identifiers[0]), open_windows).approve(
        PressKeys(("alt", "f4")), Question("risky", "")
    )
    assert approval.allowed
    wait_for(lambda: windows.active().id == identifiers[2])
    assert [one for one in windows.stacking() if one in identifiers] == identifiers
    windows.close()
