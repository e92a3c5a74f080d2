"""`mai-server watch`: `status --watch` in one word."""

from serverctl.commands import status


def main(arguments: list[str]) -> int:
    """Show servers again every second until Ctrl-C."""
    options = status.make_parser("mai-server watch").parse_args(arguments)
    options.watch = True
    return status.show(options)
