"""The live page of a host's runs, in the person's browser: for questions that the host cannot ask.

The first browser that opens the link may decide. So the link goes to the person's browser only: no answer, log or
message to the calling model contains it.
"""

import os
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Mapping

from agent.api.desktop import AsyncDesktop
from agent.conductor import PersonThere, Report, Run, RunBegan, RunClosed
from agent.record.bundle import Recorder
from agent.web.start import PageBeside


def open_browser(link: str, environ: Mapping[str, str]) -> bool:
    """Open the person's browser; False if there is no screen to open it on."""
    if sys.platform.startswith("linux") and not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
        # A process of its own: standard output is the host's, and a browser may write to it.
        subprocess.Popen(
            [sys.executable, "-P", "-m", "webbrowser", "-n", link], env=environ, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (webbrowser.Error, OSError):
        return False
    return True


class QuestionPage:
    """A page that is opened by the first question, and again if it was closed meanwhile.

    Args:
        tell: receives a sentence for the host that says where the person must look.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._environ = dict(os.environ)  # of the person's screen: a sandbox changes it in this process
        self.desktop: AsyncDesktop | None = None  # set by its first use
        self._page: PageBeside | None = None
        self._shown: list[Report] = []  # reports that a newly opened page gets first

    def post(self, report: Report) -> None:
        """Take a report, on any thread."""
        if isinstance(report, RunBegan | RunClosed):
            self._shown = [report]
        if self._page is not None:
            self._page.post(report)

    def person(self) -> PersonThere | None:
        """Return the person at the page; None if no browser can be opened."""
        if self._page is None or not self._page.is_shown:
            self.close()
            try:
                page = PageBeside(self, None, self._shown)
            except OSError:
                return None
            if not open_browser(page.link, self._environ):
                page.close()
                return None
            self._page = page
        self._tell("A question waits for you in your browser.")
        return PersonThere(self.post)

    @property
    def run(self) -> Run | None:
        """The run that the page shows and steers; see `Runs`."""
        return None if self.desktop is None else self.desktop.run

    @property
    def recorder(self) -> Recorder | None:
        """The recorder of that run."""
        return None if self.desktop is None else self.desktop.recorder

    def stop(self, reason: str) -> None:
        """Stop the run at once."""
        if self.desktop is not None:
            self.desktop.stop(reason)

    def close(self) -> None:
        """End the page."""
        if self._page is not None:
            self._page.close()
            self._page = None
