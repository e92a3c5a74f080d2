"""Runs a batch: several requests at once, each read when its turn comes, each answer on disk at once.

This is the only place of a batch where a request is retried. The answers file is read again to resume it.
"""

import asyncio
import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from foundation.chat_stream import AnswerReader
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import JsonLines
from serverctl.load.batch.lines import ImageError, LineError, Request, parse_request, prepare
from serverctl.load.client import TRANSIENT, Endpoint, Failure, ServerGoneError, explain, is_alive
from serverctl.load.tasks import EndedEarlyError, together, unless_stopped

if TYPE_CHECKING:
    from openai import AsyncOpenAI


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
        known = {*ids, *self.answered}
        if again := {name for name in self.failed if name in known}:
            self.drop(lambda document: not document["ok"] and document["id"] in again)
            self.failed -= again

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line immediately. Raises EnvironmentLacksError on failure (a full disk)."""
        self.append(line)
        (self.answered if line["ok"] else self.failed).add(line["id"])


#: Pause before the first retry, in seconds; doubled each time, up to the most.
_BACKOFF_S = 0.5
_MOST_BACKOFF_S = 30.0


@dataclass(slots=True)
class Asker:
    """Asks an OpenAI-compatible server, many requests at once."""

    client: "AsyncOpenAI"
    endpoint: Endpoint
    retries: int  # after transient failures: a lost connection, no room, a server's own error
    say: Callable[[str], None]  # receives a message when the server must be waited for
    waiting: bool = False

    async def ask(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """The line of a request's answer or failure. Raises EnvironmentLacksError if every request would fail alike."""
        for attempt in range(self.retries + 1):
            began = time.monotonic()
            try:
                completion = await self.client.chat.completions.create(model=self.endpoint.model, **request)
                answer = _answered(name, completion, time.monotonic() - began)
                self.waiting = False
                return answer
            except Exception as error:  # whatever the transport or the JSON reader raises
                failure = explain(error)
            if failure.kind not in TRANSIENT or attempt == self.retries:
                break
            if failure.kind == "unreachable" and not self.waiting:
                self.waiting = True
                self.say(f"{failure.message} Trying again.")
            pause = min(_BACKOFF_S * 2**attempt, _MOST_BACKOFF_S)
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311  # so that not all come back at once
        await self._check_server(failure)
        return _failed(name, failure.kind, failure.message)

    async def _check_server(self, failure: Failure) -> None:
        """Raise if every other request would fail alike."""
        if failure.kind in ("bad_key", "unknown_model"):
            raise EnvironmentLacksError(failure.message, "Name the right --api-key and --model.")
        if failure.kind in TRANSIENT and not await is_alive(self.endpoint):
            raise ServerGoneError(
                f"The server at {self.endpoint.base_url} is gone ({failure.message})",
                "Start it again (`mai-server up`), then run the same command: it goes on where it stopped.",
            )


def _answered(name: str, completion: Any, seconds: float) -> dict[str, Any]:
    """Return the line of an answer; unknown counts of tokens are null. Raises ValueError if a completion holds none."""
    reader = AnswerReader(max_chars=sys.maxsize)  # all of it is here already
    reader.take(completion)
    answer = reader.answer()
    usage = answer.usage
    if not (answer.content or answer.reasoning or answer.finish_reason):
        raise ValueError("there is no answer in it")
    reasoning = {"reasoning": answer.reasoning} if answer.reasoning else {}  # if the server sends it separately
    return {
        "id": name, "ok": True, "text": answer.content, **reasoning,
        "finish_reason": answer.finish_reason,  # "length" when the token limit cut the answer off
        "usage": {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion, "cached_tokens": usage.cached},
        "seconds": round(seconds, 3),
    }  # fmt: skip


def _failed(name: str, kind: str, message: str) -> dict[str, Any]:
    """Return the line of a failure: its kind is for programs, its message for people."""
    return {"id": name, "ok": False, "error": {"kind": kind, "message": message}}


@dataclass(slots=True)
class Outcome:
    """The result of a batch."""

    total: int  # requests of the file
    before: int  # answered in earlier runs
    answered: int = 0  # in this run
    cut_off: int = 0  # answers of this run that the token limit cut off
    errors: Counter[str] = field(default_factory=Counter)  # failures of this run, by kind
    stopped: bool = False  # whether a person ended it early

    @property
    def failed(self) -> int:
        """Requests of this run without an answer."""
        return self.errors.total()


@dataclass(slots=True)
class Batch:
    """One batch."""

    requests: Path  # the request file
    ids: dict[int, str]  # of its requests, by their lines
    answers: AnswersFile
    defaults: Mapping[str, Any]  # for lines that do not set them
    on_progress: Callable[["Outcome"], None]  # called at the beginning, and after each answer
    todo: dict[int, str] = field(init=False)  # ids of the requests without an answer, by their lines
    outcome: Outcome = field(init=False)

    def __post_init__(self) -> None:
        self.todo = {line: name for line, name in self.ids.items() if name not in self.answers.answered}
        self.outcome = Outcome(len(self.ids), before=len(self.ids) - len(self.todo))

    def begin(self) -> None:
        """Forget failures that are tried again. Raises MaiError (a full disk)."""
        self.answers.forget_failures(self.todo.values())
        self.on_progress(self.outcome)

    async def run(self, asker: Asker, concurrency: int, soon: asyncio.Event, now: asyncio.Event) -> Outcome:
        """Send the unanswered requests, `concurrency` at once, with only their images in memory.

        If `soon` is set, no request is begun; if `now` is set, running requests are aborted and left for another run.

        Raises MaiError if the server is gone, the disk is full, or the request file was changed meanwhile.
        """
        with self.requests.open("rb") as file:
            left = self._read(file)
            workers = [self._work(left, asker, soon) for _ in range(min(concurrency, len(self.todo)))]
            with suppress(EndedEarlyError):
                await unless_stopped(now, together(workers))
        self.outcome.stopped = self.outcome.answered + self.outcome.failed < len(self.todo)
        return self.outcome

    async def _work(self, left: Iterator[Request], asker: Asker, soon: asyncio.Event) -> None:
        while not soon.is_set() and (request := next(left, None)) is not None:
            try:
                sent = await asyncio.to_thread(prepare, request, self.requests.parent, self.defaults)
            except ImageError as error:
                self._keep(_failed(request.id, "image", f"{error}."))
            else:
                self._keep(await asker.ask(request.id, sent))

    def _read(self, file: BinaryIO) -> Iterator[Request]:
        """Yield the requests without an answer. Raises UsageError if the file changed since it was checked."""
        last = 0
        for line, name in self.todo.items():
            raw = next(itertools.islice(file, line - last - 1, None), b"")
            last, request = line, None
            with suppress(LineError):
                request = parse_request(raw, line)
            if request is None or request.id != name:
                raise UsageError(
                    f"{self.requests} was changed while it was worked on (line {line}).",
                    "Run the same command again: what is answered stays answered.",
                )
            yield request

    def _keep(self, line: Mapping[str, Any]) -> None:
        self.answers.write(line)
        if line["ok"]:
            self.outcome.answered += 1
            self.outcome.cut_off += line["finish_reason"] == "length"
        else:
            self.outcome.errors[line["error"]["kind"]] += 1
        self.on_progress(self.outcome)
