"""`mai-server completion`: what shells complete, and the man page."""

from foundation.shells import completion_main
from serverctl.commands import COMMANDS

_ABOUT = "Starts, watches, repairs and explains the local vLLM that mai-agent uses."


def main(arguments: list[str]) -> int:
    """Print it."""
    return completion_main(
        "mai-server", _ABOUT, COMMANDS, {name: f"serverctl.commands.{name}" for name in COMMANDS}, arguments
    )
