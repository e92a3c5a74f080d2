"""Reads run bundles back, also those of runs that were killed: a cut last line is left out, nothing else."""

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.record.redactor import Redactor
from agent.record.run_record import RunRecord
from agent.record.step_record import StepRecord
from foundation.errors import UsageError
from foundation.processes import has_run_since


class Bundle:
    """One run on disk: its folder, the content of run.json, and the steps, which are read on first access."""

    def __init__(self, path: Path, run: RunRecord, steps: tuple[StepRecord, ...] | None = None) -> None:
        self.path = path
        self.run = run
        if steps is not None:
            self.steps = steps

    @cached_property
    def steps(self) -> tuple[StepRecord, ...]:
        """Its steps, in order."""
        return tuple(_read_steps(self.path / "steps.jsonl"))

    @property
    def step_count(self) -> int:
        """The number of steps: from run.json if it has the number, else by counting lines."""
        if self.run.recorded is not None:
            return self.run.recorded
        try:
            return (self.path / "steps.jsonl").read_bytes().count(b"\n")
        except OSError:
            return 0

    @property
    def outcome(self) -> str:
        """The outcome of the run; `running`, or `interrupted` if its process is gone and recorded no end."""
        run = self.run
        return "interrupted" if run.outcome == "running" and not _alive(run.pid, run.started) else run.outcome

    def masked(self, redactor: Redactor | None) -> "Bundle":
        """Return the bundle with texts masked; the files stay unchanged."""
        if redactor is None:
            return self
        run = RunRecord.read(redactor.data(self.run.model_dump(exclude_unset=True)))
        return Bundle(self.path, run, tuple(StepRecord.read(redactor.data(step.model_dump())) for step in self.steps))


def read_bundle(path: Path) -> Bundle:
    """Return the bundle in a folder. Raises UsageError if there is none."""
    try:
        return Bundle(path, RunRecord.read(_from_json((path / "run.json").read_text(encoding="utf-8"))))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a run ({error}).", "`mai-agent runs` lists the runs.") from error


def list_bundles(runs: Path, most: int | None = None) -> list[Bundle]:
    """Return the bundles below a folder, newest first, at most `most`; other folders are left out."""
    bundles: list[Bundle] = []
    for folder in reversed(_folders(runs)):
        if most is not None and len(bundles) >= most:
            break
        with suppress(UsageError):
            bundles.append(read_bundle(folder))
    return bundles


def find_bundle(runs: Path, name: str) -> Bundle:
    """Return the bundle with this path, id or beginning of an id; or the "last" one. Raises UsageError."""
    if "/" in name or (Path(name) / "run.json").is_file():
        return read_bundle(Path(name))
    folders = _folders(runs)
    if name == "last" and folders:
        return read_bundle(folders[-1])
    matching = [folder for folder in folders if folder.name.startswith(name)] if name else []
    exact = [folder for folder in matching if folder.name == name]
    if len(exact or matching) != 1:
        problem = "There is no run" if not matching else "There are several runs"
        raise UsageError(f"{problem} {name!r} in {runs}.", "`mai-agent runs` lists the runs.")
    return read_bundle((exact or matching)[0])


def _folders(runs: Path) -> list[Path]:
    return sorted(path for path in runs.iterdir() if (path / "run.json").is_file()) if runs.is_dir() else []


def _read_steps(path: Path) -> Iterator[StepRecord]:
    try:
        # Not splitlines(): JSON leaves U+2028 and its like as they are, and those would count as line ends.
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return
    for line in lines:
        try:
            yield StepRecord.model_validate_json(line)
        except ValidationError:  # something in it is damaged, or it was cut off by a crash
            with suppress(ValueError, RecursionError):
                if isinstance(step := _from_json(line), dict):
                    yield StepRecord.read(step)


def _from_json(text: str) -> Any:
    """Parse JSON, and replace lone surrogates, which escapes may contain."""
    value = json.loads(text)
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) if "\\u" in text else value


def _alive(pid: int | None, started: str) -> bool:
    """Whether the process that wrote a bundle still runs. A later process with the same PID does not count."""
    if pid is None or pid <= 0:
        return False
    try:
        return has_run_since(pid, datetime.fromisoformat(started).timestamp())
    except ValueError:
        return True
