"""One task as a process: an ordinary `mai-agent --sandbox --json` run, whose events are read as it goes."""

import asyncio
import ctypes
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from agent.fleet.tasks import Result, Task, option_words
from agent.sandbox.desktop import reap_sandboxes
from foundation.errors import ExitStatus

Seen = Callable[[dict[str, Any]], None]

#: A line of events is longer only if something is broken. Each slot needs at most twice this memory.
_LONGEST_LINE = 2**24
#: Longest start of a run in seconds: a cold vLLM with large weights takes many minutes.
_START_S = 3600.0
#: Seconds that a run may take beyond its own limit, and to close its sandbox.
_SLACK_S = 60.0
#: Seconds between SIGTERM and SIGKILL. A run needs about one second to stop and close its sandbox.
GRACE_S = 6.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None


def _end_with_the_fleet() -> None:
    """Make the kernel send SIGTERM to this process when the fleet dies, even by kill -9."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Runner:
    """Carries out tasks as processes. Their bundles go to `runs` in the output folder.

    `common` are options of all runs, with `max_seconds`; a task's own options win. `command` is the subcommand of
    mai-agent; `program`, if given, replaces mai-agent and the subcommand.
    """

    def __init__(
        self, folder: Path, common: Mapping[str, Any], command: Sequence[str] = ("run",), program: Sequence[str] = ()
    ) -> None:
        self._folder = folder.resolve()
        self._runs = f"--runs={self._folder / 'runs'}"
        self._common = common
        self._program = program or (sys.executable, "-P", "-m", "agent", *command)

    async def __call__(self, task: Task, tries: int, seen: Seen) -> Result:
        """Carry a task out and call `seen` with each event. If cancelled, stop the process and its sandbox."""
        options = {**self._common, **dict(task.options)}
        words = [*self._program, "--sandbox", "--json", self._runs, *option_words(options), "--", task.instruction]
        began, report = time.monotonic(), _RunFacts()
        with tempfile.TemporaryFile() as errors:
            async with _output() as (lines, writing):
                try:
                    process = await asyncio.create_subprocess_exec(
                        *words, stdin=asyncio.subprocess.DEVNULL, stdout=writing, stderr=errors,
                        start_new_session=True, preexec_fn=_end_with_the_fleet,
                    )  # fmt: skip
                except OSError as error:  # no memory, or too many processes
                    return self._result(task, tries, report, None, str(error), 0.0)
                writing.close()
                try:
                    await _follow(process, lines, float(options["max_seconds"]), report, seen)
                finally:
                    await _end(process)
            return self._result(task, tries, report, process.returncode, _last_line(errors), time.monotonic() - began)

    def _result(
        self, task: Task, tries: int, report: "_RunFacts", returncode: int | None, error: str, seconds: float
    ) -> Result:
        last = report.finished
        seconds = last.get("seconds") or seconds
        if last:
            outcome, status = str(last["outcome"]), int(last["status"])
        elif report.hung or not returncode or returncode < 0:  # no verdict on the task: the machine failed it
            outcome, status = "hung" if report.hung else "crashed", int(ExitStatus.ENVIRONMENT)
            how = "hung" if report.hung else f"was ended by signal {-returncode}" if returncode else "gave no result"
            error = f"The run {how}. Its last message: {error}"
        else:
            outcome, status = "failed", returncode
        usage = last.get("usage") or {}
        tokens = [usage[name] for name in ("prompt", "completion") if usage.get(name) is not None]
        with suppress(ValueError):
            report.bundle = str(Path(report.bundle).relative_to(self._folder)) if report.bundle else ""
        return Result(
            task.id, outcome, status, last.get("verified"), int(last.get("steps", report.step)), round(seconds, 2),
            sum(tokens) if tokens else None, report.bundle, str(last.get("message") or error)[:300], tries, task.digest,
        )  # fmt: skip

    def end_leftovers(self) -> None:
        """End runs that an earlier fleet on the same folder left behind when it was killed, and their sandboxes."""
        left = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if self._runs in process.cmdline():
                    process.terminate()
                    left.append(process)
        for process in psutil.wait_procs(left, timeout=GRACE_S)[1]:
            with suppress(psutil.Error):
                process.kill()
        reap_sandboxes()


@dataclass
class _RunFacts:
    """The facts from a run's events so far."""

    bundle: str = ""
    step: int = 0
    finished: dict[str, Any] = field(default_factory=dict)
    hung: bool = False


@asynccontextmanager
async def _output() -> AsyncIterator[tuple[asyncio.StreamReader, IO[bytes]]]:
    """Open a pipe for a run's output. Unlike asyncio's pipe, it can be closed while a leaked program holds it open."""
    reading, writing = os.pipe()
    lines = asyncio.StreamReader(limit=_LONGEST_LINE)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(reading, "rb")
    )
    with os.fdopen(writing, "wb") as end:
        try:
            yield lines, end
        finally:
            pipe.close()


async def _follow(
    process: asyncio.subprocess.Process, lines: asyncio.StreamReader, max_seconds: float, report: _RunFacts, seen: Seen
) -> None:
    """Read the events of a run up to its last one, and wait until the process ends."""
    exited = asyncio.create_task(_close_after_exit(process, lines))
    now = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(_START_S) as limit:
            while not report.finished and (event := await _event(lines)) is not None:
                report.step = event.get("step", report.step)
                match event.get("event"):
                    case "RunStarted":
                        report.bundle = event.get("bundle", "")
                        limit.reschedule(now() + max_seconds + _SLACK_S)
                    case "RunFinished":
                        report.finished = event
                seen(event)
            limit.reschedule(now() + _SLACK_S)
            await exited
    except TimeoutError:
        report.hung = True
    finally:
        exited.cancel()


async def _event(lines: asyncio.StreamReader) -> dict[str, Any] | None:
    """Return the next event; None at the end of the output. Lines that are no events are left out."""
    while True:
        try:
            line = await lines.readline()
            if not line:
                return None
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            return event


async def _close_after_exit(process: asyncio.subprocess.Process, lines: asyncio.StreamReader) -> None:
    """Wait until the process has ended. A program that it left behind must not keep its output open."""
    await process.wait()
    await asyncio.sleep(0.1)  # until its last output is read
    lines.feed_eof()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process if it still runs, and remove its sandbox if it had to be killed."""
    for stop in (process.terminate, process.kill):
        if process.returncode is None:
            with suppress(ProcessLookupError, TimeoutError):
                stop()
                await asyncio.wait_for(process.wait(), GRACE_S)
    if process.returncode is None or process.returncode < 0:
        await asyncio.to_thread(reap_sandboxes)


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(max(0, errors.seek(0, 2) - 2000))
    lines = errors.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
