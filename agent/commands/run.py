"""`mai-agent "INSTRUCTION"`: its command line, and a run without the terminal application, printed as it goes."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import agent
from agent.commands import COMMANDS
from agent.commands.arguments import add_options, check_sandbox
from foundation.command_line import Parser, plain_text
from foundation.errors import MaiError, UsageError
from foundation.printing import ask_for, is_terminal, remark

if TYPE_CHECKING:
    from agent.model.engines import Engine
    from agent.options import RunOptions

_EPILOG = """\
exit status:
  0 done   1 not done, or not verified   2 wrong usage   3 the machine lacks something   130 you stopped it

examples:
  mai-agent --sandbox "open settings and enable dark mode"
  mai-agent --dry-run "open the text editor and type 'hello'"
  mai-agent --endpoint 127.0.0.1:8000 "turn on night light"

Ctrl-C stops at once, and so do ctrl+alt+shift+escape anywhere (X11, sway), `mai-agent stop` from another terminal, and
on X11 moving the pointer into a corner of the screen.
"""


def _parser() -> Parser:
    commands = "\n".join(f"  {name:9} {description}" for name, description in COMMANDS.items())
    parser = Parser(
        prog="mai-agent",
        usage="mai-agent [options] INSTRUCTION\n       mai-agent COMMAND --help",
        description=f"Does what a sentence says, with mouse and keyboard.\n\ncommands:\n{commands}",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "instruction", nargs="?", metavar="INSTRUCTION", type=plain_text, help="what to do, in a sentence"
    )
    add_run_options(parser)
    parser.add_argument("--web", action="store_true", help="show the run in a browser: prints a link on this machine")
    version = f"mai-agent {agent.__version__}"
    parser.add_argument("--version", action="version", version=version, help="print the version")
    return parser


def add_run_options(parser: Parser) -> None:
    """Add the options of all commands that carry out a run."""
    parser.add_argument("--dry-run", action="store_true", help="decide as far as possible without acting")
    add_options(parser, "policy", titled=False)
    parser.add_argument("--no-tui", action="store_true", help="print plain lines instead of the terminal application")
    parser.add_argument("--json", action="store_true", help="print one event per line as JSON")
    add_options(parser, "desktop", titled=False)
    add_options(parser, "runs", titled=False)
    for group in ("engine", "two models", "sandbox", "limits, history and traces"):
        add_options(parser, group)


def _wants_tui(options: argparse.Namespace) -> bool:
    """Whether a person sits at a terminal; pipes, logs and --json get lines."""
    if options.no_tui or options.json or os.environ.get("TERM") == "dumb":
        return False
    if os.environ.get("TEXTUAL_DRIVER"):  # textual-serve shows the application in a browser, through a pipe
        return True
    return is_terminal("output") and is_terminal("error") and sys.stdin is not None and sys.stdin.isatty()


def read_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments of a run. Raises UsageError."""
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    words = [word for word in rest if not word.startswith("-")]
    if arguments.instruction is not None and rest and words == rest:
        raise UsageError(
            f"The instruction must be one argument, not several: {' '.join([arguments.instruction, *words])[:80]}.",
            'Put it in quotes: mai-agent "open settings and enable dark mode".',
        )
    if rest:
        parser.unrecognized(rest)
    check_sandbox(arguments)
    if arguments.web and (arguments.json or arguments.no_tui):
        raise UsageError("--web shows the run in a browser; --json and --no-tui print it.", "Choose one of them.")
    return arguments


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    return with_event(_main, argv)


def with_event(command: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """Carry out a command that is a run. With --json, print an event even if the run could not begin."""
    try:
        return command(argv)
    except MaiError as error:
        if "--json" in argv:
            from agent.console.printers import JsonPrinter
            from agent.workplace import broken_off

            JsonPrinter().handle(broken_off(error))
        raise


def _main(argv: Sequence[str]) -> int:
    arguments = read_arguments(argv)
    from agent.options import RunOptions
    from agent.settings import load_settings

    options = RunOptions.of(arguments, load_settings())
    if arguments.web:
        from agent.web.start import run_page

        return run_page(options)
    if _wants_tui(arguments):
        from foundation.stray_output import stray_output_kept

        with stray_output_kept():  # libraries that it imports may print as well
            from agent.tui.app import run_application

            return run_application(options)
    return execute(options, as_json=arguments.json)


def execute(
    options: "RunOptions", *, as_json: bool, engine: "Callable[[], Engine] | None" = None, secrets: Sequence[str] = ()
) -> int:
    """Carry out a run, print its events, and return the exit status.

    `engine` opens another engine; `secrets` are texts that no record may hold.
    """
    import asyncio

    from agent.console.printers import JsonPrinter, PlainPrinter
    from agent.console.terminal import Console, terminal_ask
    from agent.safety.stop import StopSwitch, stop_signals
    from agent.workplace import Workplace
    from foundation.stray_output import stray_output_kept

    instruction = _instruction(options.instruction)
    stop = StopSwitch()
    with (
        stray_output_kept(),
        stop_signals(stop),
        Workplace(options, remark, terminal_ask(), offers=not as_json) as workplace,
    ):
        job = workplace.job(instruction, stop, None if engine is None else engine(), secrets)
        with closing(job.recorder):
            console, redactor = Console(stop), job.recorder.redactor
            printer = (JsonPrinter if as_json else PlainPrinter)(redactor=redactor)
            try:
                finished = asyncio.run(job.carry_out(console, stop, printer.handle))
            finally:
                report = job.write_report(remark)
            remark(f"recorded in {job.recorder.path}{report}")
            return finished.status


def _instruction(text: str | None) -> str:
    if text is None and sys.stdin is not None and sys.stdin.isatty():
        ask_for("What shall I do? ")
        text = sys.stdin.readline()
    if text is not None and text.strip():
        return text.strip()
    raise UsageError("There is no instruction.", 'Say what to do: mai-agent "open settings and enable dark mode".')
