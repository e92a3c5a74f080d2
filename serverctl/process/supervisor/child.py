"""Runs one vLLM process through its guardian: start, output, signals, exit."""

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from foundation.processes import ProcessIdentity, identity_of
from serverctl.diagnose.classify import TAIL, Failure, classify
from serverctl.diagnose.stages import Stage, StartReport, advance, parse_line
from serverctl.plan.env import LOG_LEVEL, hides_stages
from serverctl.process.logs import MOST_LINE, LogWriter
from serverctl.process.state import MARK, kill_marked

_GUARDIAN = Path(__file__).with_name("guardian.py")
#: Size of one read of the output, bytes.
_CHUNK = 65_536
#: A line longer than this is split, bytes.
_MOST_PENDING = 65_536


class Child:
    """A running server process. `on_line` is called for each line during the start, `echo` for every line."""

    def __init__(
        self,
        log: LogWriter,
        on_line: Callable[[StartReport], None],
        echo: Callable[[str], None] | None = None,
    ) -> None:
        self._log = log
        self._on_line = on_line
        self._echo = echo
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._control: int | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._process: asyncio.subprocess.Process | None = None
        self.report = StartReport()
        self.lines = 0
        self.mark = ""
        self.server_pid: int | None = None
        self.exit_status: int | None = None
        self.exited = asyncio.Event()
        self.guardian: ProcessIdentity | None = None

    async def start(self, command: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        """Start the guardian, which starts the server. Raises OSError if the process cannot be created."""
        control_read, control_write = os.pipe()
        status_read, status_write = os.pipe()
        self.mark = env[MARK]
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(_GUARDIAN), str(control_read), str(status_write), *command,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
                env=dict(env), cwd=folder, pass_fds=(control_read, status_write), start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(control_write)
            os.close(status_read)
            raise
        finally:
            os.close(control_read)
            os.close(status_write)
        self._control = control_write
        self.guardian = identity_of(self._process.pid)
        self._tasks = [asyncio.create_task(self._read_status(status_read)), asyncio.create_task(self._read_output())]

    async def _read_status(self, descriptor: int) -> None:
        """Read the guardian's reports. When the pipe closes, the guardian is gone: kill the rest of the server."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
        )
        try:
            while line := await reader.readline():
                word, _, number = line.decode("ascii", "replace").strip().partition(" ")
                if word == "pid":
                    self.server_pid = int(number)
                elif word == "exit":
                    self.exit_status = int(number)
        finally:
            transport.close()
        assert self._process is not None
        if self.exit_status is None:  # the guardian was killed
            self.exit_status = -9
        # Kill first: `wait` returns only when the output pipe closes, and orphans of a killed guardian keep it open.
        await asyncio.to_thread(kill_marked, self.mark)
        await self._process.wait()
        self.exited.set()

    async def _read_output(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        pending = b""
        while chunk := await self._process.stdout.read(_CHUNK):
            pending += chunk
            *lines, pending = pending.replace(b"\r\n", b"\n").split(b"\n")
            for raw in lines:
                self._take(raw)
            if b"\r" in pending:  # a progress bar redraws itself without a line end
                self._take(pending, keep=False)
                text = pending.rstrip(b"\r")  # a final \r may be the first half of \r\n
                pending = text.rpartition(b"\r")[2] + pending[len(text) :]
            if len(pending) > _MOST_PENDING:
                self._take(pending)
                pending = b""
        if pending:
            self._take(pending)

    def _take(self, raw: bytes, keep: bool = True) -> None:
        """Pass one line of output to the log, the start report and the callbacks."""
        shown = raw.rstrip(b"\r").rpartition(b"\r")[2]
        text = shown[:MOST_LINE].decode("utf-8", "replace") + (" ... (cut)" if len(shown) > MOST_LINE else "")
        self.lines += 1
        if keep:
            self._log.write(text)
            self._tail.append(text)
            if self._echo is not None:
                self._echo(text)
        if self.report.stage < Stage.SERVING:
            self.report = advance(self.report, parse_line(text))
            self._on_line(self.report)

    async def end(self, grace_seconds: float) -> None:
        """Stop the server by orders to its guardian: SIGTERM (T), wait, then kill all its processes (K)."""
        for order, seconds in ((b"T", grace_seconds), (b"K", 15)):
            if self._control is not None and not self.exited.is_set():
                with contextlib.suppress(OSError):
                    os.write(self._control, order)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.exited.wait(), seconds)
        await self.close()

    async def close(self) -> None:
        """Release the guardian after the end, read the rest of the output, and kill leftover processes."""
        if self._control is not None:
            os.close(self._control)
            self._control = None
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=3)
            for task in late:
                task.cancel()
            self._tasks = []
        if self.mark:
            await asyncio.to_thread(kill_marked, self.mark)

    def failure(self) -> Failure:
        """Classify the failure by the output and the exit status."""
        return classify([parse_line(text) for text in self._tail], self.report, self.exit_status)

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines of the output."""
        return [parse_line(text).text for text in list(self._tail)[-count:]]


def server_env(environ: Mapping[str, str], extra: Mapping[str, str], key: str, run: str) -> dict[str, str]:
    """Return a server's environment: ours, the plan's variables, the key and the mark.

    The key is not on the command line, where `ps` would show it.
    """
    # OMP_THREAD_LIMIT: vLLM's CPU attention (0.32) waits forever for threads that it does not get.
    # PYTHONPATH and PYTHONHOME would bring other libraries into vLLM's environment (ROS sets them for every shell).
    unwanted = ("VLLM_API_KEY", "VLLM_HOST_IP", "OMP_THREAD_LIMIT", "PYTHONPATH", "PYTHONHOME")
    env = {name: value for name, value in environ.items() if name not in unwanted}
    if hides_stages(env):
        del env[LOG_LEVEL]
    # vLLM sets process titles with setproctitle, which overwrites the environment in /proc, including the mark, unless
    # SPT_NOENV is set. Without the mark, the processes of a killed guardian could not be found.
    return {**env, **extra, "VLLM_API_KEY": key, MARK: run, "PYTHONUNBUFFERED": "1", "SPT_NOENV": "1"}
