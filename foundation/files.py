"""Writes small files atomically, reads untrusted ones, and appends to files of JSON lines."""

import errno
import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from io import FileIO
from pathlib import Path
from typing import Any, Self

from foundation.errors import EnvironmentLacksError, UsageError

#: The beginning of every JSON line. A cut-off last line with another beginning was not written by us.
_BEGINNING = b'{"id": "'


def write_atomically(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Replace a file completely or not at all, by a hidden file beside it with our PID as suffix.

    Text is written as UTF-8, and the umask applies to the mode. Raises OSError; UnicodeEncodeError for lone surrogates.
    """
    content = data.encode("utf-8") if isinstance(data, str) else data
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(draft, flags, mode), "wb") as file:
            file.write(content)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise


def write_file(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Replace a file that a person named, as `write_atomically` does. Raises EnvironmentLacksError.

    Replaces the target of a link, not the link. Writes directly to a device or a pipe.
    """
    try:
        target = path.resolve()
        if target.is_dir():
            raise IsADirectoryError
        if target.exists() and not target.is_file():
            target.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
        else:
            write_atomically(target, data, mode)
    except OSError as error:
        raise cannot_write(path, error) from error


def is_full(error: OSError) -> bool:
    """Return whether a disk or quota is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def cannot_write(path: Path, error: OSError) -> EnvironmentLacksError:
    """Return why a file could not be written, with what to do about it."""
    if isinstance(error, FileNotFoundError | NotADirectoryError) and not path.parent.is_dir():
        return EnvironmentLacksError(f"There is no folder {path.parent}.", "Make it first, or name a file elsewhere.")
    if path.is_dir():
        return EnvironmentLacksError(f"{path} is a folder.", "Name a file in it.")
    advice = "Free some space there, or name a file elsewhere." if is_full(error) else "Check its permissions."
    return EnvironmentLacksError(f"{path} cannot be written ({error.strerror or error}).", advice)


def keep_json(path: Path, document: dict[str, Any]) -> None:
    """Replace a JSON file of cached facts. Errors of the disk are ignored."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(document, indent=1, sort_keys=True))


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if it cannot be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def read_lines(path: Path, kind: str, take: Callable[[dict[str, Any]], object]) -> int:
    """Give each object of a file to `take`. Return where the last whole line ends, in bytes.

    `kind` names what a line should be, such as "an answer"; `take` raises ValueError, TypeError or KeyError for
    anything else. A last line that was cut off is skipped. Raises UsageError if another line is something else, OSError
    if the file cannot be read.
    """
    end = 0
    with path.open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            try:
                if raw.strip():
                    take(json.loads(raw))
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                cut = raw.rstrip(b"\0")  # a power cut can leave zeros at the end
                if not raw.endswith(b"\n") and (cut.startswith(_BEGINNING) or _BEGINNING.startswith(cut)):
                    return end
                advice = "Remove that line, or name another file or folder with --out."
                raise UsageError(f"{path}, line {number} is not {kind}.", advice) from error
            end += len(raw)
    return end


class JsonLines:
    """A file of JSON objects, a line each: locked, written immediately, and resumable after a kill at any byte.

    A context manager. Existing lines are given to `take` first.

    Args:
        path, kind, take: see `read_lines`. A last line that was cut off is removed.
        writer: the writer's name in messages, such as "fleet".

    Raises:
        UsageError: another process writes to the file, or it holds something else.
        EnvironmentLacksError: it cannot be written.
    """

    def __init__(self, path: Path, kind: str, take: Callable[[dict[str, Any]], object], writer: str) -> None:
        self.path, self._writer = path, writer
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is not a file.", "Only a file lets the same command resume.")
        try:
            self._file = FileIO(path, "a+")
            with ExitStack() as failed:
                failed.callback(self._file.close)
                self._lock(self._file, path)
                self._file.truncate(end := read_lines(path, kind, take))
                if end and os.pread(self._file.fileno(), 1, end - 1) != b"\n":  # only the last line end is missing
                    self._append(b"\n")
                failed.pop_all()
        except OSError as error:
            raise cannot_write(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, and so unlock it."""
        self._file.close()

    def append(self, document: Mapping[str, Any]) -> None:
        """Write a line, which begins with its "id". Raises EnvironmentLacksError (a full disk)."""
        try:
            data = json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # models sometimes write half of a character
            data = json.dumps(document).encode()
        self._append(data + b"\n")

    def drop(self, unwanted: Callable[[dict[str, Any]], bool]) -> None:
        """Remove lines, all or none of them, without letting go of the lock. Raises EnvironmentLacksError."""
        new = self.path.with_name(f".{self.path.name}.new")
        try:
            with self.path.open("rb") as lines, new.open("wb") as replacement:
                replacement.writelines(raw for raw in filter(bytes.strip, lines) if not unwanted(json.loads(raw)))
                replacement.flush()
                os.fsync(replacement.fileno())
            new.chmod(self.path.stat().st_mode & 0o777)
            held = FileIO(new, "a+")
            self._lock(held, new)
            new.replace(self.path)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self._file.close()
        self._file = held

    def _append(self, data: bytes) -> None:
        try:
            while data:
                data = data[self._file.write(data) or 0 :]
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def _lock(self, file: FileIO, path: Path) -> None:
        """Lock the file for this process as long as it is open."""
        try:
            import fcntl
        except ImportError:  # not on Windows
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            replaced = os.fstat(file.fileno()).st_ino != path.stat().st_ino
        except BlockingIOError:
            replaced = True
        except OSError:  # a network file system without locks
            return
        if replaced:
            raise UsageError(f"Another {self._writer} is writing to {path}.", "Wait for it, or name another --out.")
