"""The list of runs under way: what is on it, and who is never signalled."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.safety import stop as running
from agent.safety.stop import Registered, find_running, send_stop, wait_ended


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(running, "_folder", lambda: tmp_path / "running")
    return tmp_path / "running"


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that has nothing to do with us."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def test_a_run_is_listed_while_it_goes_on(folder: Path) -> None:
    registered = Registered("20261121-x", "open “settings”")
    [entry] = find_running()
    assert (entry.run, entry.instruction, entry.process.pid) == ("20261121-x", "open “settings”", os.getpid())
    assert stat.S_IMODE(entry.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    registered.close()
    registered.close()
    assert find_running() == []
    assert list(folder.iterdir()) == []


def test_an_entry_whose_number_another_process_has_now_is_removed_and_never_signalled(
    folder: Path, other: "subprocess.Popen[bytes]"
) -> None:
    registered = Registered("old", "x")
    [file] = folder.iterdir()
    entry = json.loads(file.read_text())
    file.write_text(json.dumps(entry | {"pid": other.pid}))
    found = running._read(file)
    assert found is not None
    assert not send_stop(found)
    assert other.poll() is None
    assert find_running() == []
    assert not file.exists()
    registered.close()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"host": 1}', "\xff"])
def test_what_is_no_entry_is_left_alone(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "junk.json").write_bytes(text.encode("latin-1"))
    assert find_running() == []
    assert (folder / "junk.json").exists()


def test_entries_of_other_machines_are_left_alone(folder: Path) -> None:
    registered = Registered("here", "x")
    [file] = folder.iterdir()
    (folder / "there.json").write_text(json.dumps(json.loads(file.read_text()) | {"host": "elsewhere", "pid": 1}))
    assert [entry.run for entry in find_running()] == ["here"]
    assert (folder / "there.json").exists()
    registered.close()


def test_a_folder_that_cannot_be_written_is_a_remark(folder: Path) -> None:
    folder.write_text("a file")
    registered = Registered("x", "y")
    assert "`mai-agent stop` will not find this run" in registered.remark
    registered.close()


def test_a_wait_ends_with_the_entry_and_tells_what_is_left() -> None:
    registered = Registered("x", "y")
    found = find_running()
    assert wait_ended(found, 0.05) == found
    registered.close()
    assert wait_ended(found, 30) == []
