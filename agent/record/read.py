"""Reads run bundles back, also those of runs that were killed: a cut last line is left out, nothing else.

A recorded run can be masked later: texts that a person names, and secrets that the rules find.
"""

import json
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.events.run_events import SCHEMA
from agent.record.redactor import Redactor
from agent.record.run_record import RunRecord
from agent.record.step_record import StepRecord
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import write_atomically
from foundation.foreign_text import json_text
from foundation.processes import has_run_since
from foundation.stray_output import LOG_NAME

#: Length of the date and time in a folder's name: 20261127-225200.
_SECOND = 15


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
        run = RunRecord.model_validate(redactor.data(self.run.model_dump(exclude_unset=True)))
        steps = (StepRecord.model_validate(redactor.data(step.model_dump())) for step in self.steps)
        return Bundle(self.path, run, tuple(steps))


def read_bundle(path: Path) -> Bundle:
    """Return the bundle in a folder. Raises UsageError if there is none."""
    try:
        run = RunRecord.model_validate_json((path / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is not a run ({error}).", "`mai-agent runs` lists the runs.") from error
    if run.format > SCHEMA:
        raise UsageError(f"{path} was recorded by a newer mai-agent (format {run.format}).", "Update this one.")
    return Bundle(path, run)


def list_bundles(runs: Path, most: int | None = None) -> list[Bundle]:
    """Return the bundles below a folder, newest first, at most `most`; other folders are left out."""
    bundles: list[Bundle] = []
    for folder in reversed(_folders(runs)):
        if most is not None and len(bundles) >= most:
            break
        with suppress(UsageError):
            bundles.append(read_bundle(folder))
    return bundles


def find_bundle(runs: Path, name: str, *, paths: bool = True) -> Bundle:
    """Return the bundle with this path, id or beginning of an id; or the "last" one. Raises UsageError.

    `paths`: whether the name may be a path, such as that of a folder here.
    """
    if paths and ("/" in name or (Path(name) / "run.json").is_file()):
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
    """Return the folders of runs, oldest first. Names have only seconds, so file times decide within a second."""
    found: list[tuple[str, int, Path]] = []
    for path in runs.iterdir() if runs.is_dir() else ():
        with suppress(OSError):
            status = (path / "run.json").stat()
            if stat.S_ISREG(status.st_mode):
                found.append((path.name[:_SECOND], status.st_mtime_ns, path))
    return [path for _, _, path in sorted(found)]


def _read_steps(path: Path) -> Iterator[StepRecord]:
    try:
        # Not splitlines(): JSON leaves U+2028 and its like as they are, and those would count as line ends.
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return
    for line in lines:
        with suppress(ValidationError):  # it was cut off by a crash
            yield StepRecord.model_validate_json(line)


def _alive(pid: int | None, started: str) -> bool:
    """Whether the process that wrote a bundle still runs. A later process with the same PID does not count."""
    if pid is None or pid <= 0:
        return False
    try:
        return has_run_since(pid, datetime.fromisoformat(started).timestamp())
    except ValueError:
        return True


# Masking a recorded run

_FILES = ("run.json", "steps.jsonl", LOG_NAME)


def mask_run(bundle: Bundle, redactor: Redactor) -> int:
    """Mask every secret in a run's files, also in earlier lines. Return how many lines and objects were changed.

    Each file is replaced as a whole. Screenshots stay as they are. Raises UsageError: the run is still active.
    EnvironmentLacksError: the folder cannot be written; each file is either unchanged or masked.
    """
    if bundle.outcome == "running":
        raise UsageError(f"The run {bundle.path.name} is still going on.", "Mask it when it has ended.")
    redactor.instruction(bundle.run.instruction)
    try:
        files = [name for name in _FILES if name != LOG_NAME or (bundle.path / name).is_file()]
        for name in files:
            for piece in _pieces(bundle.path / name):
                _masked(piece, redactor)  # first pass: learn all secrets
        return sum(mask_file(bundle.path / name, redactor) for name in files)
    except OSError as error:
        raise EnvironmentLacksError(
            f"{bundle.path} cannot be written ({error.strerror or error}).", "Make room there, or make it writable."
        ) from error


def mask_file(path: Path, redactor: Redactor) -> int:
    """Mask one file of a run, and return how many of its lines, or objects, were changed. Raises OSError."""
    pieces = _pieces(path)
    masked = [_masked(piece, redactor) for piece in pieces]
    changed = sum(one != other for one, other in zip(pieces, masked, strict=True))
    if changed:
        write_atomically(path, "\n".join(masked).encode("utf-8", "replace"))
    return changed


def _pieces(path: Path) -> list[str]:
    read = path.read_text(encoding="utf-8", errors="replace")
    return read.split("\n") if path.suffix == ".jsonl" else [read]


def _masked(piece: str, redactor: Redactor) -> str:
    """Mask a line or a file. If it is no JSON (a crash cut it off), mask it as plain text."""
    try:
        data: Any = json.loads(piece)
    except (ValueError, RecursionError):
        return redactor.text(piece)
    masked = redactor.data(data)
    return piece if masked == data else json_text(masked)
