"""Carries out tasks on a Ray cluster: one actor per desktop, which uses a `Runner` on its node."""

import asyncio
import os
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from agent.fleet.process import GRACE_S, Runner, Seen
from agent.fleet.tasks import Result, Task
from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError
from foundation.files import cannot_write

#: Ray resources of a desktop, memory in bytes. An XFCE desktop with its run took 0.3 to 0.5 GB (docs/fleet.md); the
#: rest is for its programs.
_NEEDS = {"num_cpus": 1, "memory": 2**30}
#: Seconds to reach the head node. Ray itself tries a closed port for minutes.
_REACH_S = 5.0
#: Seconds until Ray has noticed the loss of a node: with its own settings, it takes up to 30.
_NOTICED_S = 90.0


class ClusterRunner:
    """Carries out tasks on a Ray cluster; a context manager, connected inside.

    Arguments are `Runner`'s, and the HOST:PORT of the cluster's head node. The paths in options are those of the nodes.
    """

    def __init__(
        self, folder: Path, common: Mapping[str, Any], command: Sequence[str], program: Sequence[str], address: str
    ) -> None:
        self._folder = folder
        self._how = (dict(common), tuple(command), tuple(program))
        self._address = address
        self._idle: asyncio.Queue[Any] = asyncio.Queue()  # actors without a task: each keeps its place on a node

    def __enter__(self) -> Self:
        """Connect. Raises MaiError."""
        _check_reachable(self._address)
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        try:
            import ray

            ray.init(address=self._address, log_to_driver=False, logging_level="ERROR")
        except ImportError as error:
            raise EnvironmentLacksError(
                f"Ray is not installed ({error}).", "Install it on every node: pip install 'mai-agent[ray]'."
            ) from error
        except (ConnectionError, RuntimeError, ValueError) as error:  # no cluster, another version, not on a node of it
            raise EnvironmentLacksError(
                f"The Ray cluster at {self._address} cannot be joined ({error}).",
                "Start the fleet on one of its nodes.",
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        import ray

        ray.shutdown()

    async def __call__(self, task: Task, tries: int, seen: Seen) -> Result:
        """Carry a task out on a node that has room. The loss of the node is a failure of the environment."""
        import ray

        began, stream, desktop = time.monotonic(), None, None
        try:
            desktop = await self._with_a_place()
            stream = desktop.carry.remote(task, tries)
            async for reference in stream:
                match await reference:
                    case (name, content):  # a file of the bundle
                        await asyncio.to_thread(self._write, name, content)
                    case Result() as result:
                        self._idle.put_nowait(desktop)
                        return result
                    case event:
                        seen(event)
            why = "it gave no result"
        except ray.exceptions.RayError as error:
            why = " ".join(str(error).split())
            if desktop is not None:
                await _until_lost(desktop)
        except BaseException:
            if stream is not None:
                await _cancel(stream)
            raise
        seconds = round(time.monotonic() - began, 2)
        why = f"The desktop's node or process was lost: {why}"[:300]
        return Result(
            task.id, "crashed", int(ExitStatus.ENVIRONMENT), None, 0, seconds, None, "", why, tries, task.digest
        )

    async def _with_a_place(self) -> Any:
        """Return an actor that runs on a node: an idle one, or a new one once there is room. Raises RayError."""
        import ray

        while not self._idle.empty():
            with suppress(ray.exceptions.RayError):  # its node may be gone by now
                desktop = self._idle.get_nowait()
                await desktop.ready.remote()
                return desktop
        new = ray.remote(_Desktop).options(**_NEEDS).remote(*self._how)
        placed, freed = asyncio.ensure_future(_ready(new)), asyncio.ensure_future(self._idle.get())
        try:
            await asyncio.wait({placed, freed}, return_when=asyncio.FIRST_COMPLETED)
            if not freed.done():
                await placed
                return new
            if not placed.done():
                ray.kill(new)
            else:
                self._idle.put_nowait(new)
            return freed.result()
        except BaseException:
            ray.kill(new)
            raise
        finally:
            placed.cancel()
            freed.cancel()

    def _write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        try:
            for folder in (path.parents[1], path.parent):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_bytes(content)
        except OSError as error:
            raise cannot_write(path, error) from error


class _Desktop:
    """An actor: carries out one task after the other, each on a new desktop."""

    def __init__(self, *how: Any) -> None:
        self._how = how

    def ready(self) -> None:
        """Return once the actor is on a node."""

    async def carry(self, task: Task, tries: int) -> AsyncIterator[dict[str, Any] | tuple[str, bytes] | Result]:
        """Carry a task out here, and yield its events, the files of its bundle (path and content), and its result.

        If cancelled, the run is stopped and its sandbox closed.
        """
        with tempfile.TemporaryDirectory(prefix="mai-agent-fleet-") as name:
            events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
            run = asyncio.create_task(Runner(Path(name), *self._how)(task, tries, events.put_nowait))
            run.add_done_callback(lambda _: events.put_nowait(None))
            try:
                while (event := await events.get()) is not None:
                    yield event
                result = await run
            finally:
                run.cancel()
                await asyncio.gather(run, return_exceptions=True)
            for path in sorted(Path(name).rglob("*")):
                if path.is_file():
                    yield str(path.relative_to(name)), path.read_bytes()
            yield result


async def _ready(desktop: Any) -> None:
    await desktop.ready.remote()


async def _until_lost(desktop: Any) -> None:
    """Wait until Ray knows that an actor is lost. Until then, Ray would place the next actor on the same node."""
    import ray

    with suppress(ray.exceptions.ActorDiedError, TimeoutError):
        async with asyncio.timeout(_NOTICED_S):
            while True:
                with suppress(ray.exceptions.ActorUnavailableError):
                    await desktop.ready.remote()
                    ray.kill(desktop)  # it lives, but its task is lost
                await asyncio.sleep(1)


async def _cancel(stream: Any) -> None:
    """Cancel the actor's call, and wait until the run is stopped."""
    import ray

    with suppress(ray.exceptions.RayError, TimeoutError):
        ray.cancel(stream)
        async with asyncio.timeout(2 * GRACE_S):
            async for reference in stream:
                await reference


def _check_reachable(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal()) or "/" in host:
        raise UsageError(f"{address!r} is not a Ray cluster's address.", "Name its head node: --ray HOST:6379.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
    except (OSError, OverflowError) as error:
        raise EnvironmentLacksError(
            f"Nothing answers at {address} ({error}).", "Start the cluster: ray start --head, and join its nodes."
        ) from error
