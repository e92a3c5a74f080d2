"""What interrupts a server: its end, other settings, another model, or sleep because no requests come."""

import asyncio
import contextlib
from collections.abc import Callable

from foundation.errors import MaiError
from serverctl.process.request import Change, ServerRequest, read_change
from serverctl.process.state import Folder
from serverctl.process.supervisor.door import Door

#: Interval of the checks, seconds: the maximum delay of an interruption.
TICK = 0.05
#: Seconds for running requests to finish before vLLM gets SIGTERM.
FINISH = 5.0


class Turns:
    """Sets `came`, which interrupts all waiting. `hold` is how long requests wait at the door, seconds."""

    def __init__(self, folder: Folder, door: Door, hold: float) -> None:
        self._folder, self._door, self._hold = folder, door, hold
        self.came = asyncio.Event()
        self.stopping = False
        self._change: Change | None = None
        self.nap = ""  # why the engine should sleep until the next request

    def stop(self) -> None:
        """Request the end of the server."""
        self.stopping = True
        self.came.set()

    def rest(self, because: str) -> None:
        """Request the end of the engine, until a client sends a request."""
        self.nap = because
        self.came.set()

    def begin(self) -> None:
        """Go on after an interruption, unless it is the end."""
        if not self.stopping:
            self.came.clear()

    def take_change(self) -> Change | None:
        """Return the requested change, and forget it; None if there is none."""
        change, self._change = self._change, None
        return change

    async def look(self, current: Callable[[], tuple[ServerRequest, bool]], tell: Callable[[str], None]) -> None:
        """Notice clients that want another model, and files that ask for other settings, until cancelled.

        `current` returns the request and whether its server is ready. `tell` is called before the file of a change is
        removed, because the requesting process waits for the removal.
        """
        self._folder.change_file.unlink(missing_ok=True)  # of a process that was killed
        while True:
            await asyncio.sleep(TICK)
            self._door.look()
            request, is_ready = current()
            wanted = request.for_model(self._door.wanted())
            if wanted is not None and is_ready and not self.came.is_set():
                self._interrupt(Change(wanted, self._hold))
                tell(f"A client wants {wanted.served_name}: waiting for the requests that run.")
            if self._folder.change_file.exists() and not self.stopping:
                with contextlib.suppress(MaiError, OSError):
                    self._interrupt(read_change(self._folder.change_file))
                    tell("A restart is wanted: waiting for the requests that run.")
                self._folder.change_file.unlink(missing_ok=True)

    def _interrupt(self, change: Change) -> None:
        self._change = change
        self.came.set()

    async def drain(self) -> None:
        """Wait for the requests that run, while new ones are held. Return early if the end is wanted."""
        draining = asyncio.create_task(self._door.drain(self._change.wait if self._change else FINISH))
        while not draining.done() and not self.stopping:
            await asyncio.sleep(TICK)
        draining.cancel()

    async def asked(self) -> None:
        """Wait until a client waits at the door, or for an interruption."""
        while not self.came.is_set() and not self._door.held:
            await asyncio.sleep(TICK)

    async def sleep(self, seconds: float) -> bool:
        """Sleep, but wake up for an interruption. Return whether one came."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.came.wait(), seconds)
        return self.came.is_set()
