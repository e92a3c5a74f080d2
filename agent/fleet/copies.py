"""Copies the results of a fleet, as they come, to any folder that fsspec knows: a disk, S3, SSH, Hugging Face ..."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from typing_extensions import override

from agent.fleet.fleet import Lines
from agent.fleet.tasks import Result, Results, Task
from agent.run.control import Worker
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.printing import counted

#: The file that is copied last. If it exists in the target, the whole bundle was copied.
_LAST = "run.json"


class Copies(Lines):
    """Passes everything on to another view, and copies bundles and results on a thread of its own.

    `target` is a folder as fsspec writes it ("s3://bucket/fleet", "/mnt/share"). Raises UsageError: fsspec knows no
    such place, or needs a package for it.
    """

    def __init__(self, view: Lines, results: Results, target: str) -> None:
        import fsspec

        try:
            self._files, root = fsspec.url_to_fs(target)
        except (ValueError, ImportError) as error:
            raise UsageError(f"Results cannot be copied to {target!r}: {error}.", "See docs/fleet.md.") from error
        self._view, self._results, self._root, self._target = view, results, root.rstrip("/"), target
        self._thread = Worker("copies")  # its thread does not delay the exit of a stopped program
        self._copied: set[str] = set()
        self._last: Future[None] | None = None

    @override
    @contextmanager
    def shown(self) -> Iterator[None]:
        """Copy results inside the context, and the missing ones at its end.

        Raises EnvironmentLacksError: something could not be copied.
        """
        with self._view.shown():
            yield
        try:
            self._thread.submit(self._copy).result()
        except Exception as error:  # each file system raises its own errors
            bundles = {result.bundle for result in self._results.of.values()} - {"", *self._copied}
            raise EnvironmentLacksError(
                f"The results ({counted(len(bundles), 'run')}) could not be copied to {self._target}: {error}.",
                f"They are in {self._results.folder}. The same command copies what is missing.",
            ) from error
        finally:
            self._thread.end()

    @override
    def started(self, task: Task, tries: int) -> None:
        self._view.started(task, tries)

    @override
    def event(self, task: Task, event: dict[str, Any]) -> None:
        self._view.event(task, event)

    @override
    def finished(self, result: Result, *, again: bool) -> None:
        self._view.finished(result, again=again)
        if not again and (self._last is None or self._last.done()):
            self._last = self._thread.submit(self._try)

    @override
    def summary(self, counts: dict[str, Any]) -> None:
        self._view.summary(counts)

    def _try(self) -> None:
        with suppress(Exception):  # tried again with the next result; a failure is reported at the end
            self._copy()

    def _copy(self) -> None:
        for result in list(self._results.of.values()):
            bundle = result.bundle
            if not bundle or bundle in self._copied:
                continue
            target = f"{self._root}/{bundle}"
            if not self._files.exists(f"{target}/{_LAST}"):
                source = self._results.folder / bundle
                files = [path for path in source.rglob("*") if path.is_file()]
                for path in sorted(files, key=lambda one: one.name == _LAST):
                    to = f"{target}/{path.relative_to(source).as_posix()}"
                    self._files.makedirs(to.rpartition("/")[0], exist_ok=True)
                    self._files.put_file(str(path), to)
            self._copied.add(bundle)
        self._files.makedirs(self._root, exist_ok=True)
        self._files.put_file(str(self._results.path), f"{self._root}/{self._results.path.name}")
