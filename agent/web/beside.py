"""The live page beside the terminal application: both show the same run, and the first answer to a question counts."""

import asyncio
import threading
from collections.abc import Callable, Iterable

from agent.conductor import Conductor, Report
from agent.web.live import Live
from agent.web.start import Serving

#: Seconds for the server to begin, and to end.
_PATIENCE = 5.0


class PageBeside:
    """Serves the page from a thread of its own, from now until `close`. Raises OSError if no port is free.

    Args:
        conductor: of the runs.
        start: starts a run that the person asks for on the page; called on the page's thread.
        shown: reports that lead to what the application shows now.
    """

    def __init__(self, conductor: Conductor, start: Callable[[str], object], shown: Iterable[Report]) -> None:
        self._loop = asyncio.new_event_loop()
        self._live = Live(self._loop)
        self._live.conductor, self._live.start = conductor, start
        self._serving = Serving(self._live)
        self.link = self._serving.link
        self._thread = threading.Thread(target=self._work, name="page", daemon=True)
        self._thread.start()
        for report in shown:
            self.post(report)

    def post(self, report: Report) -> None:
        """Take a report, on any thread."""
        self._live.post(report)

    def close(self) -> None:
        """Say on the page that it is over, and end it."""
        self._loop.call_soon_threadsafe(self._serving.end)
        self._thread.join(_PATIENCE)

    def _work(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serving.serve())
