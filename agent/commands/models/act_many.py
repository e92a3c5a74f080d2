"""`mai-agent act` about many pictures in one process: importing and opening costs more than asking."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.api.server import Asker, Seen, decision_json, decision_lines, read_image
from agent.commands.arguments import tell
from agent.commands.models.request_lines import read_line
from agent.families.base import Decision, ParseFailure
from foundation.errors import ExitStatus, MaiError, UsageError


@dataclass(frozen=True, slots=True)
class Job:
    """One request: a picture and what to do or find there."""

    image: str = ""
    instruction: str = ""
    grounding: bool = False
    id: Any = None  # returned with the answer
    trouble: str = ""  # why the line is no request


@dataclass(frozen=True, slots=True)
class _Answered:
    job: Job
    seen: Seen | None = None
    result: Decision | ParseFailure | None = None
    text: str = ""
    error: str = ""

    @property
    def ok(self) -> bool:
        return isinstance(self.result, Decision)

    def to_json(self) -> dict[str, Any]:
        named = {"id": self.job.id, "image": self.job.image}
        if self.result is None or self.seen is None:
            kind = "bad_request" if self.job.trouble else "not_asked"
            return {**named, "ok": False, "error": {"kind": kind, "message": self.error}}
        return {**named, **decision_json(self.result, self.text, self.seen)}

    def lines(self) -> list[str]:
        if self.result is None or self.seen is None:
            return [f"{self.job.image}: no decision: {self.error}"]
        return [f"{self.job.image}: {line}" for line in decision_lines(self.result, self.seen)]


async def of_images(images: Sequence[str], instruction: str, *, grounding: bool) -> AsyncIterator[Job]:
    """Yield one request for each picture."""
    for number, image in enumerate(images):
        yield Job(image, instruction, grounding, number)


async def of_lines() -> AsyncIterator[Job]:
    """Yield the requests on standard input as they come."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue(64)

    def read() -> None:
        while True:
            try:
                line = sys.stdin.buffer.readline()
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
            except RuntimeError:  # the loop has ended
                return
            if not line:
                return

    threading.Thread(target=read, daemon=True).start()  # a daemon: Ctrl-C does not wait for the next line
    while line := await lines.get():
        if line.strip():
            yield _job(line)


def _job(line: bytes) -> Job:
    """Return the request of a line. `trouble` is what is wrong with the line, "" if nothing is."""
    identifier, job, trouble = read_line(line, _asked)
    return Job(id=identifier, trouble=trouble) if job is None else replace(job, id=identifier)


def _asked(request: Mapping[str, Any]) -> Job:
    image, instruction, grounding = request["image"], request["instruction"], request.get("grounding", False)
    if not (isinstance(image, str) and isinstance(instruction, str) and isinstance(grounding, bool)):
        raise TypeError('"image" and "instruction" must be strings, and "grounding" true or false')
    return Job(image, instruction, grounding)


async def answer_all(asker: Asker, jobs: AsyncIterator[Job], at_once: int, *, as_json: bool) -> ExitStatus:
    """Ask about all pictures, `at_once` at a time, and print the answers in order. Return NOT_DONE if one failed."""
    places = asyncio.Semaphore(at_once)
    begun: asyncio.Queue[asyncio.Task[_Answered] | None] = asyncio.Queue(4 * at_once)

    async def begin() -> None:
        async for job in jobs:
            await begun.put(asyncio.create_task(_answer(asker, job, places)))
        await begun.put(None)

    all_ok = True
    beginning = asyncio.create_task(begin())
    try:
        while task := await begun.get():
            answered = await task
            all_ok &= answered.ok
            tell(as_json, answered.to_json(), *answered.lines())
    finally:
        beginning.cancel()
    return ExitStatus.DONE if all_ok else ExitStatus.NOT_DONE


async def _answer(asker: Asker, job: Job, places: asyncio.Semaphore) -> _Answered:
    async with places:
        try:
            if job.trouble:
                raise UsageError(f"This line is not a request: {job.trouble}.")
            seen = Seen(await asyncio.to_thread(read_image, Path(job.image)))
            result, text = await asker.ask(job.instruction, seen, grounding=job.grounding)
        except MaiError as error:
            return _Answered(job, error=str(error))
        return _Answered(job, seen, result, text)
