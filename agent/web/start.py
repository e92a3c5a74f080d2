"""Serves the live page until the person leaves, or beside the terminal application or the MCP server."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable

import uvicorn

from agent.conductor import Conductor, Report, RunBegan
from agent.options import RunOptions
from agent.safety.stop import StopSwitch, stop_signals
from agent.web.app import Door, make_app
from agent.web.live import Live, Runs
from agent.workplace import Workplace
from foundation.errors import ExitStatus
from foundation.printing import remark
from foundation.stray_output import stray_output_kept

#: Seconds for the server to end.
_TIMEOUT = 5.0


class PageBeside:
    """Serves the page on a free port of loopback, from a thread of its own, from now until `close`.

    `link` opens the page once. Raises OSError if no port is free.

    Args:
        runs: what it shows and steers.
        start: starts a run that the person asks for on the page; called on the page's thread. None: it starts none.
        shown: earlier reports, so that the page is up to date.
    """

    def __init__(self, runs: Runs, start: Callable[[str], object] | None, shown: Iterable[Report]) -> None:
        door = Door()
        self._loop = asyncio.new_event_loop()
        self._live = Live(self._loop)
        self._live.runs, self._live.start = runs, start
        self._socket = socket.create_server(("127.0.0.1", 0))
        app = make_app(self._live, door)
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        self.link = f"http://127.0.0.1:{self._socket.getsockname()[1]}/open?key={door.once}"
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
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join(_TIMEOUT)

    def _end(self) -> None:
        self._live.over = True
        self._live.tell()
        self._server.should_exit = True

    def _work(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._server.serve(sockets=[self._socket]))


def run_page(options: RunOptions) -> int:
    """Serve the page until a signal, with a first run if there is an instruction. Return the last run's exit status."""
    stop, instruction = StopSwitch(), (options.instruction or "").strip()

    def post(report: Report) -> None:
        page.post(report)

    with stray_output_kept(), stop_signals(stop):
        conductor = Conductor(lambda tell, ask: Workplace(options, tell, ask), post)
        page = PageBeside(conductor, conductor.start, [RunBegan(instruction, 0)] if instruction else [])
        remark(f"the run's page: {page.link}")
        remark("It works once, and the browser that opens it answers. Ctrl-C here stops everything.")
        stop.on_stop(lambda: conductor.stop(stop.reason))
        if instruction:
            conductor.start(instruction)
        stop.wait()
        conductor.end()
        page.close()
        if conductor.message:
            remark(conductor.message)
        if conductor.recorder is not None:
            remark(f"recorded in {conductor.recorder.path}")
    return ExitStatus.STOPPED if conductor.status is None else conductor.status
