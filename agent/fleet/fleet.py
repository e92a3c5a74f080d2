"""Hands tasks to slots in the order of the file, and shows them at work: a free slot takes the next task."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

from agent.fleet.tasks import Result, Results, Task
from foundation.errors import EnvironmentLacksError, ExitStatus
from foundation.printing import counted, put, put_json


class Lines:
    """Prints a line when a task starts and when it ends."""

    def shown(self) -> AbstractContextManager[object]:
        """Show the fleet inside the context."""
        return nullcontext()

    def started(self, task: Task, tries: int) -> None:
        """Print that a slot begins a task."""
        put(f"{task.id}: {f'try {tries}: ' if tries > 1 else ''}{task.instruction}")

    def event(self, task: Task, event: dict[str, Any]) -> None:
        """Print nothing: many runs at once would print too much."""

    def finished(self, result: Result, *, again: bool) -> None:
        """Print how a task ended."""
        more = "; it is tried again" if again else ""
        message = result.message.removeprefix("Stopped: ")  # the outcome already says this
        put(f"{result.id}: {result.outcome}: {message} ({counted(result.steps, 'step')}, {result.seconds:.1f} s){more}")

    def summary(self, counts: dict[str, Any]) -> None:
        """Print the counts at the end."""
        outcomes = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts["outcomes"].items())
        left = f", {counts['left']} left" if counts["left"] else ""
        pace = f"; {counts['seconds_a_step']} s a step (median)" if counts["seconds_a_step"] is not None else ""
        put(f"{counted(counts['tasks'], 'task')}: {outcomes or 'none finished'}{left}{pace}")


class Events(Lines):
    """Prints the events of all runs with the task's id, and those of the fleet itself, as JSON lines."""

    def started(self, task: Task, tries: int) -> None:
        """Print that a slot begins a task."""
        put_json({"event": "TaskStarted", "task": task.id, "instruction": task.instruction, "tries": tries})

    def event(self, task: Task, event: dict[str, Any]) -> None:
        """Print an event of a run; secrets are masked already."""
        put_json({"task": task.id} | event)

    def finished(self, result: Result, *, again: bool) -> None:
        """Print a result."""
        put_json({"event": "TaskFinished", "task": result.id, "again": again} | asdict(result))

    def summary(self, counts: dict[str, Any]) -> None:
        """Print the counts at the end."""
        put_json({"event": "FleetFinished"} | counts)


@dataclass(slots=True)
class _Row:
    step: int = 0
    action: str = "starts"
    began: float = field(default_factory=time.monotonic)


class Table(Lines):
    """A table in the terminal: a row for each desktop at work, and the counts above."""

    def __init__(self, tasks: int, finished: int) -> None:
        self._tasks = tasks
        self._finished = finished
        self._not_done = 0
        self._rows: dict[str, _Row] = {}

    def shown(self) -> AbstractContextManager[object]:
        """Draw the table until the context ends."""
        from rich.live import Live

        from foundation.rich_console import GatedConsole

        return Live(get_renderable=self.drawn, console=GatedConsole(), refresh_per_second=4, transient=True)

    def started(self, task: Task, tries: int) -> None:
        """Add a row."""
        self._rows[task.id] = _Row(action="starts" if tries == 1 else f"starts, try {tries}")

    def event(self, task: Task, event: dict[str, Any]) -> None:
        """Note the step and the last action."""
        row = self._rows[task.id]
        row.step = event.get("step", row.step)
        if event.get("event") == "Acted":
            row.action = str(event.get("error") or event.get("detail") or "")

    def finished(self, result: Result, *, again: bool) -> None:
        """Remove the row."""
        self._rows.pop(result.id, None)
        if not again:
            self._finished += 1
            self._not_done += not result.done

    def drawn(self) -> Any:
        """Return the table as it stands now."""
        from rich.table import Table as Drawn
        from rich.text import Text

        title = f"{self._finished} of {self._tasks} tasks finished, {self._not_done} of them not done"
        table = Drawn(title=Text(title), title_justify="left", expand=True)
        table.add_column("task", no_wrap=True, max_width=24)
        table.add_column("step", justify="right")
        table.add_column("last action", no_wrap=True, ratio=1)
        table.add_column("seconds", justify="right")
        for name, row in list(self._rows.items()):
            seconds = f"{time.monotonic() - row.began:.0f}"
            table.add_row(Text(name), str(row.step), Text(row.action), seconds)
        return table


# The fleet

#: Carries out one task: the task, the number of the try, and what is called with each event of its run.
Carry = Callable[[Task, int, Callable[[dict[str, Any]], None]], Awaitable[Result]]

#: Environment failures in a row, per slot, after which the fleet ends: the rest would fail as well.
_IN_A_ROW = 3


class Fleet:
    """Tasks, slots and retries: a task is repeated only if the environment failed it.

    `pause`: seconds before the first retry; doubled each time.
    """

    def __init__(
        self, carry: Carry, results: Results, view: Lines, *, parallel: int, retries: int = 1, pause: float = 5.0
    ) -> None:
        self._carry = carry
        self._results = results
        self._view = view
        self._parallel = parallel
        self._retries = retries
        self._pause = pause
        self._failed_in_a_row = 0

    async def run(self, tasks: Sequence[Task]) -> None:
        """Carry out all tasks. Raises EnvironmentLacksError: it failed many in a row, or a result cannot be written."""
        waiting = iter(tasks)
        try:
            async with asyncio.TaskGroup() as slots:
                for _ in range(min(self._parallel, len(tasks))):
                    slots.create_task(self._slot(waiting))
        except ExceptionGroup as group:
            raise group.exceptions[0] from group

    async def _slot(self, waiting: Iterator[Task]) -> None:
        for task in waiting:
            result = await self._with_retries(task)
            self._results.write(result)
            self._view.finished(result, again=False)
            failed = result.status == ExitStatus.ENVIRONMENT
            self._failed_in_a_row = self._failed_in_a_row + 1 if failed else 0
            if self._failed_in_a_row >= _IN_A_ROW * self._parallel:
                raise EnvironmentLacksError(
                    f"The environment failed {self._failed_in_a_row} tasks in a row: {result.message}",
                    "Fix it, then start the fleet again with --again failed.",
                )

    async def _with_retries(self, task: Task) -> Result:
        tries = 1
        while True:
            self._view.started(task, tries)
            result = await self._carry(task, tries, lambda event: self._view.event(task, event))
            if result.status != ExitStatus.ENVIRONMENT or tries > self._retries:
                return result
            self._view.finished(result, again=True)
            await asyncio.sleep(self._pause * 2 ** (tries - 1))
            tries += 1
