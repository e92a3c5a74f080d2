"""Serves the live page until the person leaves with Ctrl-C, and says on the terminal how to open it."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from agent.conductor import Conductor
from agent.options import RunOptions
from agent.safety.stop import StopSwitch, stop_signals
from agent.web.app import Door, make_app
from agent.web.live import Live
from agent.workplace import Workplace
from foundation.errors import ExitStatus
from foundation.printing import remark
from foundation.stray_output import stray_output_kept

#: Seconds for a stopped run to let go, and for a sandbox to end.
_CLOSING = 15.0


def run_page(options: RunOptions) -> int:
    """Serve the page, with a first run if there is an instruction; the exit status of the last run."""
    with stray_output_kept():
        return asyncio.run(_serve(options))


async def _serve(options: RunOptions) -> int:
    loop, stop = asyncio.get_running_loop(), StopSwitch()
    live, door = Live(loop), Door()
    conductor = Conductor(lambda tell, ask: Workplace(options, tell, ask), live.post)
    live.conductor = conductor
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/open?key="
    server = _Server(uvicorn.Config(make_app(live, door), log_level="error", timeout_graceful_shutdown=1))
    remark(f"the run's page: {address}{door.once}")
    remark("It opens once, and the browser that opened it decides. Ctrl-C here stops everything.")

    def stopped() -> None:
        conductor.stop(stop.reason)
        loop.call_soon_threadsafe(_over, live, server)

    stop.on_stop(stopped)
    with stop_signals(stop):
        if options.instruction and options.instruction.strip():
            live.control("start", options.instruction)
        await server.serve(sockets=[listening])
        if not conductor.close(0):
            remark("ending what is under way ...")
            await asyncio.to_thread(conductor.close, _CLOSING)
    if conductor.message:
        remark(conductor.message)
    if conductor.recorder is not None:
        remark(f"recorded in {conductor.recorder.path}")
    return ExitStatus.STOPPED if conductor.status is None else conductor.status


def _over(live: Live, server: uvicorn.Server) -> None:
    live.over = True
    live.tell()
    server.should_exit = True


class _Server(uvicorn.Server):
    """A server that leaves signals to the stop switch, which ends the run first."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield
