"""The argument parser and the argument types of every command: one look of help, one kind of error."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from foundation.errors import UsageError

Number = TypeVar("Number", int, float)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are usage errors; texts that have line breaks are shown as they are written."""

    def __init__(self, prog: str, *, description: str = "", epilog: str = "", **more: Any) -> None:
        if "\n" in description + epilog:
            more.setdefault("formatter_class", _AsWritten)
        super().__init__(prog, description=description, epilog=epilog, **more)

    def error(self, message: str) -> NoReturn:
        """Raises UsageError where argparse would print and exit."""
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", f"See {self.prog} --help.")


class _AsWritten(argparse.RawDescriptionHelpFormatter):
    """Keeps examples as they are written, and gives option names room."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=110)


def _read(kind: Callable[[str], Number], text: str, what: str) -> Number:
    try:
        return kind(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not {what}: {text!r}") from error


def positive(text: str) -> int:
    """An argument that is a whole number of at least 1."""
    value = _read(int, text, "a whole number")
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def positive_seconds(text: str) -> float:
    """An argument that is a number of seconds above 0."""
    value = _read(float, text, "a number of seconds")
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"must be above 0, not {text}")
    return value


def port_number(text: str) -> int:
    """An argument that is a port."""
    value = _read(int, text, "a number")
    if not 1 <= value <= 65_535:
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, so {value} is no port")
    return value
