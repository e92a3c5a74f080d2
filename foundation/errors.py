"""Errors that are shown to the user: what happened, what to do, and the exit status."""

import re
from enum import IntEnum

#: Python's text of a system's error: "[Errno 2] No such file or directory: '/a/b'".
_ERRNO = re.compile(r"\[Errno -?\d+\] (?P<words>[^:()\[\]]+)(?P<of>: '(?P<path>[^']+)')?")


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
        what = _ERRNO.sub(lambda found: _in_words(found, what), what)
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} {self.remedy}".strip()


def _in_words(found: re.Match[str], what: str) -> str:
    """Return a system error without its number, and without a path that the sentence already names."""
    named = found["path"] is not None and what.count(found["path"]) > 1
    return found["words"] + ("" if named else found["of"] or "")


class UsageError(MaiError):
    """The command line or an input file is not valid."""

    exit_status = ExitStatus.USAGE


class EnvironmentLacksError(MaiError):
    """The machine lacks something: a display, a GPU, a server, a program, a permission, disk space."""

    exit_status = ExitStatus.ENVIRONMENT


class StoppedError(MaiError):
    """The person stopped the run or command."""

    exit_status = ExitStatus.STOPPED
