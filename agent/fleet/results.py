"""The output folder of a fleet: `results.jsonl`, which is written line by line and read again to go on."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from agent.fleet.tasks import Task
from foundation.errors import ExitStatus, UsageError
from foundation.files import JsonLines, cannot_write


@dataclass(frozen=True, slots=True)
class Result:
    """How a task ended; one line of `results.jsonl`."""

    id: str
    outcome: str  # the run's; "crashed" or "hung" if it ended without one
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
