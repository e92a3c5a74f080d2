"""`mai-agent act --image FILE "INSTRUCTION"`: one screenshot, one decision, printed. Nothing is touched."""

import argparse
import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.api.server import Asker, Seen, decision_json, decision_lines, read_image
from agent.commands.arguments import NO_GROUNDING, add_options, chosen_engine, open_own_desktop, tell
from agent.commands.models.exchanges import read_line
from agent.families.base import Decision
from agent.model.asking import Patience
from agent.model.engines import Engine
from agent.options import RunOptions
from agent.run.models.roles import open_model
from agent.settings import load_settings
from foundation.command_line import Parser, plain_text, positive
from foundation.errors import ExitStatus, MaiError, UsageError
from foundation.printing import remark
from foundation.stray_output import stray_output_kept


@dataclass(frozen=True, slots=True)
class Job:
    """One request: a picture and what to do or find there."""

    image: str = ""
    instruction: str = ""
    grounding: bool = False
    id: Any = None  # returned with the answer
    trouble: str = ""  # why the line is no request


async def of_images(arguments: argparse.Namespace) -> AsyncIterator[Job]:
    """Yield one request for each picture."""
    for number, image in enumerate(arguments.images):
        yield Job(image, arguments.instruction, arguments.grounding, number)


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
    begun: asyncio.Queue[asyncio.Task[tuple[dict[str, Any], list[str]]] | None] = asyncio.Queue(4 * at_once)

    async def begin() -> None:
        async for job in jobs:
            await begun.put(asyncio.create_task(_answer(asker, job, places)))
        await begun.put(None)

    all_ok = True
    beginning = asyncio.create_task(begin())
    try:
        while task := await begun.get():
            data, lines = await task
            all_ok &= data["ok"]
            tell(as_json, data, *lines)
    finally:
        beginning.cancel()
    return ExitStatus.DONE if all_ok else ExitStatus.NOT_DONE


async def _answer(asker: Asker, job: Job, places: asyncio.Semaphore) -> tuple[dict[str, Any], list[str]]:
    """Return the answer to a request as JSON and as lines."""
    named = {"id": job.id, "image": job.image}
    async with places:
        try:
            if job.trouble:
                raise UsageError(f"This line is not a request: {job.trouble}.")
            seen = Seen(await asyncio.to_thread(read_image, Path(job.image)))
            result, text = await asker.ask(job.instruction, seen, grounding=job.grounding)
        except MaiError as error:
            failure = {"kind": "bad_request" if job.trouble else "not_asked", "message": str(error)}
            return {**named, "ok": False, "error": failure}, [f"{job.image}: no decision: {error}"]
    lines = [f"{job.image}: {line}" for line in decision_lines(result, seen)]
    return {**named, **decision_json(result, text, seen)}, lines


_EXAMPLES = """examples:
  mai-agent act --image shot.png "open the settings"
  mai-agent act --grounding --image shots/*.png --json "the Save button"      many pictures, one process
  mai-agent act --lines < requests.jsonl

A line of standard input is {"image": FILE, "instruction": TEXT}, and may have "grounding": true and an "id".
With several pictures or --lines, --json answers are a line each, in order, with "image" and "id" beside the decision;
what cannot be answered has "error", and the status is 1 at the end."""


@stray_output_kept()
def main(argv: Sequence[str]) -> int:
    """Ask about the screen or each picture, and print the decisions; status 1 when an answer cannot be used."""
    parser = Parser(
        prog="mai-agent act", description="One screenshot, one decision, printed. Nothing is touched.", epilog=_EXAMPLES
    )
    parser.add_argument("instruction", metavar="INSTRUCTION", nargs="?", type=plain_text,
                        help="what to do, or with --grounding what to find")  # fmt: skip
    parser.add_argument("--image", metavar="FILE", dest="images", nargs="+", action="extend", default=[],
                        help="screenshots (default: this screen, captured now)")  # fmt: skip
    parser.add_argument("--lines", action="store_true", help="read requests from standard input, as JSON lines")
    parser.add_argument("--at-once", metavar="N", type=positive, default=8,
                        help="pictures asked about at a time (default: 8)")  # fmt: skip
    parser.add_argument("--grounding", action="store_true", help="ask for a point only")
    parser.add_argument("--monitor", metavar="N", type=int, help="which monitor to capture")
    parser.add_argument("--json", action="store_true", help="print the decision as JSON")
    add_options(parser, "engine")
    arguments = parser.parse_args(argv)
    _check(arguments)
    options = RunOptions.of(arguments, load_settings())
    many = arguments.lines or len(arguments.images) > 1
    seen = None
    if not many:
        seen = Seen(read_image(Path(arguments.images[0]))) if arguments.images else _capture(arguments.monitor)
    engine = chosen_engine(options, NO_GROUNDING if arguments.grounding else None)
    return asyncio.run(_act(arguments, options, engine, seen))


def _check(arguments: argparse.Namespace) -> None:
    """Take a missing instruction from the last picture if it is no file. Raises UsageError if something is missing."""
    if arguments.lines:
        if arguments.images or arguments.instruction is not None:
            raise UsageError("With --lines every line names its picture and its instruction.", "Leave out the others.")
        return
    if arguments.instruction is None and arguments.images and not Path(arguments.images[-1]).is_file():
        arguments.instruction = plain_text(arguments.images.pop())
    if arguments.instruction is None:
        raise UsageError("There is no INSTRUCTION.", 'Say what to do: mai-agent act --image shot.png "open the menu".')


async def _act(arguments: argparse.Namespace, options: RunOptions, engine: Engine, seen: Seen | None) -> int:
    async with AsyncExitStack() as opened:
        asker = Asker(await open_model(engine, options.family, Patience.of(options.patience), opened), options)
        if seen is None:
            jobs = of_lines() if arguments.lines else of_images(arguments)
            status = await answer_all(asker, jobs, arguments.at_once, as_json=arguments.json or arguments.lines)
        else:
            result, text = await asker.ask(arguments.instruction, seen, grounding=arguments.grounding)
            tell(arguments.json, decision_json(result, text, seen), *decision_lines(result, seen))
            status = ExitStatus.DONE if isinstance(result, Decision) else ExitStatus.NOT_DONE
    for name in sorted(asker.others):
        remark(f"Another model answered than was asked for: {name}.")
    return status


def _capture(monitor: int | None) -> Seen:
    from agent.desktop.guard.desktop import GuardedDesktop
    from agent.run.observing.outliner import Outliner
    from agent.safety.stop import StopSwitch
    from agent.screen.ocr import reading_languages

    desktop = GuardedDesktop(open_own_desktop(StopSwitch(), monitor), dry_run=True)
    outliner = Outliner(desktop.open_elements, desktop.open_windows, reading_languages(os.environ)[0])
    try:
        frame = desktop.screen.grab()
        return Seen(frame, outliner.take(frame))
    finally:
        outliner.close()
        desktop.screen.close()
