"""The live page beside the terminal application or the MCP server: it shows the same runs, and its answers count."""

import asyncio
import threading
from collections.abc import Callable, Iterable

from agent.conductor import Report
from agent.web.live import Live, Runs
from agent.web.start import Serving

#: Seconds for the server to begin, and to end.
_PATIENCE = 5.0


class PageBeside:
    """Serves the page from a thread of its own, from now until `close`. Raises OSError if no port is free.

    Args:
        runs: what it shows and steers.
        start: starts a run that the person asks for on the page; called on the page's thread. None: it starts none.
        shown: earlier reports, so that the page is up to date.
    """

    def __init__(self, runs: Runs, start: Callable[[str], object] | None, shown: Iterable[Report]) -> None:
        self._loop = asyncio.new_event_loop()
        self._live = Live(self._loop)
        self._live.runs, self._live.start = runs, start
        self._serving = Serving(self._live)
        self.link = self._serving.link
        self._thread = threading.Thread(target=self._work, name="page", daemon=True)
        self._thread.start()
        for report in shown:
            self.post(report)

    @property
    def is_shown(self) -> bool:
        """Whether a browser shows the page now."""
        return self._live.watchers > 0

    def post(self, report: Report) -> None:
        """Take a report, on any thread."""
        self._live.post(report)

    def close(self) -> None:
        """Show on the page that the session is over, and end the server."""
        self._loop.call_soon_threadsafe(self._serving.end)
        self._thread.join(_PATIENCE)

    def _work(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serving.serve())
