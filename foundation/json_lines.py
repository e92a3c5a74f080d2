"""Files of JSON objects, one per line: locked, written immediately, and resumable after a kill at any byte."""

import json
import os
from collections.abc import Callable, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Self

from foundation.errors import UsageError
from foundation.files import cannot_write

#: The beginning of every line. A cut-off last line with another beginning was not written by us.
_BEGINNING = b'{"id": "'


def read_lines(path: Path, kind: str, take: Callable[[dict[str, Any]], object]) -> int:
    """Give each object of a file to `take`. Return where the last whole line ends, in bytes.

    Args:
        path: the file.
        kind: what a line is, such as "an answer".
        take: raises ValueError, TypeError or KeyError for an object of another kind.

    Raises:
        UsageError: a line is something else.
        OSError: the file cannot be read.
    """
    end = 0
    with path.open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            try:
                document = json.loads(raw)
                if not isinstance(document, dict):
                    raise TypeError("no object")
                take(document)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                cut = raw.rstrip(b"\0")  # a power cut can leave zeros at the end
                if not raw.endswith(b"\n") and (cut.startswith(_BEGINNING) or _BEGINNING.startswith(cut)):
                    return end
                if raw.strip():
                    advice = "Remove that line, or name another file or folder with --out."
                    raise UsageError(f"{path}, line {number} is not {kind}.", advice) from error
            end += len(raw)
    return end


class JsonLines:
    """A file open for appending, and locked; a context manager. Existing lines are given to `take` first.

    Args:
        path, kind, take: see `read_lines`. A last line that was cut off is removed.
        writer: what writes such files, such as "fleet".

    Raises:
        UsageError: another process writes to the file, or it holds something else.
        EnvironmentLacksError: it cannot be written.
    """

    def __init__(self, path: Path, kind: str, take: Callable[[dict[str, Any]], object], writer: str) -> None:
        self.path, self._writer = path, writer
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is not a file.", "It must be one, so that the same command can go on.")
        try:
            self._file = FileIO(path, "a+")
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            self._lock(self._file, path)
            self._file.truncate(end := read_lines(path, kind, take))
            if end and os.pread(self._file.fileno(), 1, end - 1) != b"\n":  # only the last line end is missing
                self._append(b"\n")
        except OSError as error:
            self._file.close()
            raise cannot_write(path, error) from error
        except BaseException:
            self._file.close()
            raise

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
                for raw in filter(bytes.strip, lines):
                    if not unwanted(json.loads(raw)):
                        replacement.write(raw)
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
