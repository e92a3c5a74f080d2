"""Redirects the output of libraries from the terminal to a log.

C libraries (tesseract, GLib, libEGL, Qt), Python's warnings, tracebacks of threads and child processes write to file
descriptors 1 and 2, over the screen. Both are redirected to a log; only `foundation.printing` and the terminal
application keep the terminal.
"""

import ctypes
import faulthandler
import io
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from foundation import printing
from foundation.configs import state_folder

#: Name of the log for output outside runs, and of the log in each run's folder.
LOG_NAME = "output.log"
#: Bytes at which the log is rotated, and bytes kept from the beginning and the end of a run's log.
_MOST, _HEAD, _TAIL = 1 << 20, 1 << 16, 3 << 16
#: The active logs' descriptors, the innermost last; empty if nothing is redirected.
_logs: list[int] = []


def session_log() -> Path:
    """Return the path of the log for output outside runs."""
    return state_folder() / LOG_NAME


@contextmanager
def stray_output_kept() -> Iterator[None]:
    """Redirect the output of libraries to the log. Do nothing if it is redirected already."""
    if _logs:
        yield
        return
    saved = [os.dup(1), os.dup(2)]
    dunder = sys.__stdout__, sys.__stderr__
    ours = [_stream(descriptor, like) for descriptor, like in zip(saved, (sys.stdout, sys.stderr), strict=True)]
    was_on = faulthandler.is_enabled()
    try:
        with _into(_opened(session_log())):
            printing.own_streams(*ours)
            # The terminal application draws on these.
            sys.__stdout__ = ours[0] or dunder[0]  # type: ignore[misc, assignment]
            sys.__stderr__ = ours[1] or dunder[1]  # type: ignore[misc, assignment]
            faulthandler.enable(file=2)
            yield
    finally:
        sys.__stdout__, sys.__stderr__ = dunder  # type: ignore[misc]
        faulthandler.disable()
        with suppress(OSError, ValueError, RuntimeError, AttributeError):
            if was_on and sys.__stderr__ is not None:
                faulthandler.enable(sys.__stderr__)
        printing.own_streams(None, None)
        _flush()
        for number, descriptor in enumerate(saved, 1):
            os.dup2(descriptor, number)
        for stream in filter(None, ours):
            with suppress(OSError, ValueError):
                stream.flush()
        for descriptor in saved:
            os.close(descriptor)


@contextmanager
def kept_in(path: Path) -> Iterator[None]:
    """Redirect the output to this file instead, if it is redirected. The file is removed if it stays empty."""
    if not _logs:
        yield
        return
    try:
        with _into(_opened(path)):
            yield
    finally:
        with suppress(OSError):
            _shorten(path)


def keep_traceback(error: BaseException) -> Path | None:
    """Append an exception's traceback to the log. Return the log's path, or None if it cannot be written."""
    log = session_log()
    entry = f"\n{time.strftime('%F %T')}\n{''.join(traceback.format_exception(error))}"
    with suppress(OSError), os.fdopen(_opened(log), "wb") as file:
        file.write(entry.encode("utf-8", "backslashreplace"))
    return log if log.is_file() and log.stat().st_size else None


@contextmanager
def _into(log: int) -> Iterator[None]:
    _flush()
    for number in (1, 2):
        os.dup2(log, number)
    _logs.append(log)
    try:
        yield
    finally:
        _flush()
        _logs.pop()
        if _logs:
            for number in (1, 2):
                os.dup2(_logs[-1], number)
        os.close(log)


def _opened(path: Path) -> int:
    """Open a file for appending, or the null device if that fails."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and path.stat().st_size > _MOST:
            path.replace(path.with_name(f"{path.name}.1"))
        return os.open(path, flags, 0o600)
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def _stream(descriptor: int, like: TextIO | None) -> TextIO | None:
    """Return a stream to the original standard output or error; None if Python's stream is redirected."""
    try:
        if like is None or like.fileno() not in (1, 2):
            return None
    except (OSError, ValueError, io.UnsupportedOperation):
        return None
    encoding = getattr(like, "encoding", None) or "utf-8"
    return open(descriptor, "w", encoding=encoding, errors="replace", buffering=1, closefd=False)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)


def _shorten(path: Path) -> None:
    """Remove an empty log; keep the beginning and the end of a long one."""
    size = path.stat().st_size
    if size == 0:
        path.unlink()
    elif size > _HEAD + _TAIL:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            file.seek(-_TAIL, os.SEEK_END)
            path.write_bytes(head + b"\n[...]\n" + file.read())
