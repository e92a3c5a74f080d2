"""Writes runs as OSWorld's tree of results, for its viewers and `show_result.py`.

The layout is ACTIONS/OBSERVATION/MODEL/CLASS/TASK with `result.txt` (0.0 or 1.0), `traj.jsonl`, `args.json` and
pictures after each step. Actions are words: nothing of them is to be executed.
"""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.evals.tasks.report import TaskVerdict
from agent.record.read import Bundle, read_bundle
from foundation.errors import UsageError
from foundation.files import cannot_write

_ACTIONS = "mai-agent"


def write_tree(verdicts: Sequence[TaskVerdict], out: Path, to: Path) -> int:
    """Write the judged runs of a folder below `to`. Return how many. Raises EnvironmentLacksError."""
    rows = []
    try:
        for one in verdicts:
            if one.judged and (bundle := _bundle(out / one.bundle)) is not None:
                name = _write(one, bundle, to)
                rows.append({
                    "application": one.group, "task_id": name, "status": "success", "score": float(one.right),
                    "timestamp": bundle.run.started,
                })  # fmt: skip
        (to / "summary").mkdir(parents=True, exist_ok=True)
        (to / "summary/results.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise cannot_write(to, error) from error
    return len(rows)


def _bundle(path: Path) -> Bundle | None:
    try:
        return read_bundle(path)
    except UsageError:  # its folder was removed
        return None


def _write(one: TaskVerdict, bundle: Bundle, to: Path) -> str:
    """Write one run, and return its task's name in the tree."""
    model = re.sub(
        r"[^\w.-]+", "_", (bundle.run.model or bundle.run.engine or "unknown").rstrip("/").rpartition("/")[2]
    )
    epoch = one.id.rpartition("#")[2]
    name = one.task if epoch == "1" else f"{one.task}-{epoch}"
    folder = to / _ACTIONS / "screenshot" / model / one.group / name
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(_rows(one, bundle))
    for row, picture in rows:
        if picture is not None:
            shutil.copyfile(picture, folder / row["screenshot_file"])
    (folder / "traj.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row, _ in rows), encoding="utf-8")
    args = {"instruction": one.say, "model": model, "engine": bundle.run.engine, "verdict": one.verdict}
    (folder / "args.json").write_text(json.dumps(args, indent=1) + "\n", encoding="utf-8")
    (folder / "result.txt").write_text(f"{float(one.right)}\n", encoding="utf-8")  # last: marks a complete run
    return name


def _rows(one: TaskVerdict, bundle: Bundle) -> Iterator[tuple[dict[str, Any], Path | None]]:
    """Yield the rows of `traj.jsonl`, each with the picture after its step (the first of the next step)."""
    began, steps = datetime.fromisoformat(bundle.run.started), bundle.steps
    for number, step in enumerate(steps, 1):
        after = steps[min(number, len(steps) - 1)].image
        time = datetime.fromtimestamp(began.timestamp() + (step.at or 0.0), began.tzinfo).strftime("%Y%m%d@%H%M%S")
        picture = None if after is None else bundle.path / after.file
        exists = picture is not None and picture.is_file()
        last = number == len(steps)
        yield {
            "step_num": number, "action_timestamp": time, "action": "; ".join(each.words for each in step.each_action),
            "response": step.answers[-1].raw if step.answers else "", "reward": float(one.right and last), "done": last,
            "info": {"error": step.error} if step.error else {},
            "screenshot_file": f"step_{number}_{time}{picture.suffix}" if picture is not None and exists else None,
        }, picture if exists else None  # fmt: skip
