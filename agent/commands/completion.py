"""`mai-agent completion`: what shells complete, and the man page."""

from collections.abc import Sequence

from agent.commands import COMMANDS, MODULES
from foundation.command_line import completion_main

_ABOUT = "Does what a sentence says on this desktop, with mouse and keyboard."


def main(argv: Sequence[str]) -> int:
    """Print the completions or the man page."""
    return completion_main("mai-agent", _ABOUT, COMMANDS, {"": MODULES["run"], **MODULES}, list(argv))
