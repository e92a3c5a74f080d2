"""The results of a fleet are copied as they come, whole, and what is missing at the end is told and copied later."""

import time
from pathlib import Path

import fsspec
import pytest
from stubs.display import wait_until

from agent.fleet.copies import Copies
from agent.fleet.fleet import Lines
from agent.fleet.tasks import Result, Results
from foundation.errors import EnvironmentLacksError, UsageError


def finish(results: Results, name: str) -> Result:
    """A run that has ended, with its bundle."""
    result = Result(name, "done", 0, True, 1, 1.0, None, f"runs/{name}", "", 1, "x")
    screens = results.folder / result.bundle / "screens"
    screens.mkdir(parents=True)
    (screens / "0001.png").write_bytes(b"picture")
    (screens.parent / "run.json").write_text("{}")
    results.write(result)
    return result


def test_each_run_is_copied_when_it_has_ended_and_what_was_not_copied_before(tmp_path: Path) -> None:
    target = f"memory://{time.monotonic_ns()}"
    files, root = fsspec.url_to_fs(target)
    with Results(tmp_path / "out") as results:
        finish(results, "before")
        copies = Copies(Lines(), results, target)
        with copies.shown():
            copies.finished(finish(results, "now"), again=False)
            wait_until(lambda: files.exists(f"{root}/runs/now/run.json"), "it is copied")
        assert files.cat(f"{root}/runs/before/screens/0001.png") == b"picture"
        assert files.cat(f"{root}/results.jsonl").decode() == results.path.read_text()


def test_a_place_that_takes_nothing_is_told_at_the_end_and_the_same_call_copies_the_rest(tmp_path: Path) -> None:
    target = tmp_path / "share"
    target.write_text("no folder")
    with Results(tmp_path / "out") as results:
        copies = Copies(Lines(), results, str(target / "fleet"))
        with pytest.raises(EnvironmentLacksError, match=r"The results \(1 run\) could not be copied"), copies.shown():
            copies.finished(finish(results, "a"), again=False)
        target.unlink()
        with Copies(Lines(), results, str(target / "fleet")).shown():
            pass
        assert (target / "fleet/runs/a/run.json").is_file()


def test_a_place_that_nobody_knows_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with Results(tmp_path / "out") as results, pytest.raises(UsageError, match="cannot be copied to 'nowhere://x'"):
        Copies(Lines(), results, "nowhere://x")
