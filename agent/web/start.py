"""Serves the live page until the person leaves, or beside the terminal application or the MCP server."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import uvicorn

from agent.conductor import Conductor, Report
from agent.options import RunOptions
from agent.safety.stop import StopSwitch, stop_signals
from agent.web.app import Door, make_app
from agent.web.live import Live, Runs
from agent.workplace import Workplace
from foundation.errors import ExitStatus
from foundation.printing import remark
from foundation.stray_output import stray_output_kept

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


def run_page(options: RunOptions) -> int:
    """Serve the page, with a first run if there is an instruction. Return the exit status of the last run."""
    with stray_output_kept():
        return asyncio.run(_serve(options))


async def _serve(options: RunOptions) -> int:
    loop, stop = asyncio.get_running_loop(), StopSwitch()
    live = Live(loop)
    conductor = Conductor(lambda tell, ask: Workplace(options, tell, ask), live.post)
    live.runs, live.start = conductor, conductor.start
    serving = Serving(live)
    remark(f"the run's page: {serving.link}")
    remark("It works once, and the browser that opens it answers. Ctrl-C here stops everything.")

    def stopped() -> None:
        conductor.stop(stop.reason)
        loop.call_soon_threadsafe(serving.end)

    stop.on_stop(stopped)
    with stop_signals(stop):
        if options.instruction and options.instruction.strip():
            live.control("start", options.instruction)
        await serving.serve()
        await asyncio.to_thread(conductor.end)
    if conductor.message:
        remark(conductor.message)
    if conductor.recorder is not None:
        remark(f"recorded in {conductor.recorder.path}")
    return ExitStatus.STOPPED if conductor.status is None else conductor.status


class Serving:
    """The page's server on a free port of loopback. `link` opens the page once."""

    def __init__(self, live: Live) -> None:
        door = Door()
        self._live = live
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._server = _Server(uvicorn.Config(make_app(live, door), log_level="error", timeout_graceful_shutdown=1))
        self.link = f"http://127.0.0.1:{self._socket.getsockname()[1]}/open?key={door.once}"

    async def serve(self) -> None:
        """Serve until `end`."""
        await self._server.serve(sockets=[self._socket])

    def end(self) -> None:
        """Tell the watchers that the session is over, and end; on the loop's thread."""
        self._live.over = True
        self._live.tell()
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """A server that leaves signals to the stop switch, which ends the run first."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
