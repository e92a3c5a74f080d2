"""Carries out `mai-agent "INSTRUCTION"` without the terminal application: prints the events of one run as they come."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Protocol

from agent.console import Console, StopSignals
from agent.model.client import Usage
from agent.model.serving import terminal_ask
from agent.run.events import Event, RunFinished
from agent.safety.signals import SignalWatch
from agent.safety.stop import StopSwitch
from agent.settings import Settings, load_settings
from agent.workplace import Job, Workplace
from foundation.errors import EnvironmentLacksError, ExitStatus, MaiError, StoppedError, UsageError


class Printer(Protocol):
    """Something that shows events."""

    def handle(self, event: Event) -> None:
        """Show one event."""
        ...


def execute(options: argparse.Namespace) -> int:
    """Run it, and return the exit status."""
    settings = load_settings()
    instruction = _instruction(options.instruction)
    stop = StopSwitch()
    with StopSignals(stop), SignalWatch(stop):
        return _run(options, settings, instruction, stop)


def _instruction(given: str | None) -> str:
    if given is not None and given.strip():
        return given.strip()
    if given is None and sys.stdin is not None and sys.stdin.isatty():
        print("What shall I do? ", end="", file=sys.stderr, flush=True)
        given = sys.stdin.readline()
        if given.strip():
            return given.strip()
    raise UsageError("There is no instruction.", 'Say what to do: mai-agent "open settings and enable dark mode".')


def _run(options: argparse.Namespace, settings: Settings, instruction: str, stop: StopSwitch) -> int:
    from agent.plain import JsonPrinter, PlainPrinter

    with Workplace(options, settings, _say, terminal_ask()) as workplace:
        job = workplace.job(instruction, stop)
        with closing(job.recorder):
            redactor = job.recorder.redactor
            printer: Printer = JsonPrinter(redactor=redactor) if options.json else PlainPrinter(redactor=redactor)
            try:
                status = asyncio.run(_follow(job, printer, stop))
            finally:
                report = write_report_of(job.recorder.path, _say)
            workplace.tell_changes()
            _say(f"recorded in {job.recorder.path}{report}")
            return status


#: A report of more steps takes longer than a person waits without a word.
_MANY_STEPS = 100


def write_report_of(bundle: Path, tell: Callable[[str], None]) -> str:
    """Write a bundle's report; words for the line that says where the run is, "" where it could not be written."""
    from agent.record.report import write_report

    try:
        if len(list((bundle / "screens").iterdir())) > _MANY_STEPS:
            tell("writing the report ...")
        return f" (report: {write_report(bundle).path.name})"
    except (MaiError, OSError) as error:
        tell(f"The report could not be written: {error}")
        return ""


async def _follow(job: Job, printer: Printer, stop: StopSwitch) -> int:
    """Give every event to the recorder and the printer; the run's exit status."""
    from agent.run.session import run

    console = Console(stop)
    status: int = ExitStatus.NOT_DONE
    events = run(job.request, console, console, stop)
    try:
        async for event in events:
            job.recorder.handle(event)
            _print(printer, event)
            if isinstance(event, RunFinished):
                status = event.status
    except (MaiError, BrokenPipeError) as error:
        await events.aclose()  # type: ignore[attr-defined]  # an async generator
        job.recorder.abandon(broken_off(error))
        raise
    return status


def broken_off(error: BaseException) -> RunFinished:
    """The end of a run that an error ended before the loop could."""
    stopped = isinstance(error, StoppedError)
    known = error.exit_status if isinstance(error, MaiError) else ExitStatus.NOT_DONE
    return RunFinished("stopped" if stopped else "failed", known, str(error), 0, 0.0, Usage())


def _print(printer: Printer, event: Event) -> None:
    try:
        printer.handle(event)
    except BrokenPipeError:  # the reader went away, as `head` does: nothing to tell
        raise
    except OSError as error:
        sys.stdout = None  # or the rest is written, and fails, once more at exit
        raise EnvironmentLacksError(
            f"The output cannot be written ({error.strerror or error}).", "Is there space where it goes?"
        ) from error


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
