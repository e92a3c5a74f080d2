"""A fleet of two real sandboxes with the literal engine, judged in the sandboxes, which are kept for that."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli import main
from agent.commands import fleet
from agent.sandbox.desktop import environment_of, stop_sandbox

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(180)]
THEME = ("xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName")


def inside(name: str, *program: str) -> str:
    words = [sys.executable, "-m", "agent", "sandbox", "enter", name, *program]
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=False).stdout.strip()


def test_three_tasks_are_done_on_two_desktops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fleet, "PROGRAM", (sys.executable, "-m", "agent", "run", "--keep"))
    typing = "open mousepad, type 'hello' and press ctrl+s, type 'note.txt' and press enter"
    tasks = [
        {"id": "dark", "instruction": "open settings and enable dark mode", "sandbox_size": "1280x800"},
        {"id": "note", "instruction": typing},
        {"id": "lost", "instruction": "open settings and click Frobnicate", "max_steps": 4},
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    status = main(["fleet", str(tmp_path / "tasks.jsonl"), "--engine", "literal", "--parallel", "2", "--json"])
    told, errors = capsys.readouterr()
    events = [json.loads(line) for line in told.splitlines()]
    starts = {event["task"]: event for event in events if event["event"] == "RunStarted"}
    names = {task: start["sandbox_name"] for task, start in starts.items()}
    try:
        assert status == 1, told + errors
        assert len({environment_of(name)["DISPLAY"] for name in names.values()}) == 3
        assert inside(names["dark"], *THEME) == "Adwaita-dark"
        assert inside(names["note"], *THEME) == "Adwaita"
        assert inside(names["note"], "sh", "-c", "cat ~/note.txt") == "hello"
    finally:
        for name in names.values():
            stop_sandbox(name)
    out = tmp_path / "tasks-fleet"
    results = {line["id"]: line for line in map(json.loads, (out / "results.jsonl").read_text().splitlines())}
    assert {name: result["status"] for name, result in results.items()} == {"dark": 0, "note": 0, "lost": 1}
    for result in results.values():
        assert json.loads((out / result["bundle"] / "run.json").read_text())["outcome"] == result["outcome"]
    widths = {task: start["viewport"]["width"] for task, start in starts.items()}
    assert widths == {"dark": 1280, "note": 1920, "lost": 1920}
