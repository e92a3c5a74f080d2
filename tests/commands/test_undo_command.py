"""`mai-agent undo RUN`, on files of a home that no desktop is needed for."""

import io
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from agent.desktop.changes.files import Files
from agent.record.run_record import RunRecord


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def run(home: Path, tmp_path: Path) -> Path:
    """A run that renamed one file and made two; one by a name that could steer a terminal."""
    (home / "old").write_text("old")
    watched = Files(home, (), lambda: False)
    watched.begin()
    (home / "old").rename(home / "new")
    for name in ("made", "na\x1b[2Jme\n\u202e", os.fsdecode(b"\xff")):
        (home / name).write_text("x")
    changes = [change.to_json() for change in watched.changes()]
    watched.close()
    window = {"kind": "window", "what": "Firefox", "before": None, "after": "A page\x1b[31m"}
    return record(tmp_path / "runs/20261121-080405-a-7b81", {"changes": [*changes, window], "watched": True})


def record(folder: Path, receipt: dict[str, Any] | None, **more: Any) -> Path:
    folder.mkdir(parents=True)
    data = RunRecord.model_validate({"outcome": "done", "receipt": receipt} | more).model_dump()
    (folder / "run.json").write_bytes(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    return folder


def names(home: Path) -> set[str]:
    return {path.name for path in home.iterdir() if not path.name.startswith(".")}


def test_it_shows_first_and_does_nothing_when_only_asked_to_show(run: Path, home: Path, capsys: Any) -> None:
    before = names(home)
    assert main(["undo", str(run), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "will be undone:" in said and "windows are not opened or closed again" in said
    assert "move back to ~/old" in said
    assert names(home) == before


def test_it_undoes_and_says_so_later(run: Path, home: Path, capsys: Any) -> None:
    assert main(["undo", str(run), "--yes"]) == 0
    assert names(home) == {"old"}
    capsys.readouterr()
    assert main(["show", str(run)]) == 0
    assert "undone, 20" in (shown := capsys.readouterr().out)
    assert "moved back" in shown
    assert main(["undo", str(run), "--yes", "--json"]) == 0
    verdicts = {item["verdict"] for item in json.loads(capsys.readouterr().out)["items"]}
    assert verdicts == {"nothing_to_do", "cannot"}


def test_no_name_steers_the_terminal(run: Path, capsys: Any) -> None:
    main(["undo", str(run), "--yes"])
    main(["show", str(run)])
    said = capsys.readouterr()
    assert not {"\x1b", "\u202e"} & set(said.out + said.err)


def test_a_file_that_changed_since_is_left_and_makes_the_status_one(run: Path, home: Path, capsys: Any) -> None:
    (home / "made").write_text("mine now")
    assert main(["undo", str(run), "--yes"]) == 1
    assert names(home) == {"old", "made"}
    assert "something else changed it since" in capsys.readouterr().out


def test_where_nobody_can_agree_it_asks_for_yes(run: Path, home: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: PTH123, SIM115
    before = names(home)
    assert main(["undo", str(run)]) == 2
    assert "--yes" in capsys.readouterr().err
    assert names(home) == before


def test_a_person_who_says_no_keeps_everything(run: Path, home: Path, capsys: Any, monkeypatch: Any) -> None:
    terminal = io.StringIO("n\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    before = names(home)
    assert main(["undo", str(run)]) == 1
    assert names(home) == before


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ({"receipt": None}, 2, "not recorded"),
        ({"sandbox": True, "sandbox_name": "gone"}, 3, "sandbox gone is gone"),
        (
            {"outcome": "running", "pid": os.getpid(), "started": datetime.now().astimezone().isoformat()},
            2,
            "still going on",
        ),
        ({"dry_run": True}, 0, "changed nothing"),
    ],
)
def test_a_run_that_cannot_be_undone_is_said_to_be(
    tmp_path: Path, capsys: Any, more: dict[str, Any], status: int, words: str
) -> None:
    receipt = {"changes": [{"kind": "app", "what": "x", "after": "y"}], "watched": True}
    folder = record(tmp_path / "run", more.pop("receipt", receipt), **more)
    assert main(["undo", str(folder), "--yes"]) == status
    said = capsys.readouterr()
    assert words in said.out + said.err


@pytest.mark.parametrize(
    "undo",
    [
        {},
        {"store": "file"},
        {"store": "file", "how": "moved", "path": "relative", "to": "/x", "folder": False},
        {"store": "kde", "key": ["../../x", [], "k"], "before": None, "after": "x"},
        {"store": "dconf", "key": 5, "before": {"type": "zz", "value": 1}, "after": None},
        {"store": "other"},
        {"store": "file", "how": "made", "path": "%00", "folder": False, "state": None},
    ],
)
def test_a_damaged_record_undoes_nothing(tmp_path: Path, home: Path, capsys: Any, undo: dict[str, Any]) -> None:
    change = {"kind": "file", "what": "x", "before": None, "after": "y", "undo": undo}
    folder = record(tmp_path / "run", {"changes": [change], "watched": True})
    assert main(["undo", str(folder), "--yes"]) in (0, 1)
    assert names(home) == set()
    assert "Traceback" not in capsys.readouterr().err
