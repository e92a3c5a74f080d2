"""`mai-agent sandbox`: lists and stops throw-away desktops that were kept, and starts programs in them."""

import argparse
import os
import signal
from collections.abc import Sequence

from foundation.command_line import Parser
from foundation.errors import MaiError, UsageError
from foundation.printing import put


def main(argv: Sequence[str]) -> int:
    """List the desktops, stop a desktop, stop all unused desktops, or start a program in a desktop."""
    parser = Parser(
        prog="mai-agent sandbox",
        description="List or stop throw-away desktops that were kept, or start a program in one.",
        usage="mai-agent sandbox [list]\n       mai-agent sandbox stop [NAME]\n       mai-agent sandbox enter NAME "
        "[PROGRAM ARGUMENT ...]",
        epilog="`mai-agent --sandbox --keep INSTRUCTION` makes one; --sandbox-session and --sandbox-locale (see "
        "mai-agent --help) choose its kind and language.",
    )
    parser.add_argument("what", choices=("list", "stop", "enter"), nargs="?", default="list")
    parser.add_argument("name", nargs="?", help="which one to stop, all of them without a name; or which one to enter")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="what is started in it; a shell without one")
    options = parser.parse_args(argv)
    if options.what == "enter":
        return _enter(options.name, options.program)
    if options.program:
        raise UsageError(f"{options.what} takes no program.", "See mai-agent sandbox --help.")
    if options.what == "list" and options.name:
        raise UsageError("list takes no name.", "See mai-agent sandbox --help.")
    from agent.sandbox.desktop import find_sandboxes, reap_sandboxes, stop_sandbox

    reap_sandboxes()
    found = list(find_sandboxes())
    if options.what == "list":
        for sandbox in found:
            state = "in use" if sandbox.owned else "kept"
            put(f"{sandbox.name}  display {sandbox.display}  {state}  . {sandbox.folder}/environment")
        if not found:
            put("There are no sandboxes.")
        return 0
    names = [options.name] if options.name else [sandbox.name for sandbox in found if not sandbox.owned]
    for name in names:
        stop_sandbox(name)
        put(f"stopped {name}")
    if not names:
        put("There are no unused sandboxes.")
    return 0


def _enter(name: str | None, command: list[str]) -> int:
    if name is None:
        raise UsageError("enter needs the name of a sandbox.", "`mai-agent sandbox list` shows them.")
    from agent.desktop.programs import start_inside
    from agent.sandbox.desktop import environment_of

    environ = environment_of(name)
    command = [word for number, word in enumerate(command) if number or word != "--"] or ["/bin/sh", "-i"]
    terminal = {"TERM": os.environ["TERM"]} if "TERM" in os.environ else {}
    try:
        program = start_inside(command, environ | terminal, stdin=0, stdout=1, stderr=2)
    except OSError as error:
        raise MaiError(f"{command[0]} cannot be started in it ({error.strerror or error}).") from error
    while True:
        try:
            status = program.wait()
            return status if status >= 0 else 128 - status
        except KeyboardInterrupt:
            program.signal(signal.SIGINT)
