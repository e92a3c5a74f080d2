"""`mai-agent "INSTRUCTION"`: its command line. What it does is in `agent.commands.running`, imported when needed."""

import argparse
import os
import sys
from collections.abc import Sequence

import agent
from agent.commands import COMMANDS
from agent.commands.arguments import add_options, check_sandbox
from foundation.command_line import Parser, plain_text
from foundation.errors import UsageError
from foundation.printing import is_terminal

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
    commands = "\n".join(f"  {name:9} {what}" for name, what in COMMANDS.items())
    parser = Parser(
        prog="mai-agent",
        usage="mai-agent [options] INSTRUCTION\n       mai-agent COMMAND --help",
        description=f"Says in one sentence, done with mouse and keyboard.\n\ncommands:\n{commands}",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "instruction", nargs="?", metavar="INSTRUCTION", type=plain_text, help="what to do, in a sentence"
    )
    parser.add_argument("--dry-run", action="store_true", help="decide everything, touch nothing")
    add_options(parser, "policy", titled=False)
    parser.add_argument("--no-tui", action="store_true", help="print plain lines instead of the terminal application")
    parser.add_argument("--json", action="store_true", help="print one event per line as JSON")
    add_options(parser, "desktop", titled=False)
    version = f"mai-agent {agent.__version__}"
    parser.add_argument("--version", action="version", version=version, help="print the version")
    add_options(parser, "runs", titled=False)
    for group in ("engine", "two models", "sandbox", "limits and history"):
        add_options(parser, group)
    return parser


def _wants_tui(options: argparse.Namespace) -> bool:
    """The application is for a person at a terminal; pipes, logs and --json get lines."""
    if options.no_tui or options.json or os.environ.get("TERM") == "dumb":
        return False
    if os.environ.get("TEXTUAL_DRIVER"):  # served to a browser by textual-serve: a person looks at a pipe's end
        return True
    return is_terminal("output") and is_terminal("error") and sys.stdin is not None and sys.stdin.isatty()


def _given(argv: Sequence[str]) -> argparse.Namespace:
    """What the command line says. Raises UsageError."""
    parser = _parser()
    given, rest = parser.parse_known_args(argv)
    words = [word for word in rest if not word.startswith("-")]
    if given.instruction is not None and rest and words == rest:
        raise UsageError(
            f"Several arguments stand where the instruction is one: {' '.join([given.instruction, *words])[:80]}.",
            'Put it in quotes: mai-agent "open settings and enable dark mode".',
        )
    if rest:
        parser.unrecognized(rest)
    check_sandbox(given)
    return given


def main(argv: Sequence[str]) -> int:
    """Run it."""
    given = _given(argv)
    from agent.options import RunOptions
    from agent.settings import load_settings

    options = RunOptions.of(given, load_settings())
    if _wants_tui(given):
        from agent.tui.start import run_application

        return run_application(options)
    from agent.commands.running import execute

    return execute(options, as_json=given.json)
