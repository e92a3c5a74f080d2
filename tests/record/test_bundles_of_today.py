"""Recorded bundles of the current format: they open, show, report and replay as they did when they were made.

`data/format-3` holds such runs and, in `expected.json`, what the program of that time said of them.
"""

import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from agent.record.animate import write_animation
from agent.record.read import read_bundle
from agent.record.report.page import write_report
from agent.tui.recorded import view_of

RUNS = Path(__file__).parent / "data" / "format-3"
NAMES = ("whole", "dry-run", "interrupted")


@pytest.fixture(params=NAMES)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a recorded run, because a report is written into it."""
    copy = tmp_path / request.param
    shutil.copytree(RUNS / request.param, copy)
    return copy


def expected(run: Path, part: str) -> Any:
    return json.loads((RUNS / "expected.json").read_text(encoding="utf-8"))[run.name][part]


def said(capsys: pytest.CaptureFixture[str], run: Path, *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out.replace(str(run.parent), "RUNS")


def holds(new: Any, old: Any) -> bool:
    """Whether everything of an older JSON value is in a newer one, which may have more fields."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(name in new and holds(new[name], value) for name, value in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(new) == len(old) and all(map(holds, new, old))
    return bool(new == old)


def report_of(run: Path) -> Any:
    page = write_report(run).path.read_text(encoding="utf-8")
    [block] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    data = json.loads(block)
    return {"run": data["run"], "steps": data["steps"], "pictures": [item["size"] for item in data["pictures"]]}


def view_as_json(run: Path) -> Any:
    view = asdict(view_of(read_bundle(run)))
    return json.loads(json.dumps(view, default=str).replace(str(run.parent), "RUNS"))


def test_it_is_shown_in_words(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, run, "show", str(run)).splitlines() == expected(run, "show")


def test_it_is_shown_as_json_with_every_field_that_scripts_read(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(said(capsys, run, "show", str(run), "--json"))
    recorded = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines() if line.endswith("}")]
    assert holds(shown["steps"], recorded)
    assert holds(shown["run"], json.loads((run / "run.json").read_text()))


def test_its_report_says_the_same(run: Path) -> None:
    assert holds(report_of(run), expected(run, "report"))


def test_its_decisions_replay_the_same(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, run, "replay", str(run)).splitlines() == expected(run, "replay")


def test_it_is_listed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = said(capsys, run, "runs", "--runs", str(run.parent), "--json")
    assert [json.loads(line) for line in listed.splitlines()] == expected(run, "runs")


def test_it_opens_in_the_terminal_application(run: Path) -> None:
    assert holds(view_as_json(run), expected(run, "view"))


def test_it_becomes_an_animation(run: Path, tmp_path: Path) -> None:
    steps = len(expected(run, "report")["steps"])
    assert write_animation(read_bundle(run), tmp_path / "run.webp").frames == steps
