"""`mai-agent completion`: what shells complete, and the man page."""

from collections.abc import Sequence

from agent.commands import COMMANDS, module_of
from foundation.shells import completion_main

_ABOUT = "Does on this desktop, with mouse and keyboard, what a sentence says."


def main(argv: Sequence[str]) -> int:
    """Print it."""
    modules = {name: module_of(name) for name in COMMANDS}
    return completion_main("mai-agent", _ABOUT, COMMANDS, {"": module_of("run"), **modules}, list(argv))
