"""`mai-server watch`: `status --watch` in one word."""

from serverctl.commands import status


def main(arguments: list[str]) -> int:
    """Show servers again every second until Ctrl-C."""
    return status.main(["--watch", *arguments])
