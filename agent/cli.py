"""The command line of `mai-agent`: finds the subcommand and runs it; without one, the words are an instruction."""

import sys
from collections.abc import Sequence

import agent
from agent.commands import COMMANDS, RESERVED
from foundation.dispatch import run_command, say_error
from foundation.errors import EnvironmentLacksError, ExitStatus
from foundation.printing import put


def main(argv: Sequence[str] | None = None) -> int:
    """Run `mai-agent` and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    first = arguments[0] if arguments else ""
    if first in ("--version", "-V"):
        put(f"mai-agent {agent.__version__}")
        return ExitStatus.DONE
    if first in RESERVED:
        lacking = EnvironmentLacksError(f"`mai-agent {first}` is not built yet.", "See --help for what is there.")
        return say_error("mai-agent", lacking)
    name = arguments.pop(0) if first in COMMANDS else "run"
    return run_command("mai-agent", f"agent.commands.{name}", arguments)
