"""The argument parser of every subcommand: one look of help, one kind of error."""

import argparse
from typing import NoReturn

from foundation.errors import UsageError


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps examples as they are written, and gives option names room."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=110)


class Parser(argparse.ArgumentParser):
    """Turns argparse's complaints into our errors, so that every command fails alike."""

    def error(self, message: str) -> NoReturn:
        """One sentence what, one sentence where to read on."""
        raise UsageError(f"{message[0].upper()}{message[1:]}.", f"See {self.prog} --help.")
