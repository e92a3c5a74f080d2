"""Errors that are shown to the user: what happened, what to do, and the exit status."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit statuses of both commands; scripts depend on them."""

    DONE = 0
    NOT_DONE = 1
    USAGE = 2
    ENVIRONMENT = 3
    STOPPED = 130


class MaiError(Exception):
    """An error in two sentences: what happened, and what to do ("" if nothing)."""

    exit_status: ExitStatus = ExitStatus.NOT_DONE

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} {self.remedy}".strip()


class UsageError(MaiError):
    """The command line or an input file is not valid."""

    exit_status = ExitStatus.USAGE


class EnvironmentLacksError(MaiError):
    """The machine lacks something: a display, a GPU, a server, a program, a permission, disk space."""

    exit_status = ExitStatus.ENVIRONMENT


class StoppedError(MaiError):
    """The person stopped the run or command."""

    exit_status = ExitStatus.STOPPED
