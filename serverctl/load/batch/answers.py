"""The answers file of a batch: JSON lines, read again to resume it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foundation.files import JsonLines

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

    def document(self) -> dict[str, Any]:
        """As a line of the answers file."""
        document: dict[str, Any] = {"id": self.id, "ok": self.ok}
        if not self.ok:
            return document | {"error": {"kind": self.kind, "message": self.message}}
        reasoning = {"reasoning": self.reasoning} if self.reasoning else {}
        seconds = None if self.seconds is None else round(self.seconds, 3)
        document |= {"text": self.text, **reasoning, "finish_reason": self.finish_reason}
        return document | {"usage": self.usage or {}, "seconds": seconds}


class AnswersFile(JsonLines):
    """The answers of one batch."""

    def __init__(self, path: Path) -> None:
        self.answered: set[str] = set()
        self.failed: set[str] = set()
        super().__init__(path, "an answer of a batch", self._take, "batch")

    def _take(self, document: dict[str, Any]) -> None:
        match document:
            case {"id": str(name), "ok": bool(ok)}:
                (self.answered if ok else self.failed).add(name)
            case _:
                raise ValueError("no answer")

    def forget_failures(self, ids: Iterable[str]) -> None:
        """Remove the failures that will be retried, so that every request has one line in the end."""
        again = self.failed & (set(ids) | self.answered | {name for name in self.failed if _OF_A_LINE.fullmatch(name)})
        if again:
            self.drop(lambda document: not document["ok"] and document["id"] in again)
            self.failed -= again

    def write(self, answer: Answer) -> None:
        """Write an answer immediately. Raises EnvironmentLacksError on failure (a full disk)."""
        self.append(answer.document())
        (self.answered if answer.ok else self.failed).add(answer.id)
