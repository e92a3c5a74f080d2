"""Carries out `mai-agent "INSTRUCTION"` without the terminal application: prints the events of one run as they come."""

import asyncio
import sys
from contextlib import closing

from agent.console.terminal import Console, say, terminal_ask
from agent.events.run_events import Event
from agent.events.sink import Emit
from agent.options import RunOptions
from agent.safety.signals import stop_signals
from agent.safety.stop import StopSwitch
from agent.workplace import Workplace
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.printing import ask_for, close_output, is_terminal
from foundation.stray_output import stray_output_kept


def execute(options: RunOptions, *, as_json: bool) -> int:
    """Run it, and return the exit status."""
    from agent.console.printers import JsonPrinter, PlainPrinter

    instruction = _instruction(options.instruction)
    stop = StopSwitch()
    with stray_output_kept(), stop_signals(stop), Workplace(options, say, terminal_ask()) as workplace:
        job = workplace.job(instruction, stop)
        with closing(job.recorder):
            console, redactor = Console(stop), job.recorder.redactor
            asked_here = console.interactive and is_terminal("output") and not options.dry_run
            printer = (
                JsonPrinter(redactor=redactor) if as_json else PlainPrinter(redactor=redactor, asked_here=asked_here)
            )
            show = printer.handle
            try:
                finished = asyncio.run(job.carry_out(console, stop, lambda event: _show(show, event)))
            finally:
                report = job.write_report(say)
            workplace.tell_changes()
            say(f"recorded in {job.recorder.path}{report}")
            return finished.status


def _instruction(given: str | None) -> str:
    if given is not None and given.strip():
        return given.strip()
    if given is None and sys.stdin is not None and sys.stdin.isatty():
        ask_for("What shall I do? ")
        given = sys.stdin.readline()
        if given.strip():
            return given.strip()
    raise UsageError("There is no instruction.", 'Say what to do: mai-agent "open settings and enable dark mode".')


def _show(show: Emit, event: Event) -> None:
    try:
        show(event)
    except BrokenPipeError:  # the reader went away, as `head` does: nothing to tell
        raise
    except OSError as error:
        close_output()  # or the rest is written, and fails, once more at exit
        raise EnvironmentLacksError(
            f"The output cannot be written ({error.strerror or error}).", "Is there space where it goes?"
        ) from error
