"""Shows an evaluation of tasks at work: the verdict on each run, as it ends."""

from collections.abc import Callable, Iterable
from pathlib import Path

from typing_extensions import override

from agent.fleet.results import Result
from agent.fleet.tasks import Task
from agent.fleet.views import Lines


class JudgedLines(Lines):
    """Prints lines when a run ends.

    Args:
        judge: returns the lines on a result in the output folder.
        out: the output folder.
        tell: prints lines.
    """

    def __init__(self, judge: Callable[[Result, Path], Iterable[str]], out: Path, tell: Callable[..., object]) -> None:
        self._judge = judge
        self._out = out
        self._tell = tell

    @override
    def started(self, task: Task, tries: int) -> None:
        if tries > 1:
            self._tell(f"{task.id}: try {tries}")

    @override
    def finished(self, result: Result, *, again: bool) -> None:
        if again:
            self._tell(f"{result.id}: {result.message}; it is tried again")
        else:
            self._tell(*self._judge(result, self._out))
