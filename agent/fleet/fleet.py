"""Hands tasks to slots in the order of the file: a free slot takes the next task."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from agent.fleet.results import Result, Results
from agent.fleet.tasks import Task
from agent.fleet.views import Lines
from foundation.errors import EnvironmentLacksError, ExitStatus

#: Carries out one task: the task, the number of the try, and what is called with each event of its run.
Carry = Callable[[Task, int, Callable[[dict[str, Any]], None]], Awaitable[Result]]

#: Environment failures in a row, per slot, after which the fleet ends: the rest would fail as well.
_IN_A_ROW = 3


class Fleet:
    """Tasks, slots and retries.

    Args:
        carry: carries out one task.
        results: where results are written.
        view: shows the progress.
        parallel: how many tasks run at once.
        retries: how often a task is repeated after a failure of the environment. Other failed tasks are never repeated.
        pause: seconds before the first retry; doubled each time.
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
        """Carry out all tasks.

        Raises EnvironmentLacksError: the environment failed many tasks in a row, or a result cannot be written.
        """
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
