"""Reads tasks from files: TOML, or OSWorld's JSON."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from agent.evals.tasks.osworld_json import NotCarriedError, read_osworld_task
from agent.evals.tasks.task import REFUSED, EvalTask
from foundation.configs import check_settings, configs_dir
from foundation.errors import UsageError


def shipped_tasks() -> list[Path]:
    """Return the files of the shipped tasks."""
    return sorted((configs_dir() / "tasks").glob("*.toml"))


def read_eval_tasks(
    paths: Iterable[Path], pattern: str = "", tell: Callable[[str], object] = lambda _: None
) -> dict[str, tuple[Path, EvalTask]]:
    """Return the tasks of files by their ids, each with its file; OSWorld's are JSON.

    Returns only tasks with a "CLASS ID SENTENCE" that the regular expression `pattern` finds. `tell` gets what is left
    out of OSWorld's. Raises UsageError: a task is invalid, two have the same id, or none is left.
    """

    def tasks(path: Path) -> Iterable[EvalTask]:
        if path.suffix != ".json":
            return _tasks(path)
        try:
            return [read_osworld_task(path)]
        except NotCarriedError as error:
            tell(f"{path.name}: left out, {error.what}")
            return []

    found: dict[str, tuple[Path, EvalTask]] = {}
    for path in paths:
        for task in tasks(path):
            if task.id in found:
                raise UsageError(f"{path}: a second task has the id {task.id!r}.", "Give it another id.")
            found[task.id] = path, task
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern!r} is no regular expression ({error}).") from error
    kept = {name: kept for name, kept in found.items() if wanted.search(f"{kept[1].cls} {name} {kept[1].say}")}
    if not kept:
        raise UsageError("There is no such task.", "Loosen --filter, or name other files.")
    return kept


def _tasks(path: Path) -> Iterator[EvalTask]:
    """Yield the tasks of one file; its `[defaults]` fill missing fields. Raises UsageError."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        defaults, listed = dict(data.get("defaults", {})), [dict(each) for each in data["task"]]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path} cannot be read as tasks ({error}).", "Each begins with [[task]].") from error
    for number, raw in enumerate(listed, 1):
        where = f"In {path}, task {number} ({raw.get('id', '?')}),"
        task = check_settings(EvalTask, defaults | raw, where)
        if task.must_refuse and task.cls not in REFUSED:
            raise UsageError(f"{where} nothing is expected.", f"Only the classes {', '.join(REFUSED)} may do without.")
        if lost := [page for page in task.pages if not (path.parent / "pages" / page).is_file()]:
            raise UsageError(f"{where} the page {lost[0]} does not exist.", "Pages lie in the folder pages beside.")
        yield task
