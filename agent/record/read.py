"""Reads run bundles back, also those of runs that were killed: a cut last line is left out, nothing else."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from foundation.errors import UsageError
from foundation.processes import has_run_since


@dataclass(frozen=True, slots=True)
class Bundle:
    """One run on disk.

    Args:
        path: its folder.
        meta: what run.json holds.
        steps: the lines of steps.jsonl.
    """

    path: Path
    meta: dict[str, Any]
    steps: tuple[dict[str, Any], ...]

    @property
    def outcome(self) -> str:
        """How it ended: an outcome, `running`, or `interrupted` when its process is gone without an end."""
        outcome = str(self.meta.get("outcome", "unknown"))
        if outcome == "running" and not _alive(self.meta.get("pid"), str(self.meta.get("started", ""))):
            return "interrupted"
        return outcome


def read_bundle(path: Path) -> Bundle:
    """The bundle in a folder. Raises UsageError when there is none."""
    try:
        meta = json.loads((path / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a run ({error}).", "`mai-agent runs` lists the runs.") from error
    return Bundle(path, meta if isinstance(meta, dict) else {}, tuple(_read_steps(path / "steps.jsonl")))


def list_bundles(runs: Path) -> list[Bundle]:
    """The bundles below a folder, newest first; folders that are no bundles are left out."""
    if not runs.is_dir():
        return []
    found: list[Bundle] = []
    for folder in sorted(runs.iterdir(), reverse=True):
        if (folder / "run.json").is_file():
            try:
                found.append(read_bundle(folder))
            except UsageError:
                continue
    return found


def find_bundle(runs: Path, name: str) -> Bundle:
    """The bundle meant by a path, an id, the start of one, or "last". Raises UsageError."""
    if "/" in name or (Path(name) / "run.json").is_file():
        return read_bundle(Path(name))
    folders = sorted(path for path in runs.iterdir() if (path / "run.json").is_file()) if runs.is_dir() else []
    if name == "last" and folders:
        return read_bundle(folders[-1])
    matching = [folder for folder in folders if folder.name.startswith(name)] if name else []
    exact = [folder for folder in matching if folder.name == name]
    if len(exact or matching) != 1:
        problem = "There is no run" if not matching else "There are several runs"
        raise UsageError(f"{problem} {name!r} in {runs}.", "`mai-agent runs` lists the runs.")
    return read_bundle((exact or matching)[0])


def _read_steps(path: Path) -> Iterator[dict[str, Any]]:
    try:
        # Not splitlines(): JSON leaves U+2028 and its like as they are, and those would count as line ends.
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return
    for line in lines:
        try:
            step = json.loads(line)
        except (ValueError, RecursionError):
            continue  # cut off by a crash
        if isinstance(step, dict):
            yield step


def _alive(pid: Any, started: str) -> bool:
    """Whether the process that wrote a bundle is still there, and not another one that got its number later."""
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        return has_run_since(pid, datetime.fromisoformat(started).timestamp())
    except ValueError:
        return True
