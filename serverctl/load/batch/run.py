"""Carries a batch out: so many requests at once, each read when its turn comes, each answer on disk at once."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from foundation.errors import UsageError
from serverctl.load.batch.answers import Answer, AnswersFile
from serverctl.load.batch.ask import Asker
from serverctl.load.batch.lines import Entry, Index, LineError, Request, parse_request
from serverctl.load.batch.prepare import Defaults, Fit, ImageError, prepare
from serverctl.load.batch.progress import Progress
from serverctl.load.tasks import EndedEarlyError, together, unless_stopped


@dataclass(slots=True)
class Stop:
    """How a batch is ended from outside."""

    soon: asyncio.Event = field(default_factory=asyncio.Event)  # nothing new is begun, what is under way is finished
    now: asyncio.Event = field(default_factory=asyncio.Event)  # what is under way is given up, and asked another time


@dataclass(slots=True)
class Outcome:
    """What became of a batch."""

    total: int  # requests of the file, broken lines included
    before: int  # of these, answered in earlier runs
    answered: int = 0  # in this run
    cut_off: int = 0  # of these, answers that the token limit cut off
    errors: Counter[str] = field(default_factory=Counter)  # failures of this run, by kind
    stopped: bool = False  # whether it ended early, by a person

    @property
    def failed(self) -> int:
        """Requests of this run without an answer."""
        return self.errors.total()


@dataclass(slots=True)
class Batch:
    """One batch."""

    requests: Path  # the request file
    index: Index  # its lines
    answers: AnswersFile
    defaults: Defaults
    progress: Progress  # told of everything
    fit: Fit | None = None  # the size at which images are sent; None leaves them as they are
    todo: list[Entry] = field(init=False)
    outcome: Outcome = field(init=False)

    def __post_init__(self) -> None:
        self.todo = [entry for entry in self.index.entries if entry.id not in self.answers.answered]
        total = len(self.index.entries) + len(self.index.broken)
        self.outcome = Outcome(total, before=len(self.index.entries) - len(self.todo))

    def begin(self) -> None:
        """Forget failures that are tried again, and record the broken lines. Raises MaiError (a full disk)."""
        # An id that has an answer, from when its line was whole, keeps it.
        named = [
            (one, one.name if one.own in self.answers.answered else one.own or one.name) for one in self.index.broken
        ]
        self.answers.forget_failures([*(entry.id for entry in self.todo), *(name for _, name in named)])
        self.progress.start(self.outcome.total, self.outcome.before)
        for broken, name in named:
            self._keep(Answer(name, kind="line", message=f"{broken.name}: {broken.message}."))

    async def run(self, asker: Asker, concurrency: int, stop: Stop) -> Outcome:
        """Send what is not answered yet, so many at once; as many images are in memory.

        Raises:
            MaiError: the server is gone, the disk is full, or the request file was changed meanwhile; what was
                answered until then is on disk.
        """
        with self.requests.open("rb") as file:
            left = iter(self.todo)
            workers = [self._work(left, file, asker, stop) for _ in range(min(concurrency, len(self.todo)))]
            with suppress(EndedEarlyError):
                await unless_stopped(stop.now, together(workers))
        done_now = self.outcome.answered + self.outcome.failed - len(self.index.broken)
        self.outcome.stopped = done_now < len(self.todo)
        return self.outcome

    async def _work(self, left: Iterator[Entry], file: BinaryIO, asker: Asker, stop: Stop) -> None:
        for entry in left:  # shared: every worker takes the next one
            if stop.soon.is_set() or stop.now.is_set():
                return
            request = self._read(entry, file)
            try:
                prepared = await asyncio.to_thread(prepare, request, self.requests.parent, self.defaults, self.fit)
            except ImageError as error:
                self._keep(Answer(entry.id, kind="image", message=f"{error}."))
            else:
                self._keep(await asker.ask(prepared))

    def _read(self, entry: Entry, file: BinaryIO) -> Request:
        """The request at an entry. Raises UsageError where the file is no longer what was checked."""
        file.seek(entry.offset)
        with suppress(LineError):
            request = parse_request(file.readline(), entry.line)
            if request.id == entry.id:
                return request
        raise UsageError(
            f"{self.requests} was changed while it was worked on (line {entry.line}).",
            "Run the same command again: what is answered stays answered.",
        )

    def _keep(self, answer: Answer) -> None:
        self.answers.write(answer)
        if answer.ok:
            self.outcome.answered += 1
            self.outcome.cut_off += answer.finish_reason == "length"
        else:
            self.outcome.errors[answer.kind] += 1
        self.progress.step(ok=answer.ok)
