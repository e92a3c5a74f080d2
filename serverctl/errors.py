"""Errors that reach a person: each says what happened and what to do, and knows its exit status.

The twin of `agent.errors`; `serverctl` never imports `agent`, and the two commands share exit statuses.
"""

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit statuses of `mai-server`; scripts depend on them."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    ENVIRONMENT = 3
    STOPPED = 130


class ServerError(Exception):
    """Something a person must be told, in two sentences.

    Args:
        what: one sentence: what happened.
        remedy: one sentence: what to do about it; empty where nothing can be done.
    """

    exit_status: ExitStatus = ExitStatus.FAILED

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} {self.remedy}".strip()


class UsageError(ServerError):
    """The command line or an input file is not what the command takes."""

    exit_status = ExitStatus.USAGE


class EnvironmentLacksError(ServerError):
    """The machine lacks something: a GPU, a driver, vLLM, disk space, a server that runs."""

    exit_status = ExitStatus.ENVIRONMENT


class StoppedError(ServerError):
    """The person stopped the command."""

    exit_status = ExitStatus.STOPPED
