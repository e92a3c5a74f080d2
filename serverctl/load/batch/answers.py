"""The answers file: JSON lines, written immediately, and read again to resume a batch."""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Self

from foundation.errors import MaiError, UsageError

#: The beginning of every line. A cut-off last line with another beginning was not written by us.
_BEGINNING = b'{"id": "'
#: Names of broken lines of the request file; a mended line has another name.
_OF_A_LINE = re.compile(r"line \d+")


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one request."""

    id: str  # of the request
    text: str | None = None  # None for a failure
    reasoning: str | None = None  # the model's reasoning, if the server sends it separately
    finish_reason: str | None = None  # "length" when the token limit cut the answer off
    usage: dict[str, int | None] | None = None  # prompt_tokens, completion_tokens, cached_tokens; None is unknown
    seconds: float | None = None  # of the request that was answered
    kind: str = ""  # of a failure, for programs
    message: str = ""  # of a failure, for people

    @property
    def ok(self) -> bool:
        """Whether there is an answer."""
        return self.text is not None

    def line(self) -> bytes:
        """As a line of the answers file."""
        document: dict[str, Any] = {"id": self.id, "ok": self.ok}
        if self.ok:
            reasoning = {"reasoning": self.reasoning} if self.reasoning else {}
            seconds = None if self.seconds is None else round(self.seconds, 3)
            document |= {"text": self.text, **reasoning, "finish_reason": self.finish_reason}
            document |= {"usage": self.usage or {}, "seconds": seconds}
        else:
            document |= {"error": {"kind": self.kind, "message": self.message}}
        try:
            return json.dumps(document, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError:  # models sometimes write half of a character
            return json.dumps(document).encode() + b"\n"


class AnswersFile:
    """The answers of one batch; a context manager that locks the file.

    Opening it reads the earlier answers, and removes a last line that was cut off.

    Raises:
        UsageError: it is not an answers file, another batch writes to it, or it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.answered: set[str] = set()
        self.failed: set[str] = set()
        self._path = path
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is not a file.", "Answers need a file, so that a batch can go on.")
        try:
            self._file = path.open("a+b", buffering=0)  # unbuffered, so that write errors appear at once
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror or error}.", "Name another --out.") from error
        try:
            _lock(self._file, path)
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read(self) -> None:
        """Learn which requests are answered, and remove a last line that was cut off."""
        good_until, raw = 0, b"\n"
        with self._path.open("rb") as lines:
            for number, raw in enumerate(lines, 1):
                if (outcome := _outcome(raw)) is not None:
                    (self.answered if outcome[1] else self.failed).add(outcome[0])
                elif not raw.endswith(b"\n"):
                    cut = raw.rstrip(b"\0")  # a power cut can leave zeros at the end
                    if not (cut.startswith(_BEGINNING) or _BEGINNING.startswith(cut)):
                        raise self._foreign("its last line")
                    self._file.truncate(good_until)
                    return
                elif raw.strip():
                    raise self._foreign(f"line {number}")
                good_until += len(raw)
        if not raw.endswith(b"\n"):  # complete except for the line end
            self._append(b"\n")

    def _foreign(self, where: str) -> UsageError:
        return UsageError(
            f"{self._path}: {where} is not an answer of a batch, so nothing is written there.",
            "Name another file with --out, or take that line away.",
        )

    def forget_failures(self, ids: Iterable[str]) -> None:
        """Remove the failures that will be retried, so that every request has one line in the end.

        The file is replaced atomically.
        """
        again = self.failed & (set(ids) | self.answered | {name for name in self.failed if _OF_A_LINE.fullmatch(name)})
        if not again:
            return
        replacement = self._path.with_name(f".{self._path.name}.new")
        try:
            with self._path.open("rb") as lines, replacement.open("wb") as new:
                for raw in filter(bytes.strip, lines):
                    document = json.loads(raw)
                    if document["ok"] or document["id"] not in again:
                        new.write(raw)
                new.flush()
                os.fsync(new.fileno())
            replacement.chmod(self._path.stat().st_mode & 0o777)
            held = replacement.open("a+b", buffering=0)
            _lock(held, replacement)
            replacement.replace(self._path)
        except OSError as error:
            raise self._unwritable(error) from error
        self._file.close()
        self._file = held
        self.failed -= again

    def write(self, answer: Answer) -> None:
        """Write an answer immediately. Raises MaiError on failure (a full disk)."""
        self._append(answer.line())
        (self.answered if answer.ok else self.failed).add(answer.id)

    def _append(self, data: bytes) -> None:
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> MaiError:
        return MaiError(
            f"{self._path} cannot be written: {error.strerror or error}.",
            "Make room there and run the same command again: it goes on where it stopped.",
        )


def _outcome(raw: bytes) -> tuple[str, bool] | None:
    """Return a line's id, and whether it has an answer; None if we did not write it."""
    try:
        document = json.loads(raw)
    except ValueError:
        return None
    match document:
        case {"id": str(name), "ok": bool(ok)}:
            return name, ok
    return None


def _lock(file: FileIO, path: Path) -> None:
    """Lock the file for this process as long as it is open."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where no vLLM runs either
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        replaced = os.fstat(file.fileno()).st_ino != path.stat().st_ino
    except BlockingIOError:
        replaced = True
    except OSError:  # a network file system without locks
        return
    if replaced:
        raise UsageError(f"Another batch is writing to {path}.", "Wait for it, or name another file with --out.")
