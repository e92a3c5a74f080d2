"""The task file of a fleet: JSON lines, all checked before anything starts."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from agent.settings import OPTIONS
from foundation.command_line import meant_by
from foundation.errors import UsageError

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
    """Return the tasks of a file in order.

    Args:
        path: the file.
        check: raises UsageError if words are no valid options of a run.

    Raises:
        UsageError: the file cannot be read, holds no task, or lines are broken; the message names the lines.
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
