"""The command line of `mai-agent`: finds the subcommand and runs it; without one, the words are an instruction."""

import sys
from collections.abc import Sequence

import agent
from agent.commands import COMMANDS, MODULES
from foundation.command_line import meant_by, run_command, say_error
from foundation.errors import ExitStatus, UsageError
from foundation.printing import put


def main(argv: Sequence[str] | None = None) -> int:
    """Run `mai-agent` and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    first = arguments[0] if arguments else ""
    if first in ("--version", "-V"):
        put(f"mai-agent {agent.__version__}")
        return ExitStatus.DONE
    if first == "help":
        return main([*arguments[1:2], "--help"])
    meant = None if " " in first or first.startswith("-") else meant_by(first, [*COMMANDS, "help"])
    if meant is not None:  # otherwise the typo would run as an instruction on the person's own desktop
        slip = UsageError(
            f"There is no command {first[:40]!r}.",
            f"Did you mean {meant}? As an instruction it is: mai-agent run {first[:40]!r}.",
        )
        return say_error("mai-agent", slip)
    name = arguments.pop(0) if first in COMMANDS else "run"
    return run_command("mai-agent", MODULES[name], arguments)
