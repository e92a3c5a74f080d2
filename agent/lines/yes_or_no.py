"""A yes-or-no question on the terminal, before a run has begun: may something be installed?"""

import sys
from collections.abc import Callable


def terminal_ask() -> Callable[[str], bool] | None:
    """Asks on the terminal; None where there is none."""
    there = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return _ask if there else None


def _ask(question: str) -> bool:
    print(f"{question} [Y/n] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("", "y", "yes")
