"""The files of a fleet: its tasks (JSON lines, all checked before anything starts), and `results.jsonl`.

Results are written line by line, and read again to go on.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from agent.settings import OPTIONS
from foundation.command_line import meant_by
from foundation.errors import ExitStatus, UsageError
from foundation.files import JsonLines, cannot_write

Value: TypeAlias = str | int | float | bool

#: Options of runs that the fleet itself decides, that are about the person's own desktop, or that need a person.
_NOT_HERE = {"sandbox", "keep", "runs", "monitor", "desktop", "remote", "approve"}
#: Options of runs that a line and the fleet's command line may set.
ALLOWED = frozenset({option.name for option in OPTIONS if option.help} - _NOT_HERE | {"dry_run"})
#: Linux limits one argument of a program to 128 KiB.
_LONGEST = 100_000
#: Broken lines that an error names.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Task:
    """One line: what to do, and the options of its run."""

    id: str
    instruction: str
    options: tuple[tuple[str, Value], ...] = ()

    @property
    def digest(self) -> str:
        """A hash of what is asked. It shows whether an earlier result is of the same task."""
        content = json.dumps([self.instruction, sorted(self.options)])
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Return options as words of a command line."""
    words = []
    for name, value in options.items():
        if value is not None and value is not False:
            written = f"--{name.replace('_', '-')}"
            words.append(written if value is True else f"{written}={value}")
    return words


def read_tasks(path: Path, check: Callable[[Sequence[str]], object]) -> list[Task]:
    """Return the tasks of a file in order. `check` raises UsageError if words are no valid options of a run.

    Raises UsageError: the file cannot be read, holds no task, or lines are broken; the message names the lines.
    """
    tasks: list[Task] = []
    lines: dict[str, int] = {}  # the line of each id
    checked: set[tuple[tuple[str, Value], ...]] = set()
    broken: list[str] = []
    for number, raw in _lines(path):
        try:
            task = _task(raw)
            if (earlier := lines.setdefault(task.id, number)) != number:
                raise ValueError(f"line {earlier} has the id {task.id!r} too")
            if task.options not in checked:  # most lines have the same options
                check(option_words(dict(task.options)))
                checked.add(task.options)
        except (ValueError, RecursionError, UsageError) as error:
            reason = error.what.rstrip(".") if isinstance(error, UsageError) else error
            broken.append(f"line {number}: {reason}")
        else:
            tasks.append(task)
    if broken:
        more = f"; and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
        raise UsageError(f"{path}, {'; '.join(broken[:_NAMED])}{more}.", "Nothing was started.")
    if not tasks:
        raise UsageError(f"{path} holds no task.", 'A line is {"id": "a", "instruction": "open settings"}.')
    return tasks


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            yield from ((number, raw) for number, raw in enumerate(file, 1) if raw.strip())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror or error}).", "Is the name right?") from error


def _task(raw: bytes) -> Task:
    """Return the task of a line. Raises ValueError."""
    line = json.loads(raw.decode("utf-8-sig"))
    if not isinstance(line, dict):
        raise ValueError("it is no object")
    for name in ("id", "instruction"):
        text = line.pop(name, None)
        if not isinstance(text, str) or not text.strip() or "\0" in text or len(text.encode()) > _LONGEST:
            raise ValueError(f"it needs a text {name!r}")
        if name == "id":
            identifier = text
    for name, value in line.items():
        if name not in ALLOWED:
            meant = meant_by(name, ALLOWED)
            raise ValueError(f"a task has no option {name!r}" + (f" (did you mean {meant!r}?)" if meant else ""))
        if value is not None and not isinstance(value, Value):
            raise ValueError(f"{name!r} must be a text, a number, true or false")
        if "\0" in str(value):
            raise ValueError(f"{name!r} holds a null character")
    options = ((name, value) for name, value in line.items() if value is not None)
    return Task(identifier, text.strip(), tuple(sorted(options)))


@dataclass(frozen=True, slots=True)
class Result:
    """How a task ended; one line of `results.jsonl`."""

    id: str
    outcome: str  # the run's; without one: "failed", "crashed" or "hung"
    status: int  # the run's exit status; 3 if it crashed or hung
    verified: bool | None
    steps: int
    seconds: float  # of the run; of the process if it crashed, hung or could not begin
    tokens: int | None  # of prompts and answers
    bundle: str  # in the output folder; "" if the run never began
    message: str
    tries: int
    digest: str  # of the task

    @property
    def done(self) -> bool:
        """Whether the task was done."""
        return self.status == ExitStatus.DONE


class Results(JsonLines):
    """The results in an output folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.of: dict[str, Result] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        super().__init__(folder / "results.jsonl", "a result of a fleet", self._take, "fleet")

    def _take(self, document: dict[str, Any]) -> None:
        result = Result(**document)
        self.of[result.id] = result

    def still_to_do(self, tasks: Iterable[Task], again: Callable[[Result], bool] = lambda _: False) -> list[Task]:
        """Return the tasks without a result. Results for which `again` is true are forgotten first.

        Raises UsageError: a result is of another task with the same id.
        """
        tasks = list(tasks)
        for task in tasks:
            if (earlier := self.of.get(task.id)) and earlier.digest != task.digest:
                raise UsageError(
                    f"The task {task.id!r} was changed after its result in {self.path}.",
                    "Give the task another id, or name another --out.",
                )
        if forgotten := [task.id for task in tasks if task.id in self.of and again(self.of[task.id])]:
            for name in forgotten:
                del self.of[name]
            self.drop(lambda document: document["id"] in forgotten)
        return [task for task in tasks if task.id not in self.of]

    def write(self, result: Result) -> None:
        """Append a result. Raises EnvironmentLacksError (a full disk)."""
        self.append(asdict(result))
        self.of[result.id] = result

    def summary(self, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the counts over these tasks, and the median of their seconds a step."""
        results = [self.of[task.id] for task in tasks if task.id in self.of]
        paces = [result.seconds / result.steps for result in results if result.steps]
        return {
            "tasks": len(tasks),
            "done": sum(result.done for result in results),
            "outcomes": dict(Counter(result.outcome for result in results).most_common()),
            "environment": sum(result.status == ExitStatus.ENVIRONMENT for result in results),
            "left": len(tasks) - len(results),
            "seconds_a_step": round(median(paces), 2) if paces else None,
        }
